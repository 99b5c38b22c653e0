#!/usr/bin/env python3
"""Writes oracle.txt: the parameters of test_rules.c after steps of PyTorch's optimizers, in double.

Run it after you add a case. It needs python3-torch; the tests read only the stored numbers:

    python3 tests/unit/optim/oracle.py

A line is `case values...`, the parameters after STEPS steps. Parameters and gradients follow the
formulae of test_rules.c; the options of a case are there too.
"""
import os

import torch

COUNT, STEPS = 37, 5
HERE = os.path.dirname(os.path.abspath(__file__))

CASES = {
    "sgd": lambda p: torch.optim.SGD(p, lr=0.1, weight_decay=0.01),
    "nesterov": lambda p: torch.optim.SGD(p, lr=0.05, momentum=0.5, nesterov=True),
    "adam": lambda p: torch.optim.Adam(
        p, lr=0.1, betas=(0.5, 0.9), eps=0.01, weight_decay=0.1),
    "adagrad": lambda p: torch.optim.Adagrad(
        p, lr=0.5, initial_accumulator_value=2.0, eps=0.01, weight_decay=0.1),
    "rmsprop": lambda p: torch.optim.RMSprop(p, lr=0.05, alpha=0.7, eps=0.01),
    "rmsprop_full": lambda p: torch.optim.RMSprop(
        p, lr=0.05, alpha=0.7, eps=0.01, momentum=0.5, centered=True, weight_decay=0.1),
    "adadelta": lambda p: torch.optim.Adadelta(p, lr=0.5, rho=0.7, eps=0.01, weight_decay=0.1),
    "adamw": lambda p: torch.optim.AdamW(
        p, lr=0.1, betas=(0.5, 0.9), eps=0.01, weight_decay=0.3),
}


def gradient(step):
    values = [((i * 7919 + step * 104729) % 2003) / 500.0 - 2.0 for i in range(COUNT)]
    return torch.tensor(values, dtype=torch.float32).double()


def run(make):
    p = (torch.arange(COUNT, dtype=torch.float64) / 16 - 1).requires_grad_()
    optimizer = make([p])
    for step in range(STEPS):
        p.grad = gradient(step)
        optimizer.step()
    return p.detach().tolist()


def main():
    with open(os.path.join(HERE, "oracle.txt"), "w", encoding="ascii") as out:
        for name, make in CASES.items():
            out.write(" ".join([name] + [f"{v:.17g}" for v in run(make)]) + "\n")


if __name__ == "__main__":
    main()
