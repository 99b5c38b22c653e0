#!/usr/bin/python3
"""Training from Python, in turns, medians of ROUNDS with quartiles; one thread.

- Examples/s of the MLP 784-512-512-10 on Fashion-MNIST, batch 64, from numpy arrays over from the IDX files that have
  them.
- Seconds from the call to the end of the first step of the model dnn, with its model function in Python over the one
  in C, and the milliseconds of the function itself.

usage: bench/python_training.py [ROUNDS [STEPS]]   (after: tools/fetch-data fashion_mnist data/fashion-mnist)
"""
import gzip
import os
import statistics
import sys
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
os.environ.setdefault("BELFRY_LIBRARY", os.path.join(ROOT, "build/release/libbelfry.so"))
sys.path.insert(0, os.path.join(ROOT, "python"))

import ctypes  # noqa: E402

import numpy as np  # noqa: E402

import belfry  # noqa: E402
from belfry import layers, ops  # noqa: E402
from belfry.library import lib  # noqa: E402

FILES = [os.path.join(ROOT, "data/fashion-mnist", name)
         for name in ("train-images-idx3-ubyte.gz", "train-labels-idx1-ubyte.gz")]
spent = [0.0]  # seconds in the model function


def model_fn(ctx):
    begun = time.perf_counter()
    hidden = ctx.feature
    for number in range(2):
        hidden = layers.dense(hidden, 512, f"dense_{number}", activation="relu")
    logits = layers.dense(hidden, 10, "logits")
    spec = belfry.EstimatorSpec(predictions=ops.softmax(logits), optimizer=belfry.SGD(0.01),
                                loss=ops.mean(ops.softmax_cross_entropy(logits, ctx.labels)))
    spent[0] += time.perf_counter() - begun
    return spec


class BuiltIn(belfry.Estimator):
    """An estimator with the model function of C."""

    def __init__(self, config):
        self._handle, self._call, self.params = ctypes.c_void_p(), None, {}
        params = (lib.bel_param * 1)(lib.bel_param(name=b"optimizer", value=b"sgd"))
        lib.bel_model_find.restype = ctypes.POINTER(lib.bel_package)
        lib.bel_estimator_create(lib.bel_model_find(b"dnn").contents.model_fn, ctypes.byref(config.struct), params, 1,
                                 ctypes.byref(self._handle))


def train(data, steps, made):
    """The result of a training, and its seconds; made: makes the estimator of a config."""
    with tempfile.TemporaryDirectory() as folder:
        begun = time.perf_counter()
        with made(belfry.RunConfig(model_dir=folder, num_threads=1, report=False)) as estimator:
            result = estimator.train(lambda: data.shuffle(seed=1).repeat().batch(64), max_steps=steps)
        return result, time.perf_counter() - begun


def figure(name, words, ratios):
    low, middle, high = statistics.quantiles(ratios, n=4, method="inclusive") if len(ratios) > 1 else ratios * 3
    print(f"{words}: {middle:.3g} [{low:.3g}, {high:.3g}]", flush=True)
    if os.environ.get("BENCH_FIGURES"):
        with open(os.environ["BENCH_FIGURES"], "a", encoding="utf-8") as file:
            file.write(f"{name}\t{middle}\t{low}\t{high}\t{len(ratios)}\n")


def main(rounds=7, steps=2000):
    if not os.path.exists(FILES[0]):
        print(f"skipped: no {FILES[0]}; tools/fetch-data fashion_mnist data/fashion-mnist")
        return
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # the library's lines
    with gzip.open(FILES[0]) as images, gzip.open(FILES[1]) as labels:
        x = np.frombuffer(images.read(), np.uint8, offset=16).reshape(-1, 784).astype(np.float32) / 255
        y = np.frombuffer(labels.read(), np.uint8, offset=8).astype(np.int64)
    arrays = belfry.Dataset.from_memory(x, y)
    files = belfry.Dataset.from_idx(*FILES, scale=1 / 255, class_count=10)

    def in_python(config):
        return belfry.Estimator(model_fn, config=config)

    rates, ratios = [], []
    for _ in range(rounds):
        pair = [train(data, steps, in_python)[0].examples_per_second for data in (arrays, files)]
        rates.append(pair[0])
        ratios.append(pair[0] / pair[1])
    figure("python_training.arrays", f"numpy arrays, {statistics.median(rates):.0f} examples/s; over IDX files", ratios)

    starts, ratios = [], []
    small = belfry.Dataset.from_memory(x[:6400], y[:6400])
    spent[0] = 0.0
    for _ in range(5 * rounds):
        pair = [train(small, 1, made)[1] for made in (in_python, BuiltIn)]
        starts.append(pair[0])
        ratios.append(pair[0] / pair[1])
    own = 1000 * spent[0] / len(starts)
    figure("python_training.start", f"a run of one step, {1000 * statistics.median(starts):.1f} ms, of which the model "
           f"function has {own:.2f}; over one in C", ratios)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
