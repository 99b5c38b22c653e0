#!/usr/bin/env python3
"""Writes audio_oracle.inc: features and resampled sounds that numpy computes in double. It follows the
definitions of include/belfry/features.h and uses no code of Belfry's. Run it after you change them:
    tests/unit/features/audio_oracle.py > tests/unit/features/audio_oracle.inc
Needs python3-numpy; the test needs only the .inc file."""
import numpy as np


def signal(count):
    """Noise of a congruential generator over a ramp with a step. The test computes the same signal."""
    state, out = 1, []
    for i in range(count):
        state = (state * 1103515245 + 12345) & 0x7FFFFFFF
        out.append(((state >> 15) & 0xFFFF) - 32768 if i % 400 < 250 else (i * 37 % 400) * 20 - 4000)
    return np.array(out) / 32768


def to_mel(hz, scale):
    if scale == "HTK":
        return 2595 * np.log10(1 + hz / 700)
    return np.where(hz < 1000, hz * 3 / 200, 15 + 27 * np.log(np.maximum(hz, 1e-9) / 1000) / np.log(6.4))


def to_hz(mel, scale):
    if scale == "HTK":
        return 700 * (10 ** (mel / 2595) - 1)
    return np.where(mel < 15, mel * 200 / 3, 1000 * 6.4 ** ((mel - 15) / 27))


def bank(rate, size, count, low, high, scale):
    hz = np.arange(size // 2 + 1) * rate / size
    edges = np.linspace(to_mel(np.float64(low), scale), to_mel(np.float64(high), scale), count + 2)
    x = to_mel(hz, scale) if scale == "HTK" else hz
    if scale != "HTK":
        edges = to_hz(edges, scale)
    rows = []
    for a, b, c in zip(edges, edges[1:], edges[2:]):
        row = np.maximum(0, np.minimum((x - a) / (b - a), (c - x) / (c - b)))
        rows.append(row if scale == "HTK" else row * 2 / (c - a))
    return np.array(rows)


def frames(x, rate, frame_ms, hop_ms, window, size):
    n, hop = int(frame_ms * rate / 1000 + 0.5), int(hop_ms * rate / 1000 + 0.5)
    i = np.arange(n)
    w = 0.5 - 0.5 * np.cos(2 * np.pi * i / n) if window == "HANN" else 0.54 - 0.46 * np.cos(2 * np.pi * i / n)
    starts = range(0, max(len(x) - n, 0) + 1, hop)
    cut = [np.pad(x[s:s + n], (0, n - len(x[s:s + n]))) * w for s in starts]
    return np.abs(np.fft.rfft(cut, size)) ** 2


def dct(x):
    m = x.shape[1]
    j, i = np.mgrid[0:m, 0:m]
    table = np.cos(np.pi * j * (i + 0.5) / m) * np.sqrt(2 / m)
    table[0] /= np.sqrt(2)
    return x @ table.T


def slopes(x):
    p = np.pad(x, ((2, 2), (0, 0)), mode="edge")
    return (p[3:-1] - p[1:-3] + 2 * (p[4:] - p[:-4])) / 10


def resample(x, old, new):
    """Computes each output from the formula, weight by weight."""
    g = np.gcd(old, new)
    up, down = new // g, old // g
    scale = min(1, up / down)
    reach = int(np.ceil(32 / scale))
    out = []
    for n in range(-(-len(x) * up // down)):
        t = n * down / up
        k = np.arange(n * down // up - reach + 1, n * down // up + reach + 1)
        d = t - k
        place = d * scale / 32
        w = np.where(np.abs(place) < 1, np.i0(7.857 * np.sqrt(np.maximum(0, 1 - place ** 2))), 0)
        w = w * np.sinc(0.92 * scale * d)
        w /= w.sum()
        inside = (k >= 0) & (k < len(x))
        out.append((w[inside] * x[k[inside]]).sum())
    return np.array(out)


def show(name, values):
    flat = np.asarray(values).ravel()
    print(f"static const float {name}[{len(flat)}] = {{")
    for i in range(0, len(flat), 6):
        print("    " + ", ".join(f"{v:.9e}F" for v in flat[i:i + 6]) + ",")
    print("};")


print("// Made by audio_oracle.py; see there.")
x = signal(1000)
power = frames(x, 8000, 25, 10, "HANN", 256)
mel = np.log(np.maximum(power @ bank(8000, 256, 26, 0, 4000, "HTK").T, 1e-10))
show("log_mel_htk", mel)
power16 = frames(x, 16000, 25, 10, "HAMMING", 1024)
slaney = np.log(np.maximum(power16 @ bank(16000, 1024, 40, 80, 7600, "SLANEY").T, 1e-10))
show("log_mel_slaney", slaney)
cepstra = dct(mel)[:, :13]
show("mfcc_with_slopes", np.hstack([cepstra, slopes(cepstra), slopes(slopes(cepstra))]))
show("power_64", frames(x[:300], 1000, 50, 20, "HANN", 64))
show("power_short", frames(x[:30], 1000, 50, 20, "HANN", 64))
show("up_44100_48000", resample(x[:120], 44100, 48000))
show("down_44100_16000", resample(x[:400], 44100, 16000))
show("up_8000_16000", resample(x[:60], 8000, 16000))
