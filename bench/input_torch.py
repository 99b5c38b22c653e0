#!/usr/bin/python3
"""The peer of bench_input: batches of a CSV file through numpy into tensors of PyTorch, and padded batches.

usage: input_torch.py make FILE                     writes 100,000 rows of 40 floats and a label
       input_torch.py loadtxt|fromstring FILE SECONDS
       input_torch.py padded WORKERS SECONDS
loadtxt and fromstring parse the lines of a batch in one call of numpy, in a DataLoader without workers, which is
faster than with them as nothing is copied between processes. The fastest of both is the peer."""
import json
import sys
import time

CSV_BATCH, PADDED_BATCH, WIDTH, LEAST, MOST, RECORDS = 256, 32, 40, 20, 100, 4096


def make(path):
    import numpy as np
    rng = np.random.default_rng(8)
    with open(path, "w", encoding="ascii") as out:
        out.write(",".join(f"f{i}" for i in range(WIDTH)) + ",label\n")
        for row in range(100000):
            out.write(",".join(f"{x:.4f}" for x in rng.standard_normal(WIDTH)) + f",{row % 10}\n")


def batches_of(way, path):
    import itertools

    import numpy as np
    import torch

    class Rows(torch.utils.data.IterableDataset):
        def __iter__(self):
            while True:
                with open(path, encoding="ascii") as lines:
                    next(lines)
                    while block := list(itertools.islice(lines, CSV_BATCH)):
                        if way == "loadtxt":
                            numbers = np.loadtxt(block, delimiter=",", dtype=np.float32)
                        else:
                            numbers = np.fromstring(",".join(block), dtype=np.float32, sep=",")
                            numbers = numbers.reshape(len(block), WIDTH + 1)
                        yield torch.from_numpy(numbers[:, :WIDTH]), torch.from_numpy(numbers[:, WIDTH]).long()

    return torch.utils.data.DataLoader(Rows(), batch_size=None)


def padded_batches(workers):
    import torch
    pool = torch.arange(MOST * WIDTH, dtype=torch.float32).view(MOST, WIDTH)

    class Steps(torch.utils.data.Dataset):
        def __len__(self):
            return RECORDS * 1000

        def __getitem__(self, number):
            return pool[:LEAST + number % RECORDS * 7919 % (MOST - LEAST + 1)]

    def pad(records):
        return (torch.nn.utils.rnn.pad_sequence(records, batch_first=True),)

    return torch.utils.data.DataLoader(Steps(), batch_size=PADDED_BATCH, num_workers=workers, collate_fn=pad)


def measure(kind, batches, seconds):
    source = iter(batches)
    next(source)
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        count += len(next(source)[0])
    print(json.dumps({"bench": "torch_input", "kind": kind,
                      "records_per_second": round(count / (time.perf_counter() - begun), 1)}), flush=True)


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    import torch
    torch.set_num_threads(1)
    if sys.argv[1] == "padded":
        measure("padded", padded_batches(int(sys.argv[2])), float(sys.argv[3]))
    else:
        measure(sys.argv[1], batches_of(sys.argv[1], sys.argv[2]), float(sys.argv[3]))
