#!/usr/bin/python3
"""The peers of bench/cluster_mlp: the same MLP in two processes of PyTorch over gloo, one thread each.

usage: cluster_mlp_torch.py ddp|flat|distribute BATCH     (one rank: … RANK STORE)
ddp: DistributedDataParallel. distribute: belfry.ddl.distribute instead, for bench/python, whose launcher gives each
rank its place. flat: a loop by hand, in which all parameters are views of one tensor and all gradients
of another, with one all-reduce and one update a step. BENCH_WIDTHS: the layers."""
import json
import os
import subprocess
import sys
import tempfile
import time

way, batch, steps = sys.argv[1], int(sys.argv[2]), 200
widths = [int(w) for w in os.environ.get("BENCH_WIDTHS", "784,512,512,10").split(",")]


def flatten(model):
    """The parameter that all of the model's parameters are views of, with its gradient."""
    import torch
    from torch import nn
    parts = list(model.parameters())
    whole = nn.Parameter(torch.cat([part.data.view(-1) for part in parts]))
    whole.grad = torch.zeros_like(whole)
    first = 0
    for part in parts:
        end = first + part.numel()
        part.data, part.grad = whole.data[first:end].view_as(part), whole.grad[first:end].view_as(part)
        first = end
    return whole


def play(rank, store):
    import torch
    import torch.distributed as dist
    from torch import nn

    torch.set_num_threads(1)
    if way == "distribute":
        import belfry.ddl as group
        group.init()
        rank = group.rank()
    else:
        group = dist
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    torch.manual_seed(1)
    layers = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU()]
    model = nn.Sequential(*layers[:-1])
    if way == "ddp":
        model = nn.parallel.DistributedDataParallel(model, gradient_as_bucket_view=True)
    flat = flatten(model) if way == "flat" else None
    optimizer = torch.optim.SGD(model.parameters() if flat is None else [flat], 0.01, momentum=0.9)
    if way == "distribute":
        optimizer = group.distribute(optimizer)
    data = [(torch.randn(batch, 784), torch.randint(10, (batch,))) for _ in range(8)]
    loss_of = nn.CrossEntropyLoss()

    def step(x, y):
        optimizer.zero_grad(set_to_none=flat is None)  # it is the faster way where it is possible
        loss = loss_of(model(x), y)
        (loss if flat is None else loss * 0.5).backward()
        if flat is not None:
            dist.all_reduce(flat.grad)
        optimizer.step()

    for i in range(20):
        step(*data[i % 8])
    group.barrier()
    begun = time.perf_counter()
    for i in range(steps):
        step(*data[i % 8])
    group.barrier()
    if rank == 0:
        rate = 2 * batch * steps / (time.perf_counter() - begun)
        print(json.dumps({"bench": "torch_" + way, "batch": batch, "examples_per_second": round(rate)}))
    if way == "distribute":
        group.finalize()


if len(sys.argv) > 3:
    play(int(sys.argv[3]), sys.argv[4])
else:
    environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, __file__, way, str(batch), str(rank), folder + "/store"],
                                  env=environment) for rank in range(2)]
        sys.exit(max(rank.wait() for rank in ranks))
