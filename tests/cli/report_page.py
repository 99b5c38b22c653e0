"""report.html, as an HTML parser reads it: every element closes, nothing comes from elsewhere, every
chart has its points, and the tables say what is expected.

usage: report_page.py PAGE [TEXT…]    each TEXT must stand on the page, blanks and tags aside
"""

import html.parser
import re
import sys

WITHOUT_END = {"meta"}


class Page(html.parser.HTMLParser):
    def __init__(self):
        super().__init__(convert_charrefs=True)
        self.open, self.faults, self.charts, self.words = [], [], [], []
        self.headings, self.cells, self.bars = [], [], []

    def fault(self, text):
        self.faults.append(f"line {self.getpos()[0]}: {text}")

    def handle_starttag(self, tag, pairs):
        if tag in WITHOUT_END:
            return
        self.open.append(tag)
        self.look_at(tag, pairs)

    def handle_startendtag(self, tag, pairs):
        self.look_at(tag, pairs)

    def look_at(self, tag, pairs):
        for name, value in pairs:
            if name in ("src", "href", "srcset", "action", "data") or re.search(r"(https?:)?//", value or ""):
                self.fault(f"{tag} has {name}={value}, which leads elsewhere")
        attributes = dict(pairs)
        if "svg" in self.open or tag == "svg":
            for name in attributes.keys() - {"data-name", "aria-label"}:
                if re.search(r"(^|[^a-z])-?(nan|inf)\b", attributes[name] or ""):
                    self.fault(f"{tag} has {name}={attributes[name]}")
        if tag == "svg":
            self.charts.append([])
        elif tag == "path" and attributes.get("class", "").startswith("line"):
            self.charts[-1].append(attributes)
        elif tag == "i" and "flex:" in attributes.get("style", ""):
            self.bars.append(float(attributes["style"].split("flex:")[1]))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.fault(f"</{tag}> closes what is not open")

    def handle_data(self, data):
        if self.open and self.open[-1] in ("script", "style"):
            if re.search(r"https?://|@import|url\(", data):
                self.fault(f"the {self.open[-1]} fetches something")
            return
        self.words += data.split()
        if self.open and self.open[-1] == "h2":
            self.headings.append(data)


def points_of(line):
    numbers = re.findall(r"[ML](-?[0-9.]+) (-?[0-9.]+)", line.get("d", ""))
    return [(float(x), float(y)) for x, y in numbers]


def check_charts(page):
    for at, lines in enumerate(page.charts):
        if not lines:
            page.faults.append(f"chart {at} has no curve")
        for line in lines:
            points = points_of(line)
            if not points:
                page.faults.append(f"chart {at} has a curve without points")
            read_out = line.get("data-points")
            if read_out is not None and len(read_out.split()) != len(points):
                page.faults.append(f"chart {at}: {len(points)} points are drawn, {len(read_out.split())} can be read")


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        text = file.read()
    page = Page()
    page.feed(text)
    page.close()
    if page.open:
        page.faults.append(f"never closed: {page.open}")
    check_charts(page)
    if page.bars and abs(sum(page.bars) - 100) > 0.1:
        page.faults.append(f"the parts of a step are {sum(page.bars)} % of it")
    words = " ".join(page.words)
    for expected in sys.argv[2:]:
        if " ".join(expected.split()) not in words:
            page.faults.append(f"the page does not say: {expected}")
    print(f"{len(page.charts)} charts; {', '.join(page.headings)}")
    for fault in page.faults:
        print(fault, file=sys.stderr)
    return 1 if page.faults else 0


sys.exit(main())
