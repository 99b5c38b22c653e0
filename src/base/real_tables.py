#!/usr/bin/env python3
"""Writes real_tables.h, the tables of real.c, from 400 binary digits (needs python3-mpmath):

    python3 src/base/real_tables.py && clang-format -i src/base/real_tables.h
"""
import os

from mpmath import atan, erf, exp, floor, log, mp, mpf, nint, pi, sqrt

mp.prec = 400
PI_WORDS = 37  # the largest double's exponent and what its product with 2 / pi needs
HERE = os.path.dirname(os.path.abspath(__file__))
POINT = 1 << 42  # sums of a k ln 2 and an entry of the logarithms are exact with so many digits


def double(x):
    return float(x).hex()


def halves(x):
    """x as two doubles, the first x rounded."""
    high = mpf(float(x))
    return f"{{{double(high)}, {double(x - high)}}}"


def split(x, unit):
    """x as a multiple of 1 / unit and a double."""
    high = mpf(nint(x * unit)) / unit
    assert mpf(float(high)) == high
    return high, f"{double(high)}, {double(x - high)}"


def powers(out):
    out.append("// 2^(i / 32)")
    out.append("static const pair power_table[32] = {")
    out += [f"{halves(mpf(2) ** (mpf(i) / 32))}," for i in range(32)]
    out.append("};")


def logarithms(out):
    """Numbers from 0.6875 on in 128 parts, each as wide as a unit of the 7th digit after the point."""
    out.append("// c near 1 / x over part i of [0.6875, 1.375), and -ln c; the parts beside 1 have c = 1.")
    out.append("static const log_entry log_table[128] = {")
    for i in range(128):
        step = 48 + i  # of (128 + step) / 256 below 1, of step / 128 from there on
        low, width = (mpf(128 + step) / 256, mpf(1) / 256) if step < 128 else (mpf(step) / 128, mpf(1) / 128)
        c = mpf(nint(512 / (low + width / 2))) / 512
        if low == 1 or low + width == 1:
            c = mpf(1)
        worst = max(abs(low * c - 1), abs((low + width) * c - 1))
        assert worst <= mpf(1) / 128, (i, worst)
        out.append(f"{{{double(c)}, {split(-log(c), POINT)[1]}}},")
    out.append("};")


def arcs(out):
    out.append("// atan(i / 16)")
    out.append("static const pair atan_table[17] = {")
    out += [f"{halves(atan(mpf(i) / 16))}," for i in range(17)]
    out.append("};")


def errors(out):
    out.append("// erf(i / 8) and its slope there")
    out.append("static const erf_entry erf_table[49] = {")
    for i in range(49):
        x = mpf(i) / 8
        out.append(f"{{{double(erf(x))}, {double(2 / sqrt(pi) * exp(-x * x))}}},")
    out.append("};")


def two_over_pi(out):
    out.append("// 2 / pi in binary, 32 digits a word, after two words of zeros")
    out.append(f"static const uint32_t two_over_pi[{PI_WORDS + 2}] = {{0, 0,")
    mp.prec = 32 * PI_WORDS + 64
    rest = 2 / pi
    for _ in range(PI_WORDS):
        rest *= 1 << 32
        word = int(floor(rest))
        rest -= word
        out.append(f"0x{word:08x},")
    mp.prec = 400
    out.append("};")


def constants(out):
    step = log(2) / 32
    high, text = split(step, 1 << 41)
    out.append("// ln 2 / 32 and ln 2: a short number, whose products with integers are exact, and the rest")
    out.append(f"static const double log_step[2] = {{{text}}};")
    out.append(f"static const double log_two[2] = {{{split(log(2), POINT)[1]}}};")
    first, _ = split(pi / 2, 1 << 32)
    second, rest = split(pi / 2 - first, 1 << 65)
    out.append("// pi / 2 as two and as three doubles, of which the first two have 33 digits")
    out.append(f"static const pair half_pi = {halves(pi / 2)};")
    out.append(f"static const double half_pi_parts[3] = {{{double(first)}, {rest}}};")


def main():
    out = [
        "// Tables of real.c, written by real_tables.py.",
        "#ifndef BELFRY_BASE_REAL_TABLES_H",
        "#define BELFRY_BASE_REAL_TABLES_H",
        "",
        "#include <stdint.h>",
        "",
        "typedef struct pair { // hi + lo, where hi is that sum rounded",
        "    double hi, lo;",
        "} pair;",
        "",
        "typedef struct log_entry {",
        "    double inverse, hi, lo;",
        "} log_entry;",
        "",
        "typedef struct erf_entry {",
        "    double value, slope;",
        "} erf_entry;",
        "",
    ]
    for part in (constants, powers, logarithms, arcs, errors, two_over_pi):
        part(out)
        out.append("")
    out.append("#endif")
    with open(os.path.join(HERE, "real_tables.h"), "w", encoding="utf-8") as file:
        file.write("\n".join(out) + "\n")


main()
