#!/usr/bin/python3
"""Memory of a step's values, as f32, as bfloat16, and with a part of them recomputed: bytes of the plan, the time of all
kernels on one thread in turns (medians), and the effect of bfloat16 on the training loss of Fashion-MNIST
(momentum 0.9, batches of 64), as means of windows of steps. usage: bench/activations.py [ROUNDS]   BELFRY=build/release/tools/belfry"""
import glob
import math
import os
import re
import statistics
import struct
import subprocess
import sys
import tempfile

BELFRY = os.environ.get("BELFRY", "build/release/tools/belfry")
ROUNDS = int(sys.argv[1]) if len(sys.argv) > 1 else 5
DATA = ["--data_dir", "data/fashion-mnist", "--train_files", "train-images-idx3-ubyte.gz,train-labels-idx1-ubyte.gz",
        "--feature_scale", "0.00392", "--train_batch_size", "64"]
MODELS = {"dnn": ["--hidden_units", "512,512"], "cnn": [], "resnet": [], "gru": ["--sequence_width", "28"]}
STEPS, WINDOW = 300, 50
UNITS = {"B": 1 / 2**20, "KiB": 1 / 2**10, "MiB": 1, "GiB": 2**10}


def run(*words):
    return subprocess.run([BELFRY, *words], check=True, capture_output=True, text=True)


def cost(model, flags):
    """MiB of the plan, and milliseconds of a step."""
    text = run("graph", "--cost", "--model", model, *MODELS[model], *DATA, *flags).stdout
    number, unit = re.search(r"; memory ([0-9.]+) (\w+),", text).groups()
    return float(number) * UNITS[unit], float(re.search(r"([0-9.]+) us on one thread", text).group(1)) / 1000


def fits(model, flags):
    words = [BELFRY, "graph", "--model", model, *MODELS[model], *DATA, *flags]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def fields(data):
    """Number, and integer or bytes, of each field of a protobuf message."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = data[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(data):
        key = varint()
        size = {1: 8, 5: 4}.get(key & 7)
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = varint() if size is None else size
        yield key >> 3, data[at:at + size]
        at += size


def losses(model, precision):
    """Means over windows of the loss of every step in the event file."""
    with tempfile.TemporaryDirectory() as folder:
        run("train", "--model", model, *MODELS[model], *DATA, "--model_dir", folder, "--no_report", "--precision", precision,
            "--optimizer", "momentum", "--learning_rate", "0.01", "--train_steps", str(STEPS), "--save_summary_steps", "1",
            "--save_checkpoints_secs", "0")
        with open(glob.glob(folder + "/events*")[0], "rb") as file:
            data = file.read()
    seen, at = [], 0
    while at < len(data):  # records: length, its checksum, an Event, its checksum
        size = struct.unpack_from("<Q", data, at)[0]
        for summary in (value for field, value in fields(data[at + 12:at + 12 + size]) if field == 5):
            for entry in (dict(fields(value)) for field, value in fields(summary) if field == 1):
                if entry[1] == b"loss":
                    seen.append(struct.unpack("<f", entry[2])[0])
        at += size + 16
    return [statistics.mean(seen[first:first + WINDOW]) for first in range(0, len(seen), WINDOW)]


subprocess.run(["tools/fetch-data", "fashion_mnist", "data/fashion-mnist"], check=True, stdout=subprocess.DEVNULL)
for model in MODELS:
    whole, _ = cost(model, [])
    ways = {"f32": [], "bf16": ["--precision", "bf16"]}
    for parts in (2, 3, 4) if whole > 8 else ():
        limit = ["--activation_memory", str(math.ceil(whole / parts))]
        for precision in list(ways)[:2]:
            ways[f"{precision} in 1/{parts}"] = ways[precision] + limit
    ways = {way: flags for way, flags in ways.items() if fits(model, flags)}
    figures = {way: [] for way in ways}
    for _ in range(ROUNDS):
        for way, flags in ways.items():
            figures[way].append(cost(model, flags))
    base = statistics.median(ms for _, ms in figures["f32"])
    for way, seen in figures.items():
        ms = statistics.median(ms for _, ms in seen)
        print(f"{model}, {way}: {seen[0][0]:.1f} MiB = {seen[0][0] / whole:.2f}, {ms:.1f} ms a step = {ms / base:.2f}")
    exact, bf16 = losses(model, "f32"), losses(model, "bf16")
    apart = max(abs(h / e - 1) for h, e in zip(bf16, exact))
    print(f"{model}: loss over steps {STEPS - WINDOW + 1} to {STEPS}: {exact[-1]:.4f}, bf16 {bf16[-1]:.4f}; windows of "
          f"{WINDOW} steps at most {100 * apart:.1f} % apart")
