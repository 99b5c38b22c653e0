#!/usr/bin/env python3
"""Writes oracle.txt: PyTorch's results, in double, for every row of cases.def.

Run it after adding a row (it needs python3-torch; the tests read only the stored numbers):

    python3 tests/op/oracle.py

A line is `case elements step values...`: at most SAMPLES elements of output 0, at even
intervals. Inputs follow the formula of op_case.h; floats are rounded to f32.
"""
import math
import os
import re

import torch
import torch.nn.functional as F

SAMPLES = 48
HERE = os.path.dirname(os.path.abspath(__file__))
RANGES = {"f": (-2.0, 2.1), "q": (-3.0, 3.0), "i": (0.0, 3.0), "b": (0.0, 2.0)}


def make_input(kind, dims, low, high, number):
    count = math.prod(dims)
    unit = [((i * 7919 + 104729 * (number + 1)) % 2003) / 2002.0 for i in range(count)]
    if kind == "f":
        values = torch.tensor([low + (high - low) * u for u in unit], dtype=torch.float64)
        values = values.float().double()
    else:
        span = high - low + (1 if kind == "q" else 0)
        whole = [min(math.floor(low + span * u), low + span - 1) for u in unit]
        dtype = {"q": torch.float64, "i": torch.int64, "b": torch.bool}[kind]
        values = torch.tensor(whole, dtype=torch.float64).to(dtype)
    return values.reshape(dims)


def parse_inputs(text):
    inputs = []
    for number, word in enumerate(text.split()):
        kind, dims, low, high = re.fullmatch(
            r"([fqib])\[([\d,]*)\](?::([^:]+):([^:]+))?", word).groups()
        if low is None:
            low, high = RANGES[kind]
        dims = [int(d) for d in dims.split(",") if d]
        inputs.append(make_input(kind, dims, float(low), float(high), number))
    return inputs


def parse_attrs(text):
    attrs = {}
    for word in text.split():
        name, value = word.split("=")
        attrs[name] = ([int(v) for v in value[1:-1].split(",") if v] if value[0] == "["
                       else float(value))
    return attrs


def reduction(function):
    def run(attrs, x):
        axes = attrs.get("axes", list(range(x.dim())))
        return function(x, axes, attrs.get("keepdims", 0) != 0) if axes else function(
            x.reshape(1), [0], False)
    return run


def gemm(attrs, a, b, c=None):
    a = a.t() if attrs.get("transA") else a
    b = b.t() if attrs.get("transB") else b
    y = attrs.get("alpha", 1.0) * (a @ b)
    return y if c is None else y + attrs.get("beta", 1.0) * c


def sum_to(attrs, x, like):
    return x.sum_to_size(like.shape)


def broadcast_to(attrs, x, like):
    for axis in attrs.get("axes", []):
        x = x.unsqueeze(axis)
    return x.expand_as(like)


def gather_grad(attrs, dy, indices, data):
    return torch.zeros_like(data).index_add(int(attrs.get("axis", 0)), indices, dy)


def gather(attrs, data, indices):
    axis = int(attrs.get("axis", 0)) % data.dim()
    shape = data.shape[:axis] + indices.shape + data.shape[axis + 1:]
    return data.index_select(axis, indices.reshape(-1)).reshape(shape)


def leaky_relu(attrs, x):
    return F.leaky_relu(x, attrs.get("alpha", 0.01))


def elu(attrs, x):
    return F.elu(x, attrs.get("alpha", 1.0))


def hard_sigmoid(attrs, x):
    return (attrs.get("alpha", 0.2) * x + attrs.get("beta", 0.5)).clamp(0, 1)


def clip(attrs, x):
    return x.clamp(attrs.get("min"), attrs.get("max"))


def slices(attrs, x):
    """Lists of indices for every dimension: torch has no negative steps."""
    lists = [list(range(size)) for size in x.shape]
    axes = attrs.get("axes", range(len(attrs["starts"])))
    steps = attrs.get("steps", [1] * len(attrs["starts"]))
    for axis, start, end, step in zip(axes, attrs["starts"], attrs["ends"], steps):
        lists[axis] = list(range(x.shape[axis]))[slice(start, end, step)]
    return torch.meshgrid([torch.tensor(places) for places in lists], indexing="ij")


def slice_grad(attrs, dy, x):
    dx = torch.zeros_like(x)
    dx[slices(attrs, x)] = dy
    return dx


def pad(attrs, x):
    """By hand, dimension by dimension, as torch does not pad leading dimensions by reflection."""
    mode = attrs.get("mode", 0)
    for d, (before, behind) in enumerate(zip(attrs["pads_before"], attrs["pads_behind"])):
        size = x.shape[d]
        places = torch.arange(-before, size + behind)
        inside = (places >= 0) & (places < size)
        if mode == 2:
            places = torch.where(places < 0, -places, places)
            places = torch.where(places >= size, 2 * (size - 1) - places, places)
        x = x.index_select(d, places.clamp(0, size - 1))
        if mode == 0:
            shape = [1] * x.dim()
            shape[d] = -1
            value = torch.tensor(attrs.get("value", 0.0)).to(x.dtype)
            x = torch.where(inside.reshape(shape), x, value)
    return x


def cross_entropy_grad(attrs, dy, log_p, labels):
    hot = F.one_hot(labels, log_p.shape[1]).double()
    return (log_p.exp() - hot) * dy.unsqueeze(1)


def one_hot(attrs, indices):
    return (indices.unsqueeze(-1) == torch.arange(int(attrs["depth"]))).double()


def window(attrs, x, kernel):
    """x padded as the attributes say (pads before, then after, by dimension), the pads, strides and
    dilations."""
    n = len(kernel)
    strides = attrs.get("strides", [1] * n)
    dilations = attrs.get("dilations", [1] * n)
    pads = attrs.get("pads", [0] * (2 * n))
    auto = int(attrs.get("auto_pad", 0))
    if auto in (1, 2):
        before, behind = [], []
        for size, k, s, d in zip(x.shape[2:], kernel, strides, dilations):
            total = max(0, (-(-size // s) - 1) * s + (k - 1) * d + 1 - size)
            before.append(total // 2 if auto == 1 else total - total // 2)
            behind.append(total - before[-1])
        pads = before + behind
    return pads, strides, dilations


def padded(x, pads, value=0.0):
    n = len(pads) // 2
    flat = []
    for d in reversed(range(n)):
        flat += [pads[d], pads[n + d]]
    return F.pad(x, flat, value=value)


def conv(attrs, x, w, bias=None):
    pads, strides, dilations = window(attrs, x, w.shape[2:])
    run = F.conv1d if x.dim() == 3 else F.conv2d
    return run(padded(x, pads), w, bias, strides, 0, dilations, int(attrs.get("group", 1)))


def conv_transpose(attrs, x, w, bias=None):
    """Computed without pads, of the size that windows and output_padding give; then cut or extended by
    the pads that ONNX computes."""
    n = w.dim() - 2
    strides, dilations = attrs.get("strides", [1] * n), attrs.get("dilations", [1] * n)
    extra = attrs.get("output_padding", [0] * n)
    auto, wanted = int(attrs.get("auto_pad", 0)), attrs.get("output_shape")
    run = F.conv_transpose1d if n == 1 else F.conv_transpose2d
    y = run(x, w, None, strides, 0, 0, int(attrs.get("group", 1)), dilations)
    if auto in (1, 2) and wanted is None:
        wanted = [size * stride for size, stride in zip(x.shape[2:], strides)]
    pads = attrs.get("pads", [0] * (2 * n))
    for d in range(n):
        before, behind = pads[d], pads[n + d]
        full = y.shape[2 + d] + extra[d]
        if wanted is not None:
            total = max(0, full - wanted[d])
            before = total // 2 if auto == 1 else total - total // 2
            behind = full - before - wanted[d]
        shape = list(y.shape)
        shape[2 + d] = max(0, full - y.shape[2 + d], -behind + extra[d])
        y = torch.cat([y, y.new_zeros(shape)], 2 + d)
        y = y.narrow(2 + d, before, full - before - behind)
    return y if bias is None else y + by_channel(bias, y)


def sequence_mask(attrs, x, lengths):
    axis = int(attrs.get("axis", 1)) % x.dim()
    shape = [-1] + [1] * (x.dim() - 1)
    times = torch.arange(x.shape[axis]).reshape([-1] + [1] * (x.dim() - 1 - axis))
    return torch.where(times < lengths.reshape(shape), x, torch.zeros((), dtype=x.dtype))


def masked_softmax(attrs, x, *hiding):
    seen = torch.ones_like(x, dtype=torch.bool)
    for given in hiding:
        if given.dtype == torch.bool:
            seen = seen & given
        else:
            shape = [-1] + [1] * (x.dim() - 1)
            seen = seen & (torch.arange(x.shape[-1]) < given.reshape(shape))
    if attrs.get("causal"):
        seen = seen.tril()
    return x.masked_fill(~seen, -math.inf).softmax(-1).nan_to_num(0.0)


def attention_scores(attrs, q, k, lengths):
    """Scores, and a mask of those that count."""
    scores = (attrs.get("scale") or q.shape[-1] ** -0.5) * (q @ k.transpose(-1, -2))
    seen = torch.ones_like(scores, dtype=torch.bool)
    for given in lengths:
        seen = seen & (torch.arange(k.shape[2]) < given.reshape(-1, 1, 1, 1))
    return scores, seen.tril() if attrs.get("causal") else seen


def attention(attrs, q, k, v, *lengths):
    scores, seen = attention_scores(attrs, q, k, lengths)
    return scores.masked_fill(~seen, -math.inf).softmax(-1).nan_to_num(0.0) @ v


def attention_grad(attrs, dy, q, k, v, y, log_totals, *lengths):
    scores, seen = attention_scores(attrs, q, k, lengths)
    weights = (scores - log_totals.unsqueeze(-1)).exp() * seen
    slopes = weights * (dy @ v.transpose(-1, -2) - (dy * y).sum(-1, keepdim=True))
    return (attrs.get("scale") or q.shape[-1] ** -0.5) * (slopes @ k)


def ctc_loss(attrs, logits, labels, frames, counts):
    log_p = logits.log_softmax(-1).transpose(0, 1)
    return F.ctc_loss(log_p, labels, frames, counts, 0, "none", attrs.get("zero_infinity", 0) != 0)


def ctc_loss_grad(attrs, dy, log_p, labels, frames, counts):
    """torch's gradient of log_p is that of the logits, as log_p is their log softmax. It is correct
    only within each length."""
    dx = gradient(lambda v: F.ctc_loss(v.transpose(0, 1), labels, frames, counts, 0, "none",
                                       attrs.get("zero_infinity", 0) != 0), dy, log_p)
    return sequence_mask({}, dx, frames)


def gradient(function, dy, x):
    x = x.clone().requires_grad_(True)
    return torch.autograd.grad(function(x), x, dy)[0]


def pool(attrs, x, mean):
    """By hand, as torch's pools have neither uneven pads nor dilated means."""
    kernel = attrs.get("kernel_shape", list(x.shape[2:]))
    pads, strides, dilations = window(attrs, x, kernel)
    n, ceil = len(kernel), attrs.get("ceil_mode", 0)
    counted = attrs.get("count_include_pad", 0)
    positions = []
    for d in range(n):
        low, high, size = pads[d], pads[n + d], x.shape[2 + d]
        room = size + low + high - (kernel[d] - 1) * dilations[d] - 1
        count = (room + (strides[d] - 1 if ceil else 0)) // strides[d] + 1
        if ceil and (count - 1) * strides[d] >= size + low:
            count -= 1
        places = []
        for o in range(count):
            at = [o * strides[d] - low + i * dilations[d] for i in range(kernel[d])]
            inside = [a for a in at if 0 <= a < size]
            places.append((inside, len([a for a in at if a < size + high]) if counted else len(inside)))
        positions.append(places)
    if n == 1:
        x, positions = x.unsqueeze(2), [[([0], 1)]] + positions
    rows = []
    for r, r_count in positions[0]:
        row = []
        for c, c_count in positions[1]:
            box = x[:, :, r][:, :, :, c].flatten(2)
            row.append(box.sum(2) / (r_count * c_count) if mean else first_max(box))
        rows.append(torch.stack(row, 2))
    y = torch.stack(rows, 2)
    return y.squeeze(2) if n == 1 else y


def first_max(box):
    return box.gather(2, first_arg_max(box.detach(), 2).unsqueeze(2)).squeeze(2)


def max_pool_grad(attrs, dy, x, y):
    """Like the operation, to the first element that equals the given y."""
    k = attrs["kernel_shape"]
    dx = torch.zeros_like(x)
    for r in range(dy.shape[2]):
        for c in range(dy.shape[3]):
            left = dy[:, :, r, c].clone()
            for i in range(k[0]):
                for j in range(k[1]):
                    hit = x[:, :, r + i, c + j] == y[:, :, r, c]
                    dx[:, :, r + i, c + j] += left * hit
                    left = left * ~hit
    return dx


def by_channel(v, x):
    return v.reshape([1, -1] + [1] * (x.dim() - 2))


def batch_norm(attrs, x, scale, bias, mean, variance):
    return F.batch_norm(x, mean.clone(), variance.clone(), scale, bias,
                        attrs.get("training_mode", 0) != 0, 0.1, attrs.get("epsilon", 1e-5))


def batch_norm_grad(attrs, dy, x, scale, mean, inverse):
    axes = [0] + list(range(2, x.dim()))
    shifted = (x - by_channel(mean, x)) * by_channel(inverse, x)
    count = x.numel() // x.shape[1]
    rest = (dy.sum(axes, True) + shifted * (dy * shifted).sum(axes, True)) / count
    return by_channel(scale * inverse, x) * (dy - rest)


def batch_moments(attrs, x):
    rows = x.transpose(0, 1).reshape(x.shape[1], -1)
    count, mean = torch.full_like(rows[:, 0], rows.shape[1]), rows.mean(1)
    if attrs.get("by_sums", 0) != 0:
        return torch.stack([count, rows.sum(1), (rows * rows).sum(1)])
    return torch.stack([count, mean, ((rows - mean[:, None]) ** 2).sum(1)])


def whole_of(attrs, moments):
    """Mean and variance by moments; zeros without elements."""
    count, mean, squares = moments
    some = count.clamp(min=1)
    if attrs.get("by_sums", 0) != 0:
        mean = mean / some
        return mean, (squares / some - mean * mean).clamp(min=0)
    return mean, squares / some


def moments_norm(attrs, x, scale, bias, moments):
    mean, variance = whole_of(attrs, moments)
    return F.batch_norm(x, mean, variance, scale, bias, False, 0.1, attrs.get("epsilon", 1e-5))


def moments_move(attrs, mean, variance, moments):
    momentum = attrs.get("momentum", 0.9)
    moved = mean * momentum + whole_of(attrs, moments)[0] * (1 - momentum)
    return torch.where(moments[0] > 0, moved, mean)


def moments_norm_sums(attrs, dy, x, whole):
    shifted = (x - by_channel(whole[1], x)) * by_channel(whole[2], x)
    axes = [0] + list(range(2, x.dim()))
    return torch.stack([dy.sum(axes), (dy * shifted).sum(axes)])


def moments_norm_grad(attrs, dy, x, whole, scale, sums):
    shifted = (x - by_channel(whole[1], x)) * by_channel(whole[2], x)
    rest = (by_channel(sums[0], x) + shifted * by_channel(sums[1], x)) / by_channel(whole[0], x)
    return by_channel(scale * whole[2], x) * (dy - rest)


def layer_norm(attrs, x, scale, bias=None):
    axis = int(attrs.get("axis", -1))
    return F.layer_norm(x, x.shape[axis:], scale, bias, attrs.get("epsilon", 1e-5))


def group_norm(attrs, x, scale, bias):
    groups = int(attrs.get("num_groups", x.shape[1]))
    return F.group_norm(x, groups, scale, bias, attrs.get("epsilon", 1e-5))


def row_norm_grad(dy, x, scale, mean, inverse):
    """From given statistics; all but the first dimension of [rows, ...] are a row."""
    shape = [-1] + [1] * (x.dim() - 1)
    y = (x - mean.reshape(shape)) * inverse.reshape(shape)
    g, axes = dy * scale, list(range(1, x.dim()))
    return inverse.reshape(shape) * (g - g.mean(axes, True) - y * (g * y).mean(axes, True))


def layer_norm_grad(attrs, dy, x, scale, mean, inverse):
    row = [-1] + list(scale.shape)
    return row_norm_grad(dy.reshape(row), x.reshape(row), scale, mean, inverse)


def group_norm_grad(attrs, dy, x, scale, mean, inverse):
    n, groups = mean.shape
    row = [n * groups, scale.numel() // groups, -1]
    scale = scale.reshape(1, groups, -1, 1).expand(n, -1, -1, -1).reshape(n * groups, -1, 1)
    return row_norm_grad(dy.reshape(row), x.reshape(row), scale, mean, inverse)


def flipped(x, lengths):
    """Each sequence of x [n, t, ...] backwards; elements after its length stay."""
    y = x.clone()
    for i, k in enumerate(lengths):
        y[i, :k] = x[i, :k].flip(0)
    return y


def reordered(gates, order):
    """Rows of gates in another order of gates."""
    parts = gates.chunk(len(order))
    return torch.cat([parts[i] for i in order])


def cell_gru(x, h, w, r, b):
    """A step with reset first, which torch.nn.GRU lacks."""
    (wz, wr, wn), (rz, rr, rn) = w.chunk(3), r.chunk(3)
    b = b.chunk(6)
    z = torch.sigmoid(x @ wz.T + b[0] + h @ rz.T + b[3])
    reset = torch.sigmoid(x @ wr.T + b[1] + h @ rr.T + b[4])
    return (1 - z) * torch.tanh(x @ wn.T + b[2] + (reset * h) @ rn.T + b[5]) + z * h


def torch_layer(lstm, x, w, r, b):
    """One direction by torch's layer, whose gates are r, z, n or i, f, c, o."""
    order = [0, 2, 3, 1] if lstm else [1, 0, 2]
    layer = (torch.nn.LSTM if lstm else torch.nn.GRU)(x.shape[2], r.shape[1], batch_first=True).double()
    w_bias, r_bias = b.chunk(2)
    values = [reordered(v, order) for v in (w, r, w_bias, r_bias)]
    for parameter, value in zip(layer.parameters(), values):
        parameter.data = value
    return layer(x)[0]


def recurrent(lstm):
    def run(attrs, x, w, r, b, lengths=None):
        direction, first = int(attrs.get("direction", 0)), attrs.get("layout", 0)
        x = x if first else x.transpose(0, 1)
        n, t = x.shape[:2]
        lengths = [t] * n if lengths is None else lengths.tolist()
        result = []
        for d in range(w.shape[0]):
            back = direction == 1 or d == 1
            read = flipped(x, lengths) if back else x
            if lstm or attrs.get("linear_before_reset", 0):
                y = torch_layer(lstm, read, w[d], r[d], b[d])
            else:
                h, steps = x.new_zeros(n, r.shape[2]), []
                for s in range(t):
                    h = cell_gru(read[:, s], h, w[d], r[d], b[d])
                    steps.append(h)
                y = torch.stack(steps, 1)
            y = y * (torch.arange(t) < torch.tensor(lengths).unsqueeze(1)).unsqueeze(2)
            result.append(flipped(y, lengths) if back else y)
        y = torch.stack(result, 2)
        return (y if first else y.permute(1, 2, 0, 3)).detach()
    return run


def recurrent_grad(lstm):
    """dx from given gates, by the chain rule, one row and step after another."""
    def run(attrs, x, w, r, y, saved, lengths, dy, dh_last=None, dc_last=None):
        first, last = attrs.get("layout", 0), attrs.get("linear_before_reset", 0)
        if not first:
            x, y, dy = x.transpose(0, 1), y.permute(2, 0, 1, 3), dy.permute(2, 0, 1, 3)
        dx = torch.zeros_like(x)
        zero = x.new_zeros(r.shape[2])
        for d in range(w.shape[0]):
            for row, length in enumerate(lengths.tolist()):
                dh = zero if dh_last is None else dh_last[row, d]
                dc = zero if dc_last is None else dc_last[row, d]
                back = int(attrs.get("direction", 0)) == 1 or d == 1
                times = list(range(length))[::-1 if back else 1]
                for s in reversed(range(length)):
                    now, before = times[s], times[s - 1]
                    h = y[row, before, d] if s else zero
                    dh = dh + dy[row, now, d]
                    parts = saved[row, now, d].reshape(-1, r.shape[2])
                    if lstm:
                        i, o, f, g, c = parts
                        tc = torch.tanh(c)
                        dc = dc + dh * o * (1 - tc ** 2)
                        c_before = saved[row, before, d].reshape(-1, r.shape[2])[4] if s else zero
                        da = torch.cat([dc * g * i * (1 - i), dh * tc * o * (1 - o),
                                        dc * c_before * f * (1 - f), dc * i * (1 - g ** 2)])
                        dc, dh = dc * f, da @ r[d]
                    else:
                        m, z, reset, q = parts if last else (parts[2], parts[0], parts[1], None)
                        rz, rr, rn = r[d].chunk(3)
                        dz, dn = dh * (h - m) * z * (1 - z), dh * (1 - z) * (1 - m ** 2)
                        dp = dn * q if last else (dn @ rn) * h
                        dr = dp * reset * (1 - reset)
                        through = (dn * reset) @ rn if last else (dn @ rn) * reset
                        dh = dh * z + dz @ rz + dr @ rr + through
                        da = torch.cat([dz, dr, dn])
                    dx[row, now] += da @ w[d]
        return dx if first else dx.transpose(0, 1)
    return run


def prod(x, axes, keep):
    for axis in sorted((a % x.dim() for a in axes), reverse=True):
        x = x.prod(axis, keep)
    return x


def arg_max(attrs, x):
    axis = int(attrs["axis"])
    if attrs.get("select_last_index"):
        return x.shape[axis] - 1 - first_arg_max(x.flip(axis), axis)
    return first_arg_max(x, axis)


def top_k(attrs, x):
    axis = int(attrs.get("axis", -1))
    order = x.sort(stable=True, dim=axis, descending=attrs.get("largest", 1) != 0).values
    return order.narrow(axis, 0, int(attrs["k"]))


def cum_sum(attrs, x):
    axis = int(attrs.get("axis", 0))
    x = x.flip(axis) if attrs.get("reverse") else x
    y = x.cumsum(axis) - (x if attrs.get("exclusive") else 0)
    return y.flip(axis) if attrs.get("reverse") else y


CASTS = {1: torch.float64, 2: torch.int32, 3: torch.int64, 4: torch.uint8, 5: torch.bool,
         7: torch.float16, 8: torch.bfloat16, 0: torch.float64}

OPS = {
    "ADD": lambda at, a, b: a + b,
    "SUB": lambda at, a, b: a - b,
    "MUL": lambda at, a, b: a * b,
    "DIV": lambda at, a, b: torch.div(a, b, rounding_mode=None if a.is_floating_point() else "trunc"),
    "MAX": lambda at, a, b: torch.maximum(a, b),
    "MIN": lambda at, a, b: torch.minimum(a, b),
    "EQUAL": lambda at, a, b: a == b,
    "GREATER": lambda at, a, b: a > b,
    "LESS": lambda at, a, b: a < b,
    "GREATER_OR_EQUAL": lambda at, a, b: a >= b,
    "LESS_OR_EQUAL": lambda at, a, b: a <= b,
    "AND": lambda at, a, b: a & b,
    "OR": lambda at, a, b: a | b,
    "XOR": lambda at, a, b: a ^ b,
    "NOT": lambda at, x: ~x,
    "IS_NAN": lambda at, x: x.isnan(),
    "POW": lambda at, a, b: a.pow(b),
    "RECIPROCAL": lambda at, x: x.reciprocal(),
    "FLOOR": lambda at, x: x.floor(),
    "CEIL": lambda at, x: x.ceil(),
    "ROUND": lambda at, x: x.round(),
    "ERF": lambda at, x: x.erf(),
    "SIN": lambda at, x: x.sin(),
    "COS": lambda at, x: x.cos(),
    "TAN": lambda at, x: x.tan(),
    "ASIN": lambda at, x: x.asin(),
    "ACOS": lambda at, x: x.acos(),
    "ATAN": lambda at, x: x.atan(),
    "SINH": lambda at, x: x.sinh(),
    "COSH": lambda at, x: x.cosh(),
    "ASINH": lambda at, x: x.asinh(),
    "ACOSH": lambda at, x: x.acosh(),
    "ATANH": lambda at, x: x.atanh(),
    "REMAINDER": lambda at, a, b: torch.fmod(a, b),
    "GELU": lambda at, x: F.gelu(x),
    "GELU_GRAD": lambda at, dy, x: gradient(F.gelu, dy, x),
    "GELU_TANH": lambda at, x: F.gelu(x, approximate="tanh"),
    "GELU_TANH_GRAD": lambda at, dy, x: gradient(lambda v: F.gelu(v, approximate="tanh"), dy, x),
    "SILU": lambda at, x: F.silu(x),
    "SILU_GRAD": lambda at, dy, x: gradient(F.silu, dy, x),
    "SOFTPLUS": lambda at, x: F.softplus(x, threshold=100),
    "LEAKY_RELU": leaky_relu,
    "LEAKY_RELU_GRAD": lambda at, dy, x: gradient(lambda v: leaky_relu(at, v), dy, x),
    "ELU": elu,
    "ELU_GRAD": lambda at, dy, x: gradient(lambda v: elu(at, v), dy, x),
    "HARD_SIGMOID": hard_sigmoid,
    "HARD_SIGMOID_GRAD": lambda at, dy, x: gradient(lambda v: hard_sigmoid(at, v), dy, x),
    "CLIP": clip,
    "CLIP_GRAD": lambda at, dy, x: gradient(lambda v: clip(at, v), dy, x),
    "NEG": lambda at, x: -x,
    "EXP": lambda at, x: x.exp(),
    "LOG": lambda at, x: x.log(),
    "SQRT": lambda at, x: x.sqrt(),
    "ABS": lambda at, x: x.abs(),
    "SIGN": lambda at, x: x.sign(),
    "RELU": lambda at, x: x.relu(),
    "SIGMOID": lambda at, x: x.sigmoid(),
    "TANH": lambda at, x: x.tanh(),
    "RELU_GRAD": lambda at, dy, y: dy * (y > 0),
    "SIGMOID_GRAD": lambda at, dy, y: dy * y * (1 - y),
    "TANH_GRAD": lambda at, dy, y: dy * (1 - y * y),
    "IDENTITY": lambda at, x: x,
    "CAST": lambda at, x: x.to(CASTS[int(at["to"])]),
    "MATMUL": lambda at, a, b: at.get("alpha", 1.0) * (a.mT if at.get("transA") else a) @ (b.mT if at.get("transB") else b),
    "MATMUL_FLAT": lambda at, a, b: a.reshape(-1, a.shape[-1]).t() @ b.reshape(-1, b.shape[-1]),
    "GEMM": gemm,
    "SOFTMAX": lambda at, x: x.softmax(-1),
    "LOG_SOFTMAX": lambda at, x: x.log_softmax(-1),
    "SOFTMAX_GRAD": lambda at, dy, y: y * (dy - (dy * y).sum(-1, keepdim=True)),
    "LOG_SOFTMAX_GRAD": lambda at, dy, y: dy - y.exp() * dy.sum(-1, keepdim=True),
    "SOFTMAX_CROSS_ENTROPY": lambda at, x, z: F.cross_entropy(x, z, reduction="none"),
    "CROSS_ENTROPY_GRAD": cross_entropy_grad,
    "SIGMOID_CROSS_ENTROPY":
        lambda at, x, z: F.binary_cross_entropy_with_logits(x, z, reduction="none"),
    "REDUCE_SUM": reduction(lambda x, axes, keep: x.sum(axes, keep)),
    "REDUCE_MEAN": reduction(lambda x, axes, keep: x.mean(axes, keep)),
    "REDUCE_MAX": reduction(lambda x, axes, keep: x.amax(axes, keep)),
    "REDUCE_SUM_SQUARE": reduction(lambda x, axes, keep: (x * x).sum(axes, keep)),
    "SUM_TO": sum_to,
    "BROADCAST_TO": broadcast_to,
    "COUNT_RATIO": lambda at, a, b: torch.tensor(b.numel() / a.numel(), dtype=torch.float64),
    "ARG_MAX": lambda at, x: arg_max(at, x),
    "ARG_MIN": lambda at, x: arg_max(at, -x),
    "TOP_K": top_k,
    "CUM_SUM": cum_sum,
    "REDUCE_MIN": reduction(lambda x, axes, keep: x.amin(axes, keep)),
    "REDUCE_PROD": reduction(prod),
    "REDUCE_PROD_GRAD": lambda at, dy, x: gradient(lambda v: reduction(prod)(at, v), dy, x),
    "REDUCE_L1": reduction(lambda x, axes, keep: x.abs().sum(axes, keep)),
    "REDUCE_L2": reduction(lambda x, axes, keep: (x * x).sum(axes, keep).sqrt()),
    "RESHAPE": lambda at, x: x.reshape(at["shape"]),
    "RESHAPE_LIKE": lambda at, x, like: x.reshape(like.shape),
    "TRANSPOSE": lambda at, x: x.permute(at["perm"]),
    "SQUEEZE": lambda at, x: x,
    "UNSQUEEZE": lambda at, x: x,
    "SLICE": lambda at, x: x[slices(at, x)],
    "SLICE_GRAD": slice_grad,
    "PAD": pad,
    "PAD_GRAD": lambda at, dy, x: gradient(lambda v: pad(at, v), dy, x),
    "EXPAND": lambda at, x: x.expand(torch.broadcast_shapes(x.shape, at["shape"])),
    "CONCAT": lambda at, *parts: torch.cat(parts, int(at["axis"])),
    "WHERE": lambda at, condition, a, b: torch.where(condition, a, b),
    "GATHER": gather,
    "GATHER_ELEMENTS": lambda at, data, indices: data.gather(int(at.get("axis", 0)), indices),
    "GATHER_ELEMENTS_GRAD": lambda at, dy, indices, data:
        torch.zeros_like(data).scatter_add(int(at.get("axis", 0)), indices, dy),
    "GATHER_GRAD": gather_grad,
    "ONE_HOT": one_hot,
    "FLATTEN": lambda at, x: x,
    "CONV": conv,
    "CONV_GRAD_INPUT": lambda at, dy, w, x: gradient(lambda v: conv(at, v, w), dy, x),
    "CONV_GRAD_WEIGHTS": lambda at, dy, x, w: gradient(lambda v: conv(at, x, v), dy, w),
    "CONV_TRANSPOSE": conv_transpose,
    "CHANNEL_SUM": lambda at, x: x.sum([0] + list(range(2, x.dim()))),
    "MAX_POOL": lambda at, x: pool(at, x, False),
    "MAX_POOL_GRAD": max_pool_grad,
    "AVERAGE_POOL": lambda at, x: pool(at, x, True),
    "AVERAGE_POOL_GRAD": lambda at, dy, x: gradient(lambda v: pool(at, v, True), dy, x),
    "GLOBAL_AVERAGE_POOL": lambda at, x: pool(at, x, True),
    "BATCH_NORM": batch_norm,
    "BATCH_NORM_GRAD": batch_norm_grad,
    "BATCH_MOMENTS": batch_moments,
    "MOMENTS_NORM": moments_norm,
    "MOMENTS_MOVE": moments_move,
    "MOMENTS_NORM_SUMS": moments_norm_sums,
    "MOMENTS_NORM_GRAD": moments_norm_grad,
    "LAYER_NORM": layer_norm,
    "LAYER_NORM_GRAD": layer_norm_grad,
    "INSTANCE_NORM": group_norm,
    "GROUP_NORM": group_norm,
    "GROUP_NORM_GRAD": group_norm_grad,
    "SEQUENCE_MASK": sequence_mask,
    "MASKED_SOFTMAX": masked_softmax,
    "ATTENTION": attention,
    "ATTENTION_GRAD": attention_grad,
    "CTC_LOSS": ctc_loss,
    "CTC_LOSS_GRAD": ctc_loss_grad,
    "GRU": recurrent(False),
    "GRU_GRAD": recurrent_grad(False),
    "LSTM": recurrent(True),
    "LSTM_GRAD": recurrent_grad(True),
    "DROPOUT_GRAD": lambda at, dy, kept: dy * kept / (1 - at["ratio"]),
}


def first_arg_max(x, axis):
    """The index of the first of equal maxima, which torch.argmax does not promise."""
    best = x == x.amax(axis, keepdim=True)
    order = torch.arange(x.shape[axis], 0, -1)
    shape = [1] * x.dim()
    shape[axis] = -1
    return (best * order.reshape(shape)).argmax(axis)


def main():
    text = open(os.path.join(HERE, "cases.def")).read()
    rows = re.findall(r'^CASE\((\w+), (\w+), "([^"]*)", "([^"]*)", [^)]*\)', text, re.M)
    with open(os.path.join(HERE, "oracle.txt"), "w") as out:
        for name, op, inputs, attrs in rows:
            if op not in OPS:
                continue  # random operations: test_ops.c checks their properties
            y = OPS[op](parse_attrs(attrs), *parse_inputs(inputs)).double().reshape(-1)
            step = max(1, -(-y.numel() // SAMPLES))
            values = " ".join(f"{v:.17g}" for v in y[::step].tolist())
            out.write(f"{name} {y.numel()} {step} {values}\n")


if __name__ == "__main__":
    main()
