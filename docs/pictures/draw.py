#!/usr/bin/env python3
"""Draws architecture.svg and step.svg beside this file. Colors follow the reader's light or dark mode.

usage: docs/pictures/draw.py
"""
import pathlib

STYLE = """<style>
  svg { color-scheme: light dark; }
  text { font: 14px system-ui, sans-serif; fill: #1f2328; }
  .small { font-size: 12px; fill: #59636e; }
  .head { font-weight: 600; }
  .box { fill: #f6f8fa; stroke: #8c959f; }
  .worker { fill: #ddf4ff; stroke: #0969da; }
  .shard { fill: #dafbe1; stroke: #1a7f37; }
  .master { fill: #fff8c5; stroke: #9a6700; }
  .line { stroke: #59636e; stroke-width: 1.5; fill: none; marker-end: url(#arrow); }
  .both { marker-start: url(#arrow); }
  .tip { fill: #59636e; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .small { fill: #9198a1; }
    .box { fill: #151b23; stroke: #656c76; }
    .worker { fill: #0c2d6b; stroke: #4493f8; }
    .shard { fill: #04260f; stroke: #3fb950; }
    .master { fill: #341a00; stroke: #d29922; }
    .line { stroke: #9198a1; }
    .tip { fill: #9198a1; }
  }
</style>
<defs><marker id="arrow" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto-start-reverse">
  <path class="tip" d="M0 0 L8 4 L0 8 z"/></marker></defs>
"""


class Picture:
    def __init__(self, width, height, title):
        self.parts = [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
            f'width="{width}" height="{height}" role="img">\n<title>{title}</title>\n',
            STYLE,
        ]

    def box(self, x, y, width, height, kind, head, *lines):
        self.parts.append(f'<rect class="{kind}" x="{x}" y="{y}" width="{width}" height="{height}" rx="6"/>\n')
        self.text(x + width / 2, y + 22, head, "head", "middle")
        for number, line in enumerate(lines):
            self.text(x + width / 2, y + 42 + 17 * number, line, "small", "middle")

    def text(self, x, y, text, kind="", anchor="start"):
        text = text.replace("&", "&amp;").replace("<", "&lt;")
        self.parts.append(f'<text class="{kind}" x="{x}" y="{y}" text-anchor="{anchor}">{text}</text>\n')

    def line(self, path, both=False):
        self.parts.append(f'<path class="line{" both" if both else ""}" d="{path}"/>\n')

    def write(self, name):
        path = pathlib.Path(__file__).parent / name
        path.write_text("".join(self.parts) + "</svg>\n", encoding="utf-8")


def architecture():
    p = Picture(860, 445, "The processes of a job and what goes between them")
    p.box(20, 20, 240, 76, "box", "supervisor", "belfry local · jobs · a launcher", "starts processes, starts them again")
    p.box(330, 20, 240, 76, "master", "master", "builds the model, decides, saves,", "evaluates, reports")
    p.box(640, 20, 200, 76, "box", "model folder", "checkpoints · events · report", "journal · token")
    p.line("M260 58 H330")
    p.line("M570 58 H640", True)
    for number in range(2):
        x = 20 + 430 * number
        p.box(x, 160, 390, 106, "worker", f"worker {number}", "the step loop: batches, programs, gradients")
        for tower in range(2):
            p.box(x + 20 + 180 * tower, 214, 170, 42, "box", f"tower · replicas {4 * number + 2 * tower}, {4 * number + 2 * tower + 1}")
    p.line("M450 96 V128 M450 128 H215 V160")
    p.line("M450 128 H645 V160")
    p.text(462, 116, "control: setup, go on, save, stop (gRPC)", "small")
    for number in range(2):
        x = 20 + 430 * number
        p.box(x, 350, 390, 76, "shard", f"parameter server {number} · shard {number}", "sums over the tree, clips, updates, publishes", "holds optimizer slots and rows of tables")
    p.line("M120 266 V350", True)
    p.line("M740 266 V350", True)
    p.line("M300 266 L560 350", True)
    p.line("M560 266 L300 350", True)
    p.text(132, 300, "lanes: reports down,", "small")
    p.text(132, 317, "versions up", "small")
    p.text(728, 300, "in place on one host,", "small", "end")
    p.text(728, 317, "gRPC between hosts", "small", "end")
    p.write("architecture.svg")


def step():
    p = Picture(860, 330, "One synchronous step, from version s to version s + 1")
    for y, name in ((70, "input"), (130, "tower"), (190, "worker"), (250, "shard")):
        p.text(20, y + 20, name, "head")
    p.text(110, 40, "version s is published", "small")
    p.text(720, 40, "version s + 1", "small")
    p.line("M110 50 V300")
    p.line("M780 50 V300")
    p.box(120, 66, 150, 34, "box", "batch s + 1")
    p.text(280, 88, "read ahead; a function of (seed, step, replica) alone", "small")
    p.box(120, 126, 170, 34, "worker", "forward")
    p.box(300, 126, 290, 34, "worker", "backward: gradients in place")
    p.box(360, 186, 80, 34, "worker", "chunk 3")
    p.box(450, 186, 80, 34, "worker", "chunk 2")
    p.box(540, 186, 80, 34, "worker", "chunk 1")
    p.text(120, 208, "each chunk goes as soon as it is finished", "small")
    p.box(450, 246, 80, 34, "shard", "pass 3")
    p.box(540, 246, 80, 34, "shard", "pass 2")
    p.box(630, 246, 80, 34, "shard", "pass 1")
    p.text(120, 268, "sum in the tree's order, mean, clip, update, publish", "small")
    p.line("M400 160 V186")
    p.line("M490 160 V186")
    p.line("M580 160 V186")
    p.line("M420 220 L470 246")
    p.line("M510 220 L560 246")
    p.line("M600 220 L650 246")
    p.line("M710 263 H780")
    p.text(120, 318, "The order of every sum follows from replica ids and shapes, never from who is first: the same bits for any assignment.", "small")
    p.write("step.svg")


architecture()
step()
