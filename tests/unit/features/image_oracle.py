#!/usr/bin/env python3
"""Writes image_oracle.inc: small files of every supported kind, their pixels, and pictures that numpy
scaled and rotated in double by the definitions of include/belfry/features.h. Pillow writes JPEG and
most PNG files and reads the JPEG files again. Run it after you change those definitions:
    tests/unit/features/image_oracle.py > tests/unit/features/image_oracle.inc
Needs python3-numpy and python3-pil; the test needs only the .inc file."""
import io
import struct
import zlib

import numpy as np
from PIL import Image

H, W = 13, 21


def picture():
    """Smooth colors with an edge; every value is an integer formula."""
    y, x = np.mgrid[0:H, 0:W]
    red, green, blue = x * 12 % 256, y * 19 % 256, (x * y * 3 + 40) % 256
    out = np.stack([red, green, blue], -1)
    out[3:7, 8:15] = [250, 30, 90]
    return out.astype(np.uint8)


def show(name, values):
    flat = np.frombuffer(bytes(values), np.uint8) if isinstance(values, bytes) else np.asarray(values).ravel()
    print(f"static const uint8_t {name}[{len(flat)}] = {{")
    for i in range(0, len(flat), 16):
        print("    " + ", ".join(str(v) for v in flat[i:i + 16]) + ",")
    print("};")


def save(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def interlaced(pixels):
    """Adam7, by hand: Pillow writes none."""
    raw = b""
    for y0, x0, dy, dx in ((0, 0, 8, 8), (0, 4, 8, 8), (4, 0, 8, 4), (0, 2, 4, 4), (2, 0, 4, 2), (0, 1, 2, 2), (1, 0, 2, 1)):
        part = pixels[y0::dy, x0::dx]
        for row in part:
            if len(row):
                raw += b"\0" + row.tobytes()
    head = struct.pack(">IIBBBBB", W, H, 8, 2, 0, 0, 1)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(raw)) + chunk(b"IEND", b"")


def weights(old, new):
    """Row i: how much each old place counts for new place i."""
    step = old / new
    reach = max(step, 1)
    out = np.zeros((new, old))
    for i in range(new):
        middle = (i + 0.5) * step
        place = np.abs(np.arange(old) + 0.5 - middle) / reach
        begin, end = int(np.floor(middle - reach + 0.5)), int(np.floor(middle + reach + 0.5))
        inside = (np.arange(old) >= begin) & (np.arange(old) < end)
        row = np.maximum(1 - place, 0) * inside
        out[i] = row / row.sum()
    return out


def resize(pixels, height, width):
    middle = np.einsum("ab,bcd->acd", weights(pixels.shape[0], height), pixels.astype(float))
    return np.floor(np.einsum("ab,cbd->cad", weights(pixels.shape[1], width), middle) + 0.5).astype(np.uint8)


def rotate(pixels, degrees):
    angle = np.deg2rad(degrees)
    y, x = np.mgrid[0:H, 0:W]
    dx, dy = x - (W - 1) / 2, y - (H - 1) / 2
    u = (W - 1) / 2 + np.cos(angle) * dx - np.sin(angle) * dy
    v = (H - 1) / 2 + np.sin(angle) * dx + np.cos(angle) * dy
    padded = np.pad(pixels.astype(float), ((40, 40), (40, 40), (0, 0)))
    i, j = np.floor(v).astype(int), np.floor(u).astype(int)
    a, b = (v - i)[..., None], (u - j)[..., None]
    i, j = i + 40, j + 40
    out = (padded[i, j] * (1 - a) * (1 - b) + padded[i, j + 1] * (1 - a) * b
           + padded[i + 1, j] * a * (1 - b) + padded[i + 1, j + 1] * a * b)
    return np.floor(out + 0.5).astype(np.uint8)


print("// Made by image_oracle.py; see there.")
print(f"enum {{ ORACLE_HEIGHT = {H}, ORACLE_WIDTH = {W} }};")
rgb = picture()
gray = ((rgb.astype(np.uint32) @ np.array([19595, 38470, 7471], np.uint32) + 32768) >> 16).astype(np.uint8)
image, gray_image = Image.fromarray(rgb), Image.fromarray(gray)
show("picture_rgb", rgb)
show("picture_gray", gray)

for name, source, options in (("baseline", image, {}), ("progressive", image, {"progressive": True}),
                              ("full", image, {"subsampling": 0}), ("gray", gray_image, {})):
    data = save(source, "JPEG", quality=85, **options)
    show(f"jpeg_{name}", data)
    show(f"jpeg_{name}_pixels", np.array(Image.open(io.BytesIO(data)).convert("RGB")))
inks = Image.merge("CMYK", [Image.fromarray(c) for c in (255 - rgb[..., 0], 255 - rgb[..., 1], 255 - rgb[..., 2], gray // 4)])
data = save(inks, "JPEG", quality=95)
show("jpeg_inks", data)
kept = 255 - np.array(Image.open(io.BytesIO(data))).astype(int)  # Pillow inverts Adobe's inks
show("jpeg_inks_pixels", ((kept[..., :3] * kept[..., 3:] + 127) // 255).astype(np.uint8))

y, x = np.mgrid[0:97, 0:150]
large = np.stack([(x * x // 7 + y * 5) % 256, (x * y // 3) % 256, (y * y // 5 + x * 3) % 256], -1).astype(np.uint8)
for name, subsampling in (("420", 2), ("422", 1), ("444", 0)):
    show(f"jpeg_large_{name}", save(Image.fromarray(large), "JPEG", quality=30, subsampling=subsampling))

show("png_rgb", save(image, "PNG"))
alpha = image.copy()
alpha.putalpha(gray_image)
show("png_alpha", save(alpha, "PNG"))
show("png_gray", save(gray_image, "PNG"))
show("png_interlaced", interlaced(rgb))
palette = image.quantize(11)
show("png_palette", save(palette, "PNG", bits=4))
show("png_palette_pixels", np.array(palette.convert("RGB")))
show("png_bit", save(gray_image.point(lambda v: 255 * (v > 99)).convert("1"), "PNG"))
show("png_bit_pixels", (gray > 99) * np.uint8(255))
show("png_16", save(Image.fromarray(gray.astype(np.uint16) * 256 + 77), "PNG"))

show("resized_7_9", resize(rgb, 7, 9))
show("resized_30_11", resize(rgb, 30, 11))
show("resized_2_50", resize(rgb, 2, 50))
show("rotated_17", rotate(rgb, 17))
show("rotated_minus_90", rotate(rgb, -90))
