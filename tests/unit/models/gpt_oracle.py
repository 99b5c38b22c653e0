#!/usr/bin/env python3
"""Writes gpt-*.safetensors: weights of small models of the kind "gpt", tokens, and the logits, loss and gradients that
PyTorch computes of them. usage: cd tests/unit/models && /usr/bin/python3 gpt_oracle.py (python3-torch)"""
import json
import struct

import torch
import torch.nn.functional as F

V, C, T, N, LAYERS, HEADS = 11, 8, 6, 3, 2, 2


def normalize(w, x, name, rms):
    if rms:
        return x / torch.sqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w[name + ".weight"]
    return F.layer_norm(x, (C,), w[name + ".weight"], w.get(name + ".bias"), 1e-5)


def project(w, x, name):
    y = x @ w[name + ".weight"]
    return y + w[name + ".bias"] if name + ".bias" in w else y


def rotate(x):
    d = x.shape[-1]
    angles = torch.arange(x.shape[-2], dtype=torch.float64)[:, None] * 10000.0 ** (
        -torch.arange(d // 2, dtype=torch.float64) / (d // 2))
    cos, sin = torch.cos(angles), torch.sin(angles)
    a, b = x[..., : d // 2], x[..., d // 2:]
    return torch.cat([a * cos - b * sin, b * cos + a * sin], -1)


def states(w, tokens, new, kv_heads, visible):
    """The states after the last norm. visible [n or 1, 1, t or 1, t]: which keys a query sees; without one, zeros."""
    n, t = tokens.shape
    x = w["wte.weight"][tokens]
    if not new:
        x = x + w["wpe.weight"][:t]
    for i in range(LAYERS):
        h = f"h.{i}."
        d, kv = C // HEADS, kv_heads * C // HEADS
        q, k, v = project(w, normalize(w, x, h + "ln_1", new), h + "attn.c_attn").split([C, kv, kv], -1)
        q, k, v = (y.reshape(n, t, -1, d).transpose(1, 2) for y in (q, k, v))
        if new:
            q, k = rotate(q), rotate(k)
        k, v = (y.repeat_interleave(HEADS // kv_heads, 1) for y in (k, v))
        scores = (q @ k.transpose(-1, -2) / d ** 0.5).masked_fill(~visible, -1e300)
        y = ((scores.softmax(-1) * visible) @ v).transpose(1, 2).reshape(n, t, C)
        x = x + project(w, y, h + "attn.c_proj")
        y = normalize(w, x, h + "ln_2", new)
        if new:
            y = F.silu(project(w, y, h + "mlp.c_gate")) * project(w, y, h + "mlp.c_fc")
        else:
            y = project(w, y, h + "mlp.c_fc")
            y = 0.5 * y * (1 + torch.tanh((2 / torch.pi) ** 0.5 * (y + 0.044715 * y ** 3)))
        x = x + project(w, y, h + "mlp.c_proj")
    return normalize(w, x, "ln_f", new)


def forward(w, tokens, new, kv_heads):
    t = tokens.shape[1]
    x = states(w, tokens, new, kv_heads, torch.tril(torch.ones(1, 1, t, t, dtype=torch.bool)))
    return x @ w["lm_head.weight" if new else "wte.weight"].T


def shapes(new, kv_heads, t):
    hidden = 64 if new else 4 * C
    out = {"wte.weight": (V, C), "ln_f.weight": (C,)}
    if new:
        out["lm_head.weight"] = (V, C)
    else:
        out["wpe.weight"] = (t, C)
    for i in range(LAYERS):
        h = f"h.{i}."
        out |= {h + "ln_1.weight": (C,), h + "ln_2.weight": (C,), h + "attn.c_attn.weight": (C, C + 2 * kv_heads * C // HEADS),
                h + "attn.c_proj.weight": (C, C), h + "mlp.c_fc.weight": (C, hidden), h + "mlp.c_proj.weight": (hidden, C)}
        if new:
            out[h + "mlp.c_gate.weight"] = (C, hidden)
    if not new:
        out |= {name.replace(".weight", ".bias"): (shape[-1],) for name, shape in list(out.items()) if name[0] != "w"}
    return out


def weights(shapes, generator):
    made = {}
    for name in sorted(shapes):
        value = torch.randn(shapes[name], generator=generator) * 0.3
        made[name] = (value + ("ln_" in name and "weight" in name)).float()
    return made


def write(path, tensors):
    header, data = {}, b""
    for name in sorted(tensors):
        t = tensors[name].contiguous()
        raw = t.numpy().tobytes()
        header[name] = {"dtype": {torch.float32: "F32", torch.int64: "I64"}[t.dtype], "shape": list(t.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


def main():
    for kind, new, kv_heads in (("classic", False, HEADS), ("new", True, 1)):
        generator = torch.Generator().manual_seed(49)
        w = weights(shapes(new, kv_heads, T), generator)
        exact = {name: value.double().requires_grad_() for name, value in w.items()}
        tokens = torch.randint(0, V, (N, T + 1), generator=generator)
        logits = forward(exact, tokens[:, :-1], new, kv_heads)
        loss = F.cross_entropy(logits.reshape(-1, V), tokens[:, 1:].reshape(-1))
        loss.backward()
        results = {"tokens": tokens, "logits": logits.detach().float(), "loss": loss.detach().float().reshape(1)}
        results |= {"gradient/" + name: value.grad.float() for name, value in exact.items()}
        write(f"gpt-{kind}.safetensors", w | results)


if __name__ == "__main__":
    main()
