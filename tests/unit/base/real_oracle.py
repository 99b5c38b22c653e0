#!/usr/bin/env python3
"""Writes real_oracle.txt: functions of real.h at many points, to 400 binary digits and rounded.

The tests read only the stored numbers. To compute them again, install python3-mpmath and run:

    python3 tests/unit/base/real_oracle.py

A line is `function x [y] value`, in hexadecimal.
"""
import math
import os
import random
import struct

import mpmath
from mpmath import mp, mpf

HERE = os.path.dirname(os.path.abspath(__file__))
POINTS = 60  # of each kind


def single(x):
    return struct.unpack("f", struct.pack("f", x))[0]


def spread(low, high):
    """A number of either sign whose logarithm is uniformly distributed."""
    sign = random.choice([-1, 1])
    return sign * math.exp(random.uniform(math.log(low), math.log(high)))


def between(low, high):
    return lambda: random.uniform(low, high)


def around_one(width):
    return lambda: 1 + spread(1e-15, width)


ANGLES = [
    between(-7, 7),
    between(-1e6, 1e6),
    lambda: single(spread(1e-6, 3.4e38)),
    lambda: spread(1e-10, 1.7e308),
    lambda: random.randrange(1, 10**6) * math.pi / 2,  # close to multiples of pi / 2
    lambda: random.randrange(1, 10**15) * math.pi / 2,
]
INSIDE = [between(-1, 1), lambda: spread(1e-12, 1), lambda: math.copysign(1 - abs(spread(1e-15, 0.1)), spread(1, 2))]
KINDS = {
    "exp": [between(-745, 709), between(-2, 2), lambda: spread(1e-17, 1)],
    "expm1": [between(-50, 709), between(-2, 2), lambda: spread(1e-300, 1)],
    "log": [lambda: abs(spread(5e-324, 1.7e308)), around_one(0.3)],
    "log1p": [lambda: abs(spread(1e-300, 1e300)), between(-1, 1), lambda: spread(1e-17, 0.9)],
    "sin": ANGLES,
    "cos": ANGLES,
    "tan": ANGLES,
    "asin": INSIDE,
    "acos": INSIDE,
    "atan": [between(-2, 2), lambda: spread(1e-9, 1e9), lambda: spread(1e-300, 1e300)],
    "sinh": [between(-1, 1), between(-710, 710), lambda: spread(1e-9, 30)],
    "cosh": [between(-1, 1), between(-710, 710)],
    "tanh": [between(-1, 1), between(-25, 25), lambda: spread(1e-300, 20)],
    "asinh": [between(-2, 2), lambda: spread(1e-300, 1e308), lambda: spread(1e-9, 10)],
    "acosh": [between(1, 4), lambda: 1 + abs(spread(1e-15, 1)), lambda: abs(spread(1.01, 1e308))],
    "atanh": INSIDE,
    "erf": [between(-1, 1), between(-6.5, 6.5), lambda: spread(1e-300, 1)],
}
# The double closest to a multiple of pi / 2 (Kahan), and floats close to one.
HARD = {"sin": [6381956970095103 * 2.0**797, single(16367173 * 2.0**72), 2.0**1023, 1.7e308]}
HARD["cos"] = HARD["tan"] = HARD["sin"]


def exactly(name, *numbers):
    mp.prec = 1400 if name in ("sin", "cos", "tan") else 400
    if name == "pow":
        return float(mp.power(*map(mpf, numbers)))
    return float(getattr(mpmath, name)(mpf(numbers[0])))


def powers():
    for _ in range(POINTS):
        yield abs(spread(1e-300, 1e300)), spread(1e-3, 1)
        yield random.uniform(0, 3), random.uniform(-20, 20)
        yield 1 + spread(1e-9, 1e-3), spread(1, 1e5)
        yield -random.uniform(0, 3), float(random.randrange(-40, 40))
        yield 0.9, float(random.randrange(1, 7000))
        yield 0.999, float(random.randrange(1, 700000))
        yield single(abs(spread(1e-38, 3e38))), single(random.uniform(-2, 2))


def main():
    random.seed(20)
    lines = []
    for name, kinds in KINDS.items():
        points = [kind() for kind in kinds for _ in range(POINTS)] + HARD.get(name, [])
        for x in points:
            lines.append(f"{name} {x.hex()} {exactly(name, x).hex()}")
    for x, y in powers():
        lines.append(f"pow {x.hex()} {y.hex()} {exactly('pow', x, y).hex()}")
    with open(os.path.join(HERE, "real_oracle.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(lines) + "\n")


main()
