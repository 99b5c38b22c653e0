#!/usr/bin/python3
"""The peer of bench_train_cnn: the same LeNet in PyTorch, channels-last. usage: train_cnn_torch.py BATCH THREADS"""
import json
import sys

import torch
from torch import nn

from torch_rate import median_rate

batch, threads = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(threads)
torch.manual_seed(1)
last = torch.channels_last
model = nn.Sequential(
    nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
    nn.Flatten(), nn.Linear(64 * 7 * 7, 512), nn.ReLU(), nn.Linear(512, 10)).to(memory_format=last)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
data = [(torch.randn(batch, 1, 28, 28).to(memory_format=last), torch.randint(10, (batch,)))
        for _ in range(8)]
loss_of = nn.CrossEntropyLoss()


def step(x, y):
    optimizer.zero_grad(set_to_none=True)
    loss_of(model(x), y).backward()
    optimizer.step()


print(json.dumps({"bench": "torch_cnn", "batch": batch, "threads": threads,
                  "examples_per_second": median_rate(step, data, batch, 5, 20, 3)}))
