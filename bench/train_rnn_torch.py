#!/usr/bin/python3
"""The peer of bench_train_rnn: the same layers in PyTorch over padded batches. usage: train_rnn_torch.py gru|lstm THREADS"""
import json
import sys

import torch
from torch import nn

from torch_rate import median_rate

kind, threads, batch = sys.argv[1], int(sys.argv[2]), 32
torch.set_num_threads(threads)
torch.manual_seed(1)
layer = {"gru": nn.GRU, "lstm": nn.LSTM}[kind](40, 128, batch_first=True)
logits = nn.Linear(128, 10)
optimizer = torch.optim.SGD([*layer.parameters(), *logits.parameters()], 0.01, momentum=0.9)


def make_batch(first):
    lengths = torch.tensor([20 + i * 7919 % 81 for i in range(first, first + batch)])
    x = torch.zeros(batch, int(lengths.max()), 40)
    for i, k in enumerate(lengths.tolist()):
        x[i, :k] = torch.randn(k, 40)
    return x, lengths, torch.randint(10, (batch,))


data = [make_batch(i * batch) for i in range(8)]
loss_of = nn.CrossEntropyLoss()


def step(x, lengths, y):
    optimizer.zero_grad(set_to_none=True)
    outputs, _ = layer(x)
    loss_of(logits(outputs[torch.arange(batch), lengths - 1]), y).backward()
    optimizer.step()


print(json.dumps({"bench": "torch_rnn", "model": kind, "threads": threads,
                  "examples_per_second": median_rate(step, data, batch, 4, 16, 3)}))
