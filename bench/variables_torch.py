#!/usr/bin/python3
"""The peer of bench_variables: a chain of layers [8 x 8] with bias and a final one of 4 classes,
batch 8, SGD, one thread, eager. Prints the median ms a step of the faster of two optimizers: one
that updates each variable, and one that updates all at once (foreach), where PyTorch has it.
usage: variables_torch.py LAYERS STEPS"""
import inspect
import statistics
import sys
import time

import torch
from torch import nn

WARM = 2
layers, steps = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(1)
torch.manual_seed(1)
model = nn.Sequential(*[nn.Linear(8, 8) for _ in range(layers)], nn.Linear(8, 4))
for layer in model:
    nn.init.orthogonal_(layer.weight)
    nn.init.zeros_(layer.bias)
ways = [{}]
if "foreach" in inspect.signature(torch.optim.SGD).parameters:
    ways = [{"foreach": False}, {"foreach": True}]
optimizers = [torch.optim.SGD(model.parameters(), 1e-6, **way) for way in ways]
x, y = torch.randn(8, 8), torch.randint(4, (8,))
loss_of = nn.CrossEntropyLoss()


def step(optimizer):
    optimizer.zero_grad(set_to_none=True)
    loss_of(model(x), y).backward()
    optimizer.step()


times = [[] for _ in optimizers]
for _ in range(WARM + steps):
    for optimizer, its in zip(optimizers, times):
        begun = time.perf_counter()
        step(optimizer)
        its.append(time.perf_counter() - begun)
print(f"{min(statistics.median(its[WARM:]) for its in times) * 1e3:.4f}")
