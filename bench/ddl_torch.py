#!/usr/bin/python3
"""The peer of bench_ddl: all_reduce of PyTorch over gloo, in place, consecutive calls, µs a call in
medians of rank 0. usage: ddl_torch.py RANKS ROUNDS LARGEST_MB
(one rank: ddl_torch.py RANKS ROUNDS LARGEST_MB RANK STORE)"""
import os
import statistics
import subprocess
import sys
import tempfile
import time

size, rounds, largest = int(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]) << 20


def play(rank, store):
    import torch
    import torch.distributed as dist

    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=size)
    length = 4096
    while length <= largest:
        data, times = torch.zeros(length // 4), []
        calls = int(30e-3 / (100e-6 + length * 1e-9)) + 1
        for turn in range(-1, rounds):
            dist.barrier()
            begun = time.perf_counter()
            for _ in range(calls):
                dist.all_reduce(data)
            if turn >= 0:
                times.append((time.perf_counter() - begun) * 1e6 / calls)
        if rank == 0:
            print(f"{length} {statistics.median(times):.2f}", flush=True)
        length *= 4


if len(sys.argv) > 4:
    play(int(sys.argv[4]), sys.argv[5])
else:
    environment = dict(os.environ, GLOO_SOCKET_IFNAME="lo", OMP_NUM_THREADS="1")
    with tempfile.TemporaryDirectory() as folder:
        ranks = [subprocess.Popen([sys.executable, __file__, *sys.argv[1:4], str(rank), folder + "/store"],
                                  env=environment) for rank in range(size)]
        sys.exit(max(process.wait() for process in ranks))
