#!/usr/bin/python3
"""The peer of bench_ps_step: two processes of PyTorch that add up gradients over gloo, and each
apply the update. Prints the median of a step in ms. usage: ps_step_torch.py MILLIONS STEPS
(one rank: ps_step_torch.py MILLIONS STEPS RANK STORE)"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

elements, steps = int(float(sys.argv[1]) * 1e6), int(sys.argv[2])
WARM = 3


def play(rank, store):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    values, gradients = torch.zeros(elements), torch.full((elements,), 1e-3)
    times = []
    for _ in range(WARM + steps):
        dist.barrier()  # both have filled their gradients
        begun = time.perf_counter()
        dist.all_reduce(gradients)
        values.add_(gradients, alpha=-0.005)
        times.append(time.perf_counter() - begun)
        gradients.fill_(1e-3)
    if rank == 0:
        print(f"{statistics.median(times[WARM:]) * 1e3:.3f}")


if len(sys.argv) > 3:
    play(int(sys.argv[3]), sys.argv[4])
else:
    environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:3], str(rank), folder + "/store"],
                                  env=environment) for rank in range(2)]
        sys.exit(max(rank.wait() for rank in ranks))
