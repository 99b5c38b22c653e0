"""Trial for bench/torch: training steps of a small MLP, examples/s. usage: torch_trial.py THREADS"""
import sys
import time

import torch
from torch import nn

torch.set_num_threads(int(sys.argv[1]))
torch.manual_seed(1)
model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
x, y = torch.randn(128, 784), torch.randint(10, (128,))


def run(seconds):
    steps, begun = 0, time.perf_counter()
    while time.perf_counter() - begun < seconds:
        model.zero_grad(set_to_none=True)
        nn.functional.cross_entropy(model(x), y).backward()
        steps += 1
    return 128 * steps / (time.perf_counter() - begun)


run(0.2)
print(max(run(0.3) for _ in range(3)))
