#!/usr/bin/python3
"""The peer of bench_train_resnet: the same residual network in PyTorch, channels-last.
usage: train_resnet_torch.py BATCH THREADS"""
import json
import sys

import torch
from torch import nn
from torch.nn import functional as F

from torch_rate import median_rate

batch, threads = int(sys.argv[1]), int(sys.argv[2])
torch.set_num_threads(threads)
torch.manual_seed(1)
last = torch.channels_last


def conv(inputs, outputs, size, stride=1):
    return nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.a, self.norm_a = conv(inputs, outputs, 3, stride), nn.BatchNorm2d(outputs)
        self.b, self.norm_b = conv(outputs, outputs, 3), nn.BatchNorm2d(outputs)
        same = stride == 1 and inputs == outputs
        self.short = nn.Identity() if same else nn.Sequential(
            conv(inputs, outputs, 1, stride), nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = F.relu(self.norm_a(self.a(x)))
        return F.relu(self.norm_b(self.b(y)) + self.short(x))


blocks, inputs = [], 16
for stage, outputs in enumerate((16, 32, 64)):
    for block in range(3):
        blocks.append(Block(inputs, outputs, 2 if stage > 0 and block == 0 else 1))
        inputs = outputs
model = nn.Sequential(conv(3, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), *blocks,
                      nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10)).to(memory_format=last)
optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
data = [(torch.randn(batch, 3, 32, 32).to(memory_format=last), torch.randint(10, (batch,)))
        for _ in range(4)]
loss_of = nn.CrossEntropyLoss()


def step(x, y):
    optimizer.zero_grad(set_to_none=True)
    loss_of(model(x), y).backward()
    optimizer.step()


print(json.dumps({"bench": "torch_resnet", "batch": batch, "threads": threads,
                  "examples_per_second": median_rate(step, data, batch, 2, 8, 3)}))
