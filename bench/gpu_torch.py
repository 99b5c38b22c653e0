"""The rows of bench_gpu in PyTorch on a GPU: eager, and by torch.compile.
usage: gpu_torch.py [ROUNDS [ROW [KIND]]] (rows whose names have ROW; KIND: eager or compiled)

Prints a line in JSON for each; exit code 3: no PyTorch with CUDA."""
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
wanted = sys.argv[2] if len(sys.argv) > 2 else ""
kinds = sys.argv[3:] or ["eager", "compiled"]
torch.backends.cudnn.benchmark = True


def dnn():
    return nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))


def wide():
    layers, inputs = [], 784
    for _ in range(3):
        layers += [nn.Linear(inputs, 4096), nn.ReLU()]
        inputs = 4096
    return nn.Sequential(*layers, nn.Linear(inputs, 10))


def cnn():
    return nn.Sequential(
        nn.Unflatten(1, (1, 28, 28)), nn.Conv2d(1, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(32, 64, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(64 * 49, 1024),
        nn.ReLU(), nn.Linear(1024, 10))


class Block(nn.Module):
    def __init__(self, inputs, filters, stride):
        super().__init__()
        self.a = conv_norm(inputs, filters, 3, stride)
        self.b = conv_norm(filters, filters, 3, 1)
        self.short = nn.Identity() if stride == 1 and inputs == filters else conv_norm(inputs, filters, 1, stride)

    def forward(self, x):
        return torch.relu(self.b(torch.relu(self.a(x))) + self.short(x))


def conv_norm(inputs, filters, size, stride):
    return nn.Sequential(nn.Conv2d(inputs, filters, size, stride, size // 2, bias=False), nn.BatchNorm2d(filters))


def resnet():
    layers = [nn.Unflatten(1, (1, 28, 28)), conv_norm(1, 64, 3, 1), nn.ReLU()]
    inputs = 64
    for stage in range(3):
        for block in range(3):
            filters = 64 << stage
            layers.append(Block(inputs, filters, 2 if stage > 0 and block == 0 else 1))
            inputs = filters
    layers += [nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(inputs, 10)]
    return nn.Sequential(*layers).to(memory_format=torch.channels_last)


def set_math(math):
    """Returns the context of a forward pass."""
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = math == "tf32"
    return torch.autocast("cuda", torch.bfloat16, enabled=math == "bf16")


def rate(make, batch, steps, compiled, math):
    torch.manual_seed(0)
    torch._dynamo.reset()
    within = set_math(math)
    model = make().cuda()
    run = torch.compile(model) if compiled else model
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    records = max(2048, batch)
    images = torch.rand(records, 784).pin_memory()
    labels = torch.randint(0, 10, (records,)).pin_memory()
    loss_of = nn.CrossEntropyLoss()

    def step(i):
        at = i * batch % (records - batch + 1)
        x = images[at:at + batch].cuda(non_blocking=True)
        y = labels[at:at + batch].cuda(non_blocking=True)
        optimizer.zero_grad(set_to_none=True)
        with within:
            loss = loss_of(run(x), y)
        loss.backward()
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


def operand(n):
    """Random numbers: a GPU is faster on zeros."""
    return (torch.rand(n, n) - 0.5) * 5 / n ** 0.5


def products(n, math, layers=16):
    within = set_math(math)
    a = operand(n).pin_memory()
    weights = [operand(n).cuda() for _ in range(layers)]

    def once():
        with torch.no_grad(), within:
            y = a.cuda(non_blocking=True)
            for w in weights:
                y = torch.relu(y @ w)
            return float(y.sum())

    for _ in range(3):
        once()
    begun = time.perf_counter()
    for _ in range(10):
        once()
    return 2 * layers * n ** 3 * 10 / (time.perf_counter() - begun) * 1e-12


def peak(n, math, layers=16):
    """Only cuBLAS: the products of products(), in allocated memory."""
    set_math(math)
    kind = torch.bfloat16 if math == "bf16" else torch.float32
    a, b = operand(n).cuda().to(kind), operand(n).cuda().to(kind)
    y = torch.empty(n, n, device="cuda", dtype=kind)
    rates = []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(10 * layers):
            torch.mm(a, b, out=y)
        torch.cuda.synchronize()
        rates.append(2 * layers * n ** 3 * 10 / (time.perf_counter() - begun) * 1e-12)
    return sorted(rates[1:])[rounds // 2]


def step_peak(batch, math):
    """Only cuBLAS: examples/s if a step of wide() were only its products."""
    set_math(math)
    kind = torch.bfloat16 if math == "bf16" else torch.float32
    sizes = [784, 4096, 4096, 4096, 10]
    xs = [(torch.rand(batch, n, device="cuda") - 0.5).to(kind) for n in sizes]
    ws = [(torch.rand(a, b, device="cuda") - 0.5).to(kind) for a, b in zip(sizes, sizes[1:])]

    def once():
        for i, w in enumerate(ws):
            torch.mm(xs[i], w)
            torch.mm(xs[i].t(), xs[i + 1])
            if i > 0:
                torch.mm(xs[i + 1], w.t())

    rates = []
    for _ in range(rounds + 1):
        torch.cuda.synchronize()
        begun = time.perf_counter()
        for _ in range(10):
            once()
        torch.cuda.synchronize()
        rates.append(10 * batch / (time.perf_counter() - begun))
    return sorted(rates[1:])[rounds // 2]


def update(millions):
    values = torch.zeros(millions * 1000000, device="cuda", requires_grad=True)
    values.grad = torch.zeros_like(values)
    adam = torch.optim.Adam([values], fused=True)
    for _ in range(3):
        adam.step()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(10):
        adam.step()
        torch.cuda.synchronize()
    return 7 * 4 * values.numel() * 10 / (time.perf_counter() - begun) * 1e-9


def attention(t, math):
    within = set_math(math)
    x = [(torch.rand(8, 8, t, 64, device="cuda") * 2 - 1).requires_grad_() for _ in range(3)]

    def once():
        for operand in x:
            operand.grad = None
        with within:
            y = nn.functional.scaled_dot_product_attention(*x, is_causal=True)
            loss = y.float().square().sum()
        loss.backward()

    for _ in range(3):
        once()
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(10):
        once()
    torch.cuda.synchronize()
    return 7 * 64 * t * t * 64 * 10 / (time.perf_counter() - begun) * 1e-12


def say(row, unit, kind, measure, *arguments):
    if wanted in row and (kind in kinds or kind == "peak"):
        print(json.dumps({"row": row, "unit": unit, "value": measure(*arguments), "kind": kind}), flush=True)


ROWS = [("dnn", dnn, 64, 1000, ""), ("dnn", dnn, 1024, 300, ""), ("cnn", cnn, 64, 300, ""), ("resnet", resnet, 256, 20, "")]
for name in ("tf32", "bf16"):
    ROWS += [("dnn", dnn, 1024, 300, name), ("cnn", cnn, 64, 300, name), ("resnet", resnet, 256, 60, name),
             ("wide", wide, 16384, 40, name)]
for kind, compiled in (("eager", False), ("compiled", True)):
    for name, make, batch, steps, math in ROWS:
        say(f"{name} {batch} {math}".rstrip(), "examples/s", kind, rate, make, batch, steps, compiled, math)
for name in ("tf32", "bf16"):
    say(f"wide 16384 {name}", "examples/s", "peak", step_peak, 16384, name)
say("update 100M adam", "GB/s", "eager", update, 100)
for name in ("", "tf32", "bf16"):
    row = f"16 products 4096 {name}".rstrip()
    say(row, "TFLOP/s", "eager", products, 4096, name)
    say(row, "TFLOP/s", "peak", peak, 4096, name)
    for length in (128, 512, 2048):
        say(f"attention {length} {name}".rstrip(), "TFLOP/s", "eager", attention, length, name)
