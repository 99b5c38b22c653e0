#!/usr/bin/python3
"""Exports small PyTorch models with a symbolic batch, and their outputs at two batches.

Each becomes a folder in ONNX's layout (model.onnx, test_data_set_K/input_*.pb, output_*.pb) beside
this file. Debian's python3-torch 1.13 made the stored ones; CI only reads them.

    tests/golden/onnx/make.py [name ...]
"""
import math
import os
import sys

import torch
import torch.nn as nn
import torch.nn.functional as F

HERE = os.path.dirname(os.path.abspath(__file__))


# --- TensorProto, field by field -----------------------------------------------------------------
def varint(value):
    out = bytearray()
    while True:
        out.append((value & 0x7F) | (0x80 if value > 0x7F else 0))
        value >>= 7
        if not value:
            return bytes(out)


def tensor_proto(tensor):
    kind = {torch.float32: 1, torch.int32: 6, torch.int64: 7, torch.bool: 9}[tensor.dtype]
    raw = tensor.detach().contiguous().numpy().tobytes()
    dims = b"".join(b"\x08" + varint(d) for d in tensor.shape)
    return dims + b"\x10" + varint(kind) + b"\x4a" + varint(len(raw)) + raw


# --- Models --------------------------------------------------------------------------------------
class Mlp(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(6, 16), nn.GELU(), nn.Linear(16, 8), nn.LayerNorm(8),
                                    nn.SiLU(), nn.Linear(8, 3), nn.Softmax(dim=-1))

    def forward(self, x):
        return self.layers(x)


class Cnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 8, 3, padding=1, bias=False)
        self.norm1 = nn.BatchNorm2d(8)
        self.conv2 = nn.Conv2d(8, 8, 3, stride=2, padding=1, groups=4)
        self.norm2 = nn.GroupNorm(2, 8)
        self.head = nn.Linear(8 * 4 * 4, 5)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.norm1(self.conv1(x))), 2)
        x = F.hardswish(self.norm2(self.conv2(x)))
        return self.head(x.view(x.size(0), -1))


class Block(nn.Module):
    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False)
        self.norm1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(outputs)
        self.down = None
        if stride != 1 or inputs != outputs:
            self.down = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False),
                                      nn.BatchNorm2d(outputs))

    def forward(self, x):
        y = self.norm2(self.conv2(F.relu(self.norm1(self.conv1(x)))))
        return F.relu(y + (x if self.down is None else self.down(x)))


class ResNet18(nn.Module):
    """He et al. 2016, 18 layers, 4 to 16 channels."""

    def __init__(self):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 4, 7, 2, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(),
                                  nn.MaxPool2d(3, 2, 1))
        blocks, inputs = [], 4
        for stage, outputs in enumerate([4, 8, 8, 16]):
            blocks += [Block(inputs, outputs, 1 if stage == 0 else 2), Block(outputs, outputs, 1)]
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.pool = nn.AdaptiveAvgPool2d((1, 1))
        self.head = nn.Linear(inputs, 10)

    def forward(self, x):
        return self.head(torch.flatten(self.pool(self.blocks(self.stem(x))), 1))


class BiLstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True)
        self.head = nn.Linear(10, 3)

    def forward(self, x):
        y, (h, c) = self.lstm(x)
        return self.head(y), h, c


class GruState(nn.Module):
    """First states are an input."""

    def __init__(self):
        super().__init__()
        self.gru = nn.GRU(4, 5, num_layers=2, batch_first=True)

    def forward(self, x, h):
        return self.gru(x, h)


class LstmState(nn.Module):
    """First states are parameters, repeated to the batch."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(4, 5, bidirectional=True)
        self.h = nn.Parameter(torch.randn(2, 1, 5))
        self.c = nn.Parameter(torch.randn(2, 1, 5))

    def forward(self, x):
        n = x.size(1)
        y, (h, c) = self.lstm(x, (self.h.expand(-1, n, -1).contiguous(),
                                  self.c.expand(-1, n, -1).contiguous()))
        return y, h, c


class Rnn(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn = nn.RNN(4, 5, num_layers=2, bidirectional=True, batch_first=True)

    def forward(self, x):
        return self.rnn(x)


class Attention(nn.Module):
    """Heads by views of the batch's size, as hand-written transformers have it."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def split(self, x):
        n, t, width = x.shape
        return x.view(n, t, self.heads, width // self.heads).permute(0, 2, 1, 3)

    def forward(self, x):
        n, t, width = x.shape
        q, k, v = self.split(self.q(x)), self.split(self.k(x)), self.split(self.v(x))
        weights = torch.softmax(q @ k.transpose(-2, -1) / math.sqrt(width // self.heads), dim=-1)
        return self.out((weights @ v).permute(0, 2, 1, 3).contiguous().view(n, t, width))


class Vit(nn.Module):
    """Patches, a class token repeated to the batch, two blocks."""

    def __init__(self):
        super().__init__()
        self.patches = nn.Conv2d(3, 8, 4, 4)
        self.token = nn.Parameter(torch.randn(1, 1, 8))
        self.places = nn.Parameter(torch.randn(1, 5, 8))
        self.norms = nn.ModuleList(nn.LayerNorm(8) for _ in range(4))
        self.attentions = nn.ModuleList(Attention(8, 2) for _ in range(2))
        self.mlps = nn.ModuleList(nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))
                                  for _ in range(2))
        self.head = nn.Linear(8, 4)

    def forward(self, x):
        x = self.patches(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(x.size(0), -1, -1), x], dim=1) + self.places
        for i in range(2):
            x = x + self.attentions[i](self.norms[2 * i](x))
            x = x + self.mlps[i](self.norms[2 * i + 1](x))
        return self.head(x[:, 0])


class Encoder(nn.Module):
    """nn.TransformerEncoderLayer: heads are part of the batch in it."""

    def __init__(self):
        super().__init__()
        self.layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)

    def forward(self, x):
        return self.layer(x)


class Words(nn.Module):
    """Ids, places and a mask; the mean over what is no padding."""

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(20, 6, padding_idx=0)
        self.places = nn.Embedding(7, 6)
        self.head = nn.Linear(6, 2)

    def forward(self, ids):
        n, t = ids.shape
        places = torch.arange(t).unsqueeze(0).expand(n, t)
        x = self.words(ids) + self.places(places)
        seen = (ids != 0).unsqueeze(-1).float()
        mean = (x * seen).sum(dim=1) / seen.sum(dim=1).clamp(min=1.0)
        return self.head(mean), ids.view(-1).view(n, t)


class UNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.down1, self.down2 = nn.Conv2d(2, 4, 3, padding=1), nn.Conv2d(4, 6, 3, padding=1)
        self.middle = nn.Conv2d(6, 6, 3, padding=1)
        self.up2, self.up1 = nn.Conv2d(12, 4, 3, padding=1), nn.Conv2d(8, 4, 3, padding=1)
        self.tall = nn.ConvTranspose2d(4, 2, 2, stride=2)

    def forward(self, x):
        a = F.relu(self.down1(x))
        b = F.relu(self.down2(F.max_pool2d(a, 2)))
        m = F.relu(self.middle(F.max_pool2d(b, 2)))
        m = F.interpolate(m, scale_factor=2, mode="bilinear", align_corners=False)
        m = F.relu(self.up2(torch.cat([m, b], dim=1)))
        m = F.interpolate(m, size=a.shape[2:], mode="bilinear", align_corners=True)
        m = F.relu(self.up1(torch.cat([m, a], dim=1)))
        return self.tall(F.interpolate(m, scale_factor=2.0, mode="nearest"))


class Volume(nn.Module):
    """Three spatial dimensions."""

    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv3d(2, 4, 3, padding=1)
        self.conv2 = nn.Conv3d(4, 6, (2, 3, 1), stride=(2, 1, 1), groups=2, bias=False)
        self.norm = nn.BatchNorm3d(4)

    def forward(self, x):
        x = F.max_pool3d(F.relu(self.norm(self.conv1(x))), 2)
        return F.avg_pool3d(self.conv2(x), (1, 2, 2), stride=1, padding=(0, 1, 1))


class Products(nn.Module):
    def forward(self, x, y):
        a = torch.einsum("bij,bjk->bik", x, y)
        b = torch.einsum("bij,bkj->bk", x, x)
        c = torch.einsum("bij->bji", y)
        return a, b, c


class Branch(torch.jit.ScriptModule):
    """Scripted: the choice depends on a closed size, so it is made while the graph is built."""

    def __init__(self):
        super().__init__()
        self.head = nn.Linear(4, 3)

    @torch.jit.script_method
    def forward(self, x):
        if x.size(1) > 3:
            x = x * 2.0
        else:
            x = x - 1.0
        y = self.head(x)
        if y.size(1) == 4:
            y = y + 100.0
        return y


def image(channels, height, width):
    return lambda n: (torch.randn(n, channels, height, width),)


# name: model, inputs for a batch of n, axis of the batch of each input and output, opset
MODELS = {
    "mlp": (Mlp, lambda n: (torch.randn(n, 6),), [0], [0], 17),
    "cnn": (Cnn, image(3, 16, 16), [0], [0], 14),
    "resnet18": (ResNet18, image(3, 32, 32), [0], [0], 13),
    "bilstm": (BiLstm, lambda n: (torch.randn(n, 6, 4),), [0], [0, 1, 1], 14),
    "gru_state": (GruState, lambda n: (torch.randn(n, 6, 4), torch.randn(2, n, 5)), [0, 1], [0, 1],
                  14),
    "lstm_state": (LstmState, lambda n: (torch.randn(6, n, 4),), [1], [1, 1, 1], 13),
    "rnn": (Rnn, lambda n: (torch.randn(n, 6, 4),), [0], [0, 1], 14),
    "vit": (Vit, image(3, 8, 8), [0], [0], 12),
    "encoder": (Encoder, lambda n: (torch.randn(n, 5, 8),), [0], [0], 17),
    "words": (Words, lambda n: (torch.randint(0, 20, (n, 7)),), [0], [0, 0], 13),
    "unet": (UNet, image(2, 8, 12), [0], [0], 14),
    "unet11": (UNet, image(2, 8, 12), [0], [0], 11),
    "volume": (Volume, lambda n: (torch.randn(n, 2, 6, 9, 8),), [0], [0], 14),
    "products": (Products, lambda n: (torch.randn(n, 3, 4), torch.randn(n, 4, 5)), [0, 0],
                 [0, 0, 0], 13),
    "branch": (Branch, lambda n: (torch.randn(n, 4),), [0], [0], 14),
}


# With symbolic lengths, too: the model, the axis of time in its input and in its outputs.
TIMES = {
    "encoder_time": ("encoder", 1, [1]),
    "bilstm_time": ("bilstm", 1, [1, None, None]),
    "words_time": ("words", 1, [None, 1]),
}


def write(path, data):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    with open(path, "wb") as file:
        file.write(data)


def make(name):
    torch.manual_seed(sum(name.encode()))
    base, time, out_times = TIMES.get(name, (name, None, None))
    maker, inputs_of, in_axes, out_axes, opset = MODELS[base]
    model = maker()
    for module in model.modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm):
            nn.init.uniform_(module.running_mean, -0.5, 0.5)
            nn.init.uniform_(module.running_var, 0.5, 2)
    # The encoder's fused function has no ONNX form; nothing in it depends on training.
    model.train(base == "encoder")
    names = [f"x{i}" for i in range(len(in_axes))], [f"y{i}" for i in range(len(out_axes))]
    axes = {n: {a: "batch"} for n, a in zip(names[0] + names[1], in_axes + out_axes)}
    if time is not None:
        axes["x0"][time] = "time"
        for n, a in zip(names[1], out_times):
            if a is not None:
                axes[n][a] = "time"
    folder = os.path.join(HERE, name)
    os.makedirs(folder, exist_ok=True)
    torch.onnx.export(model, inputs_of(2), os.path.join(folder, "model.onnx"), opset_version=opset,
                      input_names=names[0], output_names=names[1], dynamic_axes=axes,
                      training=torch.onnx.TrainingMode.PRESERVE)
    for k, n in enumerate([1, 3]):
        inputs = inputs_of(n)
        if time is not None:
            shorter = inputs[0].narrow(time, 0, inputs[0].size(time) - k)
            inputs = (shorter.contiguous(),) + inputs[1:]
        with torch.no_grad():
            outputs = model(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        for kind, tensors in (("input", inputs), ("output", outputs)):
            for i, tensor in enumerate(tensors):
                path = os.path.join(folder, f"test_data_set_{k}", f"{kind}_{i}.pb")
                write(path, tensor_proto(tensor))


for chosen in sys.argv[1:] or [*MODELS, *TIMES]:
    make(chosen)
    print(chosen)
