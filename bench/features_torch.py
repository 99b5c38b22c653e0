#!/usr/bin/python3
"""The peer of bench_features: the same images through Pillow into tensors of PyTorch, on one thread.

usage: features_torch.py make FOLDER          writes 64 files of 500 x 375 pixels and list.csv
       features_torch.py whole|window FOLDER SECONDS
whole: the image is scaled, then cropped, as torchvision's Resize and RandomCrop do. window: only the visible
part is scaled (Image.resize with a box), which is faster. The faster of both is the peer. Pixels stay bytes
until a batch is complete; it is normalized as a whole, in place."""
import json
import os
import random
import sys
import time


def make(folder):
    """Pictures with the spectrum of photographs and file sizes as in ImageNet (about 100 kB)."""
    import numpy as np
    from PIL import Image
    rng = np.random.default_rng(15)
    y, x = np.fft.fftfreq(375)[:, None], np.fft.rfftfreq(500)[None]
    slope = 1 / np.maximum(np.hypot(y, x), 1 / 500) ** 1.15
    with open(os.path.join(folder, "list.csv"), "w", encoding="ascii") as out:
        out.write("path,label\n")
        for i in range(64):
            planes = []
            for _ in range(3):
                noise = np.fft.irfft2(slope * np.fft.rfft2(rng.standard_normal((375, 500))), (375, 500))
                planes.append(noise / noise.std())
            gray = planes[0]
            mixed = np.stack([gray + 0.25 * plane for plane in planes], -1) * 45 + 128
            Image.fromarray(np.clip(mixed, 0, 255).astype(np.uint8)).save(
                os.path.join(folder, f"{i}.jpg"), quality=92)
            out.write(f"{i}.jpg,{i % 10}\n")


def run(kind, folder, seconds):
    import numpy as np
    import torch
    from PIL import Image
    torch.set_num_threads(1)
    paths = [os.path.join(folder, f"{i}.jpg") for i in range(64)]
    mean = torch.tensor([0.485, 0.456, 0.406]).view(1, 3, 1, 1) * 255
    factor = 1 / (torch.tensor([0.229, 0.224, 0.225]).view(1, 3, 1, 1) * 255)
    pixels = torch.empty(32, 224, 224, 3, dtype=torch.uint8)
    random.seed(1)

    def load(path, out):
        image = Image.open(path)
        if image.mode != "RGB":
            image = image.convert("RGB")
        width, height = image.size
        scale = 256 / min(width, height)
        new_width, new_height = round(width * scale), round(height * scale)
        left, top = random.randint(0, new_width - 224), random.randint(0, new_height - 224)
        if kind == "whole":
            image = image.resize((new_width, new_height), Image.Resampling.BILINEAR)
            image = image.crop((left, top, left + 224, top + 224))
        else:
            box = (left / scale, top / scale, (left + 224) / scale, (top + 224) / scale)
            image = image.resize((224, 224), Image.Resampling.BILINEAR, box=box)
        if random.random() < 0.5:
            image = image.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
        out.copy_(torch.from_numpy(np.array(image)))

    def batch(first):
        for i in range(32):
            load(paths[(first + i) % 64], pixels[i])
        return pixels.permute(0, 3, 1, 2).to(torch.float32, memory_format=torch.contiguous_format).sub_(mean).mul_(factor)

    batch(0)
    begun, count = time.perf_counter(), 0
    while time.perf_counter() - begun < seconds:
        batch(count)
        count += 32
    print(json.dumps({"bench": "torch_features", "kind": kind,
                      "records_per_second": round(count / (time.perf_counter() - begun), 1)}))


if sys.argv[1] == "make":
    make(sys.argv[2])
else:
    run(sys.argv[1], sys.argv[2], float(sys.argv[3]))
