#!/usr/bin/python3
"""The peer of bench_table: one sparse nn.Embedding of 26 x ROWS rows of 16 floats, batches of 26 x 512 ids, gradients given.
usage: table_torch.py sgd|adagrad ROWS uniform|power; prints "ready", then for each line "STEPS" the seconds of a step"""
import os
import sys
import time

os.environ["OMP_NUM_THREADS"] = "1"
import torch

FIELDS, EXAMPLES, WIDTH, BATCHES = 26, 512, 16, 64
name, rows, power = sys.argv[1], int(sys.argv[2]), sys.argv[3] == "power"
torch.set_num_threads(1)
torch.manual_seed(1)
embedding = torch.nn.Embedding(FIELDS * rows, WIDTH, sparse=True)
torch.nn.init.normal_(embedding.weight, 0, 0.01)
optimizer = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}[name](embedding.parameters(), 0.01)


def batch():
    u = torch.rand(EXAMPLES, FIELDS, dtype=torch.float64)
    ids = (rows ** u - 1 if power else rows * u).long().clamp(max=rows - 1)
    return ids + torch.arange(FIELDS) * rows


batches = [batch() for _ in range(BATCHES)]
gradients = torch.full((EXAMPLES, FIELDS, WIDTH), 1e-3)


def step(ids):
    optimizer.zero_grad(set_to_none=True)
    embedding(ids).backward(gradients)
    optimizer.step()


print("ready", flush=True)
for line in sys.stdin:
    steps = int(line)
    begun = time.perf_counter()
    for i in range(steps):
        step(batches[i % BATCHES])
    print((time.perf_counter() - begun) / steps, flush=True)
