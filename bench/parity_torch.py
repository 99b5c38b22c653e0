#!/usr/bin/python3
"""Parity with PyTorch: from Belfry's initial values and the same batches of the bundled digits, 100 steps of SGD with
each model. Prints the largest relative difference of the training loss at several steps between Belfry and PyTorch
in double. PyTorch in f32 beside it shows the part of rounding.
usage: bench/parity_torch.py [MODEL ...]     BELFRY=build/release/tools/belfry"""
import csv
import json
import os
import struct
import subprocess
import sys
import tempfile

import torch
from torch import nn

BATCH, STEPS = 64, (1, 10, 30, 100)
RATES = {"resnet": 0.0001}  # with 0.01 mere rounding, in any order, grows to some percent in 100 steps
BELFRY = os.environ.get("BELFRY", "build/release/tools/belfry")


def rate_of(model):
    return RATES.get(model, 0.01)


def run(model, folder, steps):
    """Belfry's loss in the last of `steps` steps."""
    out = subprocess.run(
        [BELFRY, "train", "--model", model, "--model_dir", folder, "--quiet", "--no_report", "--train_files",
         "examples/data/digits-train.csv", "--feature_scale", "0.0625", "--shuffle_buffer", "1", "--optimizer", "sgd",
         "--learning_rate", str(rate_of(model)), "--train_batch_size", str(BATCH), "--train_steps", str(steps),
         "--sequence_width", "8"],
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
        tensors[name] = torch.cat(parts).reshape(tensor["shape"])
    return tensors


def read_csv(path):
    rows = list(csv.reader(open(path)))[1:]
    x = torch.tensor([[float(v) for v in row[:-1]] for row in rows], dtype=torch.float64) * 0.0625
    return x, torch.tensor([int(row[-1]) for row in rows])


# Layers with Belfry's initial values.

def dense(start, name):
    kernel = start[name + "/kernel"]
    layer = nn.Linear(kernel.shape[0], kernel.shape[1])
    layer.weight.data, layer.bias.data = kernel.t().contiguous(), start[name + "/bias"]
    return layer


def conv(start, name, bias, stride=1):
    kernel = start[name + "/kernel"]
    layer = nn.Conv2d(kernel.shape[1], kernel.shape[0], kernel.shape[2], stride, kernel.shape[2] // 2, bias=bias)
    layer.weight.data = kernel
    if bias:
        layer.bias.data = start[name + "/bias"]
    return layer


class Residual(nn.Module):
    def __init__(self, start):
        super().__init__()
        self.blocks = nn.ModuleList()
        self.first = self.conv_norm(start, "first", 1)
        for stage in range(3):
            for block in range(3):
                self.blocks.append(self.block(start, f"block_{stage}_{block}", 2 if stage > 0 and block == 0 else 1))
        self.logits = dense(start, "logits")

    @staticmethod
    def conv_norm(start, name, stride):
        norm = nn.BatchNorm2d(start[name + "/scale"].shape[0])
        norm.weight.data, norm.bias.data = start[name + "/scale"], start[name + "/bias"]
        layer = conv(start, name, False, stride)
        if stride == 2 and layer.kernel_size[0] == 3:  # SAME pads an even size only at the end
            layer.padding = (0, 0)
            return nn.Sequential(nn.ZeroPad2d((0, 1, 0, 1)), layer, norm)
        return nn.Sequential(layer, norm)

    def block(self, start, name, stride):
        parts = {"a": self.conv_norm(start, name + "/a", stride), "b": self.conv_norm(start, name + "/b", 1)}
        if name + "/short/kernel" in start:
            parts["short"] = self.conv_norm(start, name + "/short", stride)
        return nn.ModuleDict(parts)

    def forward(self, x):
        h = torch.relu(self.first(x.reshape(-1, 1, 8, 8)))
        for block in self.blocks:
            y = block["b"](torch.relu(block["a"](h)))
            h = torch.relu(y + (block["short"](h) if "short" in block else h))
        return self.logits(h.mean((2, 3)))


class Recurrent(nn.Module):
    """Belfry's gates are z, r, n and i, o, f, c; PyTorch's r, z, n and i, f, c, o."""

    def __init__(self, start, kind, order):
        super().__init__()
        kernel, recurrent, bias = (start["rnn_0/" + name] for name in ("kernel", "recurrent_kernel", "bias"))
        units = recurrent.shape[1]
        self.layer = kind(kernel.shape[1], units, batch_first=True)

        def arranged(x):
            gates = x.split(units)
            return torch.cat([gates[i] for i in order])
        self.layer.weight_ih_l0.data, self.layer.weight_hh_l0.data = arranged(kernel), arranged(recurrent)
        half = bias.shape[0] // 2
        self.layer.bias_ih_l0.data, self.layer.bias_hh_l0.data = arranged(bias[:half]), arranged(bias[half:])
        self.logits = dense(start, "logits")

    def forward(self, x):
        return self.logits(self.layer(x.reshape(-1, 8, 8))[0][:, -1])


MODELS = {
    "linear": lambda s: dense(s, "logits"),
    "dnn": lambda s: nn.Sequential(dense(s, "dense_0"), nn.ReLU(), dense(s, "dense_1"), nn.ReLU(), dense(s, "logits")),
    "cnn": lambda s: nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)), conv(s, "conv_0", True), nn.ReLU(), nn.MaxPool2d(2), conv(s, "conv_1", True),
        nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), dense(s, "dense_0"), nn.ReLU(), dense(s, "logits")),
    "resnet": Residual,
    "gru": lambda s: Recurrent(s, nn.GRU, (1, 0, 2)),
    "lstm": lambda s: Recurrent(s, nn.LSTM, (0, 2, 3, 1)),
}


def train(model, rate, dtype, x, y):
    """PyTorch's losses at STEPS."""
    model = model.to(dtype)
    x = x.to(dtype)
    optimizer = torch.optim.SGD(model.parameters(), rate)
    losses = {}
    for s in range(1, max(STEPS) + 1):
        at = [(i + (s - 1) * BATCH) % len(x) for i in range(BATCH)]
        optimizer.zero_grad()
        loss = nn.functional.cross_entropy(model(x[at]), y[at])
        losses[s] = loss.item()
        loss.backward()
        optimizer.step()
    return losses


def main():
    x, y = read_csv("examples/data/digits-train.csv")
    for name in sys.argv[1:] or MODELS:
        with tempfile.TemporaryDirectory() as work:
            ours = {s: run(name, os.path.join(work, str(s)), s) for s in STEPS}
            start = read_start(os.path.join(work, "1"))
        copy = {key: value.clone() for key, value in start.items()}
        exact = train(MODELS[name](start), rate_of(name), torch.float64, x, y)
        rounded = train(MODELS[name](copy), rate_of(name), torch.float32, x, y)
        worst = max(abs(ours[s] - exact[s]) / exact[s] for s in STEPS)
        rounding = max(abs(rounded[s] - exact[s]) / exact[s] for s in STEPS)
        mark = 1e-4 if name == "resnet" else 1e-5
        print(f"{name}: Belfry {worst:.1e}, PyTorch in f32 {rounding:.1e}, mark {mark:.0e}, "
              f"loss {exact[STEPS[0]]:.6f} -> {exact[STEPS[-1]]:.6f}")


main()
