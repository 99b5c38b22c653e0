"""A rank that trains a PyTorch model by belfry.ddl.distribute, and beside it a model by DistributedDataParallel of
PyTorch on the same batches; sums of two ranks have the same bits. Prints a digest, equal on all ranks.

usage: torch_ranks.py PORT BUCKET_BYTES"""
import contextlib
import hashlib
import os
import sys

import torch

import belfry
import belfry.ddl as ddl

ddl.init(timeout=60)
rank, size = ddl.rank(), ddl.size()
os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=sys.argv[1])
torch.distributed.init_process_group("gloo", rank=rank, world_size=size)
torch.set_num_threads(1)


def make():
    return torch.nn.Sequential(torch.nn.Linear(20, 64), torch.nn.BatchNorm1d(64), torch.nn.ReLU(),
                               torch.nn.Linear(64, 64), torch.nn.ReLU(), torch.nn.Linear(64, 5))


def digest(model):
    return hashlib.md5(b"".join(p.detach().numpy().tobytes() for p in model.parameters())).hexdigest()


torch.manual_seed(rank)
ours, theirs = make(), make()
optimizer = ddl.distribute(torch.optim.Adam(ours.parameters(), lr=0.01), model=ours, bucket_bytes=int(sys.argv[2]))
theirs.load_state_dict(ours.state_dict())
wrapped = torch.nn.parallel.DistributedDataParallel(theirs, broadcast_buffers=False)
reference = torch.optim.Adam(wrapped.parameters(), lr=0.01)
schedules = [torch.optim.lr_scheduler.StepLR(one, 4, 0.5) for one in (optimizer, reference)]
generator = torch.Generator().manual_seed(100 + rank)
for step in range(12):
    batches = [(torch.randn(8, 20, generator=generator), torch.randint(0, 5, (8,), generator=generator))
               for _ in range(1 + step % 2)]  # every other step accumulates over two
    optimizer.zero_grad(set_to_none=step % 3 == 0)
    reference.zero_grad()
    for index, (x, y) in enumerate(batches):
        for model, syncs in ((ours, optimizer), (wrapped, wrapped)):
            with contextlib.nullcontext() if index + 1 == len(batches) else syncs.no_sync():
                torch.nn.functional.cross_entropy(model(x), y).backward()
    for model in (ours, wrapped):
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    reference.step()
    for schedule in schedules:
        schedule.step()
assert digest(ours) == digest(theirs), "other bits than DistributedDataParallel"

# A parameter without a gradient on one rank, a step that is left out, and a second backward pass that comes too late.
two = torch.nn.ModuleList([torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)])
optimizer = ddl.distribute(torch.optim.SGD(two.parameters(), lr=1), bucket_bytes=1)
for step in range(3):
    optimizer.zero_grad()
    two[rank % 2](torch.ones(1, 2)).sum().backward()
    if step != 1:
        optimizer.step()
done = digest(two)
assert not torch.equal(two[0].weight.grad, torch.zeros(2, 2)) and not torch.equal(two[1].weight.grad, torch.zeros(2, 2))
try:
    optimizer.zero_grad()
    for _ in range(2):
        (two[0](torch.ones(1, 2)) + two[1](torch.ones(1, 2))).sum().backward()
except belfry.FailedPreconditionError as error:
    assert "no_sync" in str(error), error
else:
    raise AssertionError("a late backward pass was accepted")
for call, words in ((lambda: ddl.distribute(optimizer), "distributed already"),
                    (lambda: optimizer.step(lambda: 0), "no closure"),
                    (lambda: [optimizer.add_param_group({"params": [torch.zeros(2, requires_grad=True)]}),
                              optimizer.step()], "after all of them are added"),
                    (lambda: ddl.distribute(torch.optim.SGD([torch.zeros(2)], lr=1)), "no parameter to train")):
    try:
        call()
    except belfry.Error as error:
        assert words in str(error), error
    else:
        raise AssertionError("no error: " + words)
table = torch.nn.Embedding(4, 2, sparse=True)
optimizer = ddl.distribute(torch.optim.SGD(table.parameters(), lr=1))
try:
    table(torch.tensor([1])).sum().backward()
except belfry.InvalidArgumentError as error:
    assert "expected dense gradients, got one with layout torch.sparse_coo" in str(error), error
else:
    raise AssertionError("a sparse gradient was accepted")
ddl.finalize()
for call in (lambda: two[0](torch.ones(1, 2)).sum().backward(), optimizer.step):
    try:
        call()
    except belfry.FailedPreconditionError as error:
        assert "ddl.init() first" in str(error), error
    else:
        raise AssertionError("a step without a group")
sys.stdout.write(f"{digest(ours)} {done}\n")  # in one piece, as the ranks share stdout
