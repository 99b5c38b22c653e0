#!/usr/bin/python3
"""The same results as PyTorch: from Belfry's initial values and the same batches of the bundled digits, 100
steps of SGD with the model cnn. Prints the loss over the evaluation set at several steps, Belfry's and
PyTorch's (in double), and the largest relative difference. usage: bench/cnn_parity_torch.py [BELFRY]"""
import csv
import json
import os
import struct
import subprocess
import sys
import tempfile

import torch
from torch import nn

BATCH, RATE, STEPS = 64, 0.01, (1, 10, 30, 100)
belfry = sys.argv[1] if len(sys.argv) > 1 else "build/release/tools/belfry"


def run(folder, steps):
    """Belfry's evaluation loss after so many steps."""
    out = subprocess.run(
        [belfry, "train_and_evaluate", "--model", "cnn", "--model_dir", folder, "--quiet", "--no_report",
         "--train_files", "examples/data/digits-train.csv", "--eval_files", "examples/data/digits-eval.csv",
         "--feature_scale", "0.0625", "--shuffle_buffer", "1", "--optimizer", "sgd", "--learning_rate", str(RATE),
         "--train_batch_size", str(BATCH), "--train_steps", str(steps)],
        check=True, capture_output=True, text=True).stdout
    return float(next(line.split()[1] for line in out.splitlines() if line.startswith("loss ")))


def read_start(folder):
    """Variables of ckpt-0 by its manifest: tensors in pieces of safetensors files (a length, JSON, elements)."""
    folder = os.path.join(folder, "ckpt-00000000")
    manifest = json.load(open(os.path.join(folder, "manifest.json")))
    pieces = {}
    for name in os.listdir(folder):
        if name.endswith(".safetensors"):
            data = open(os.path.join(folder, name), "rb").read()
            size = struct.unpack("<Q", data[:8])[0]
            for key, entry in json.loads(data[8:8 + size]).items():
                if key != "__metadata__" and entry["dtype"] == "F32":
                    first, last = entry["data_offsets"]
                    part = bytearray(data[8 + size + first:8 + size + last])
                    pieces[key] = torch.frombuffer(part, dtype=torch.float32)
    tensors = {}
    for tensor in manifest["tensors"]:
        name = tensor["name"]
        parts = [pieces[name if name in pieces else f"{name}#{first}"] for _, first, _ in tensor["pieces"]]
        tensors[name] = torch.cat(parts).reshape(tensor["shape"]).double()
    return tensors


def read_csv(path):
    rows = list(csv.reader(open(path)))[1:]
    x = torch.tensor([[float(v) for v in row[:-1]] for row in rows], dtype=torch.float64) * 0.0625
    return x.reshape(-1, 1, 8, 8), torch.tensor([int(row[-1]) for row in rows])


def make_model(start):
    model = nn.Sequential(
        nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).double()
    for layer, name in ((0, "conv_0"), (3, "conv_1"), (7, "dense_0"), (9, "logits")):
        kernel = start[name + "/kernel"]
        model[layer].weight.data = kernel if kernel.dim() == 4 else kernel.t().contiguous()
        model[layer].bias.data = start[name + "/bias"]
    return model


work = tempfile.mkdtemp()
ours = {s: run(os.path.join(work, str(s)), s) for s in STEPS}
model = make_model(read_start(os.path.join(work, "1")))
optimizer = torch.optim.SGD(model.parameters(), RATE)
loss_of = nn.CrossEntropyLoss()
x, y = read_csv("examples/data/digits-train.csv")
eval_x, eval_y = read_csv("examples/data/digits-eval.csv")
worst = 0.0
for s in range(1, max(STEPS) + 1):
    at = [(i + (s - 1) * BATCH) % len(x) for i in range(BATCH)]
    optimizer.zero_grad()
    loss_of(model(x[at]), y[at]).backward()
    optimizer.step()
    if s in STEPS:
        with torch.no_grad():
            theirs = loss_of(model(eval_x), eval_y).item()
        difference = abs(ours[s] - theirs) / theirs
        worst = max(worst, difference)
        print(f"step {s}: Belfry {ours[s]:.9f}, PyTorch {theirs:.9f}, relative difference {difference:.1e}")
print(f"largest relative difference {worst:.1e}")
subprocess.run(["rm", "-r", work], check=True)
