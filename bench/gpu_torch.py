"""The rows of bench_gpu in PyTorch on a GPU: eager, and by torch.compile. usage: gpu_torch.py [ROUNDS]

Prints a line in JSON for each; exit code 3: there is no PyTorch with CUDA."""
import json
import sys
import time

try:
    import torch
    from torch import nn
except ImportError:
    sys.exit(3)
if not torch.cuda.is_available():
    sys.exit(3)
rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 5


def dnn():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def cnn():
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 49, 1024),
        nn.ReLU(), nn.Linear(1024, 10))


def rate(make, batch, steps, compiled):
    torch.manual_seed(0)
    model = make().cuda()
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    images = torch.rand(2048, 784).pin_memory()
    labels = torch.randint(0, 10, (2048,)).pin_memory()
    loss_of = nn.CrossEntropyLoss()

    def step(i):
        at = i * batch % (2048 - batch + 1)
        x = images[at:at + batch].cuda(non_blocking=True)
        y = labels[at:at + batch].cuda(non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        loss_of(run(x), y).backward()
        optimizer.step()

    for i in range(20):
        step(i)
    rates = []
    for _ in range(rounds):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for i in range(steps):
            step(i)
        torch.cuda.synchronize()
        rates.append(steps * batch / (time.perf_counter() - begun))
    return sorted(rates)[rounds // 2]


def product(n):
    a = torch.zeros(n, n).pin_memory()
    b = torch.zeros(n, n).pin_memory()

    def once():
        return float((a.cuda(non_blocking=True) @ b.cuda(non_blocking=True)).sum())

    for _ in range(3):
        once()
    begun = time.perf_counter()
    for _ in range(20):
        once()
    return 2 * n ** 3 * 20 / (time.perf_counter() - begun) * 1e-12


def say(row, unit, value, kind):
    print(json.dumps({"row": row, "unit": unit, "value": value, "kind": kind}), flush=True)


for kind, compiled in (("eager", False), ("compiled", True)):
    for name, make, batch, steps in (("dnn", dnn, 64, 1000), ("dnn", dnn, 1024, 300), ("cnn", cnn, 64, 300)):
        say(f"{name} {batch}", "examples/s", rate(make, batch, steps, compiled), kind)
torch.backends.cuda.matmul.allow_tf32 = False
for size in (1024, 4096):
    say(f"product {size} with copies in", "TFLOP/s", product(size), "eager")
