#!/usr/bin/python3
"""Compares the ratios in README.md and bench/README.md with measured ones, or writes them there.

usage: check_figures.py [--write] FIGURES     FIGURES: the file of bench/run, "NAME MEDIAN LOW HIGH COUNT" a line

A row of bench/README.md is "| `NAME` | what | RATIO [LOW, HIGH] | COUNT | date | mark |". A row of README.md has the name
in a comment, <!-- NAME -->, and a ratio in the column of each vector level; the column of this processor's level is
meant. A ratio is right if it is within the quartiles, widened by a tenth. Names that FIGURES lacks are left out. The
exit code is 1 if a ratio is wrong, or if none was compared."""
import datetime
import re
import sys

WIDER = 1.1
PAGES = "bench/README.md", "README.md"


def read(path):
    figures = {}
    with open(path, encoding="ascii") as lines:
        for line in lines:
            name, median, low, high, count = line.split("\t")
            figures[name] = float(median), float(low), float(high), int(count)
    return figures


def level():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        return "AVX-512" if "avx512vl" in file.read() else "AVX2"


def text_of(number):
    return f"{number:.0f}" if number >= 100 else f"{number:.3g}" if number >= 0.1 else f"{number:.2g}"


class Page:
    """Lines of a page; `column` is that of this level in the table at hand."""

    def __init__(self, path):
        self.path, self.column = path, None
        with open(path, encoding="utf-8") as file:
            self.lines = file.read().split("\n")

    def rows(self):
        """(line number, name, cells, index of the ratio's cell)"""
        for number, line in enumerate(self.lines):
            cells = line.split("|")
            if level() in [cell.strip() for cell in cells]:
                self.column = [cell.strip() for cell in cells].index(level())
            found = re.match(r"\| `([\w.-]+)` \|", line)
            if found and len(cells) == 8:
                yield number, found[1], cells, 3
            found = re.search(r"<!-- ([\w.-]+) -->", line)
            if found and line.startswith("|") and self.column is not None:
                yield number, found[1], cells, self.column

    def check(self, figures):
        seen = wrong = 0
        for number, name, cells, place in self.rows():
            ratio = re.search(r"-?\d+\.?\d*", cells[place])
            if name not in figures or ratio is None:
                continue
            median, low, high, count = figures[name]
            seen += 1
            widened = [bound * factor for bound in (low, high) for factor in (WIDER, 1 / WIDER)]
            if not min(widened) <= float(ratio[0]) <= max(widened):
                wrong += 1
                print(f"{self.path}:{number + 1}: {name} is {ratio[0]}, measured {text_of(median)} "
                      f"[{text_of(low)}, {text_of(high)}] in {count} rounds")
        return seen, wrong

    def write(self, figures):
        for number, name, cells, place in self.rows():
            if name not in figures:
                continue
            median, low, high, count = figures[name]
            cells[place] = f" {text_of(median)} "
            if self.path != "README.md":
                cells[place] = f" **{text_of(median)}** [{text_of(low)}, {text_of(high)}] "
                cells[4], cells[5] = f" {count} ", f" {datetime.date.today()} "
            self.lines[number] = "|".join(cells)
        with open(self.path, "w", encoding="utf-8") as file:
            file.write("\n".join(self.lines))


def main(arguments):
    write = arguments[:1] == ["--write"]
    if len(arguments) != 1 + write or arguments[-1].startswith("-"):
        sys.exit(__doc__)
    figures = read(arguments[-1])
    pages = [Page(path) for path in PAGES]
    if write:
        for page in pages:
            page.write(figures)
        return 0
    results = [page.check(figures) for page in pages]
    seen, wrong = sum(result[0] for result in results), sum(result[1] for result in results)
    print(f"check_figures: {seen} figures compared, {wrong} wrong")
    return 1 if wrong > 0 or seen == 0 else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
