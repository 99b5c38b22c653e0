#!/usr/bin/python3
"""The peer of bench_wide_deep: 26 fields of 16 floats and of 1 in sparse embeddings, 13 numbers, layers 256, 128, 1;
one process, or two of PyTorch DDP over gloo, one thread each. Prints examples/s.
usage: wide_deep_torch.py sgd|adagrad ROWS PROCESSES          (one rank: … PROCESSES RANK STORE)"""
import os
import subprocess
import sys
import tempfile
import time

FIELDS, EXAMPLES, STEPS = 26, 512, 60
name, rows, processes = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])


def play(rank, store):
    import torch
    import torch.distributed as dist
    from torch import nn

    class WideDeep(nn.Module):
        def __init__(self):
            super().__init__()
            self.deep = nn.Embedding(FIELDS * rows, 16, sparse=True)
            self.wide = nn.Embedding(FIELDS * rows, 1, sparse=True)
            nn.init.normal_(self.deep.weight, 0, 0.01)
            nn.init.zeros_(self.wide.weight)
            self.layers = nn.Sequential(
                nn.Linear(FIELDS * 16 + 13, 256), nn.ReLU(), nn.Linear(256, 128), nn.ReLU(), nn.Linear(128, 1))
            self.numbers = nn.Linear(13, 1)

        def forward(self, ids, x):
            deep = self.layers(torch.cat((self.deep(ids).flatten(1), x), 1))
            return (deep + self.wide(ids).sum(1) + self.numbers(x)).squeeze(1)

    torch.set_num_threads(1)
    torch.manual_seed(1)
    model = WideDeep()
    if processes > 1:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=processes)
        model = nn.parallel.DistributedDataParallel(model)
    optimizer = {"sgd": torch.optim.SGD, "adagrad": torch.optim.Adagrad}[name](model.parameters(), 0.01)
    torch.manual_seed(100 + rank)
    offsets = torch.arange(FIELDS) * rows
    data = [(torch.randint(rows, (EXAMPLES, FIELDS)) + offsets, torch.randn(EXAMPLES, 13),
             torch.randint(2, (EXAMPLES,)).float()) for _ in range(16)]
    loss_of = nn.BCEWithLogitsLoss()

    def step(ids, x, y):
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(ids, x), y).backward()
        optimizer.step()

    for i in range(5):
        step(*data[i % 16])
    if processes > 1:
        dist.barrier()
    begun = time.perf_counter()
    for i in range(STEPS):
        step(*data[i % 16])
    if processes > 1:
        dist.barrier()
    if rank == 0:
        print(processes * EXAMPLES * STEPS / (time.perf_counter() - begun))


if len(sys.argv) > 4:
    play(int(sys.argv[4]), sys.argv[5])
else:
    environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:4], str(rank), folder + "/store"],
                                  env=environment) for rank in range(processes)]
        sys.exit(max(rank.wait() for rank in ranks))
