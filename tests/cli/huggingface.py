#!/usr/bin/env python3
"""Mean cross-entropy of a token by a model in a folder of Hugging Face, in plain numpy from the published definitions
of GPT-2 and Llama: it shares no code with the writer. usage: huggingface.py FOLDER TOKENS.bin (uint16) CONTEXT"""
import json
import struct
import sys

import numpy as np


def tensors(path):
    with open(path, "rb") as file:
        (length,) = struct.unpack("<Q", file.read(8))
        header, data = json.loads(file.read(length)), file.read()
    header.pop("__metadata__", None)
    return {name: np.frombuffer(data[t["data_offsets"][0]:t["data_offsets"][1]], "<f4").reshape(t["shape"]).astype("f8")
            for name, t in header.items()}


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q, k, v):  # [heads, t, d], causal
    scores = q @ k.swapaxes(-1, -2) / np.sqrt(q.shape[-1])
    scores[:, np.triu(np.ones(scores.shape[-2:], bool), 1)] = -np.inf
    y = softmax(scores) @ v
    return y.swapaxes(0, 1).reshape(y.shape[1], -1)


def heads(x, count):
    return x.reshape(len(x), count, -1).swapaxes(0, 1)


def gpt2(c, w, tokens):
    def norm(x, name):
        centered = x - x.mean(-1, keepdims=True)
        y = centered / np.sqrt((centered**2).mean(-1, keepdims=True) + c["layer_norm_epsilon"])
        return y * w[name + ".weight"] + w[name + ".bias"]

    def conv1d(x, name):  # transformers' Conv1D: kernels are [in, out]
        return x @ w[name + ".weight"] + w[name + ".bias"]

    x = w["wte.weight"][tokens] + w["wpe.weight"][:len(tokens)]
    for i in range(c["n_layer"]):
        h = f"h.{i}."
        q, k, v = (heads(p, c["n_head"]) for p in np.split(conv1d(norm(x, h + "ln_1"), h + "attn.c_attn"), 3, -1))
        x = x + conv1d(attend(q, k, v), h + "attn.c_proj")
        y = conv1d(norm(x, h + "ln_2"), h + "mlp.c_fc")
        y = 0.5 * y * (1 + np.tanh(np.sqrt(2 / np.pi) * (y + 0.044715 * y**3)))
        x = x + conv1d(y, h + "mlp.c_proj")
    return norm(x, "ln_f") @ w["wte.weight" if c["tie_word_embeddings"] else "lm_head.weight"].T


def llama(c, w, tokens):
    def norm(x, name):
        return x / np.sqrt((x**2).mean(-1, keepdims=True) + c["rms_norm_eps"]) * w[name + ".weight"]

    def linear(x, name):  # torch.nn.Linear: kernels are [out, in]
        return x @ w[name + ".weight"].T

    def turn(x):  # rotate_half
        d = x.shape[-1]
        angles = np.outer(np.arange(x.shape[1]), c["rope_theta"] ** (-np.arange(0, d, 2) / d))
        angles = np.concatenate([angles, angles], -1)
        half = np.concatenate([-x[..., d // 2:], x[..., :d // 2]], -1)
        return x * np.cos(angles) + half * np.sin(angles)

    groups = c["num_attention_heads"] // c["num_key_value_heads"]
    x = w["model.embed_tokens.weight"][tokens]
    for i in range(c["num_hidden_layers"]):
        m = f"model.layers.{i}."
        y = norm(x, m + "input_layernorm")
        q = turn(heads(linear(y, m + "self_attn.q_proj"), c["num_attention_heads"]))
        k = turn(heads(linear(y, m + "self_attn.k_proj"), c["num_key_value_heads"]))
        v = heads(linear(y, m + "self_attn.v_proj"), c["num_key_value_heads"])
        y = attend(q, np.repeat(k, groups, 0), np.repeat(v, groups, 0))
        x = x + linear(y, m + "self_attn.o_proj")
        y = norm(x, m + "post_attention_layernorm")
        gate = linear(y, m + "mlp.gate_proj")
        x = x + linear(gate / (1 + np.exp(-gate)) * linear(y, m + "mlp.up_proj"), m + "mlp.down_proj")
    return norm(x, "model.norm") @ w["model.embed_tokens.weight" if c["tie_word_embeddings"] else "lm_head.weight"].T


folder, context = sys.argv[1], int(sys.argv[3])
config = json.load(open(folder + "/config.json"))
weights = tensors(folder + "/model.safetensors")
ids = np.frombuffer(open(sys.argv[2], "rb").read(), "<u2").astype(int)
losses = []
for at in range(0, len(ids) - context, context):
    logits = {"gpt2": gpt2, "llama": llama}[config["model_type"]](config, weights, ids[at:at + context])
    losses.extend(-np.log(softmax(logits)[np.arange(context), ids[at + 1:at + context + 1]]))
print(f"{np.mean(losses):.6f}")
