#!/usr/bin/python3
"""The peer of bench_train_mlp: the same MLP in PyTorch. usage: train_mlp_torch.py BATCH THREADS"""
import json
import sys

import torch
from torch import nn

from torch_rate import median_rate

batch, threads = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(threads)
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
data = [(torch.randn(batch, 784), torch.randint(10, (batch,))) for _ in range(8)]
loss_of = nn.CrossEntropyLoss()


def step(x, y):
    optimizer.zero_grad(set_to_none=True)
    loss_of(model(x), y).backward()
    optimizer.step()


print(json.dumps({"bench": "torch_mlp", "batch": batch, "threads": threads,
                  "examples_per_second": median_rate(step, data, batch, 20, 150, 5)}))
