#!/usr/bin/python3
"""The peer of bench_train_gpt: nanoGPT's model in PyTorch, eager, by the same recipe.

usage: train_gpt_torch.py nano|gpt2 THREADS [ddp]     (one rank: … ddp RANK STORE)
ddp: the peer of bench/cluster_gpt, two processes of DistributedDataParallel over gloo; the rate is that of both."""
import json
import math
import os
import subprocess
import sys
import tempfile

import torch
import torch.nn.functional as F
from torch import nn

from torch_rate import median_rate

threads, t = int(sys.argv[2]), 64
batch, vocabulary, width, heads, layers, steps = {"nano": (12, 65, 128, 4, 4, 16), "gpt2": (4, 50257, 768, 12, 12, 4)}[sys.argv[1]]
ranks = 2 if len(sys.argv) > 3 else 1
if len(sys.argv) == 4:
    with tempfile.TemporaryDirectory() as folder:
        children = [subprocess.Popen([sys.executable, *sys.argv, str(rank), folder + "/store"],
                                     env=dict(os.environ, GLOO_SOCKET_IFNAME="lo")) for rank in range(ranks)]
        sys.exit(any([child.wait() for child in children]))
rank = int(sys.argv[4]) if ranks > 1 else 0
if ranks > 1:
    torch.distributed.init_process_group("gloo", init_method=f"file://{sys.argv[5]}", rank=rank, world_size=ranks)
torch.set_num_threads(threads)
torch.manual_seed(1)
fused = hasattr(F, "scaled_dot_product_attention")


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.c_attn, self.c_proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.fc, self.proj = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("mask", torch.tril(torch.ones(t, t)).view(1, 1, t, t))

    def forward(self, x):
        q, k, v = (y.view(batch, t, heads, -1).transpose(1, 2) for y in self.c_attn(self.ln_1(x)).split(width, 2))
        if fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = q @ k.transpose(-2, -1) / math.sqrt(k.size(-1))
            y = F.softmax(scores.masked_fill(self.mask == 0, float("-inf")), -1) @ v
        x = x + self.c_proj(y.transpose(1, 2).contiguous().view(batch, t, width))
        return x + self.proj(F.gelu(self.fc(self.ln_2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(vocabulary, width), nn.Embedding(t, width)
        self.blocks, self.ln_f = nn.Sequential(*(Block() for _ in range(layers))), nn.LayerNorm(width)

    def forward(self, tokens):
        x = self.blocks(self.wte(tokens) + self.wpe(torch.arange(t)))
        return self.ln_f(x) @ self.wte.weight.T


model = Model()
if ranks > 1:
    model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
matrices = [p for p in model.parameters() if p.dim() > 1]
others = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": matrices, "weight_decay": 0.1}, {"params": others, "weight_decay": 0}],
                              0.001, betas=(0.9, 0.99))
data = [(torch.randint(vocabulary, (batch, t)), torch.randint(vocabulary, (batch, t))) for _ in range(8)]


def step(x, y):
    loss = F.cross_entropy(model(x).view(-1, vocabulary), y.view(-1))
    optimizer.zero_grad(set_to_none=True)
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()


rate = ranks * median_rate(step, data, batch, steps // 4, steps, 3 if steps > 4 else 1)
if rank == 0:
    print(json.dumps({"bench": "torch_gpt", "threads": threads, "ranks": ranks, "examples_per_second": rate}))
