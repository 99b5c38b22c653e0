#!/usr/bin/python3
"""The peer of bench/cluster_mlp: the same MLP in two processes of PyTorch DDP over gloo, one thread
each. BENCH_WIDTHS: its layers. usage: cluster_mlp_torch.py BATCH          (one rank: cluster_mlp_torch.py BATCH RANK STORE)"""
import json
import os
import subprocess
import sys
import tempfile
import time

batch, steps = int(sys.argv[1]), 200
widths = [int(w) for w in os.environ.get("BENCH_WIDTHS", "784,512,512,10").split(",")]


def play(rank, store):
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(1)
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    optimizer = torch.optim.SGD(model.parameters(), 0.01, momentum=0.9)
    data = [(torch.randn(batch, 784), torch.randint(10, (batch,))) for _ in range(8)]
    loss_of = nn.CrossEntropyLoss()

    def step(x, y):
        optimizer.zero_grad(set_to_none=False)
        loss_of(model(x), y).backward()
        optimizer.step()

    for i in range(20):
        step(*data[i % 8])
    dist.barrier()
    begun = time.perf_counter()
    for i in range(steps):
        step(*data[i % 8])
    dist.barrier()
    if rank == 0:
        rate = 2 * batch * steps / (time.perf_counter() - begun)
        print(json.dumps({"bench": "torch_ddp", "batch": batch, "examples_per_second": round(rate)}))


if len(sys.argv) > 2:
    play(int(sys.argv[2]), sys.argv[3])
else:
    environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, __file__, str(batch), str(rank), folder + "/store"],
                                  env=environment) for rank in range(2)]
        sys.exit(max(rank.wait() for rank in ranks))
