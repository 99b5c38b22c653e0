"""Commands and programs in the fenced blocks of documents; docs.sh calls this.

usage: docs.py check BELFRY PAGE..   every block has a kind; every flag after `belfry` exists
       docs.py script PAGE           prints the blocks of kind `sh`, in their order
       docs.py sizes PAGE|HEADER..   structs with a size have it in examples (belfry/belfry.h)
       docs.py defaults HEADER TABLE the defaults in belfry/run.h equal those of estimator/run_settings.h

A block of kind `sh` runs in a test as it is. The commands of `sh norun` need hosts, data or programs
that no test has, so only their flags are checked.
"""
import re
import shlex
import subprocess
import sys

ENDS = {"|", "&&", "||", ";", "&", "(", ")"}
COMMANDS = ("belfry", "$belfry")
PLACEHOLDERS = ("…", "training", "flags")


def blocks(path):
    """(line, kind, lines) of each fenced block."""
    found, kind = [], None
    with open(path, encoding="utf-8") as page:
        for number, line in enumerate(page, 1):
            text = line.strip()
            if not text.startswith("```"):
                if kind is not None:
                    found[-1][2].append(line.rstrip("\n"))
            elif kind is None:
                kind = text[3:]
                found.append((number, kind, []))
            else:
                kind = None
    return found


def flags_of(belfry, verb):
    text = subprocess.run([belfry] + verb + ["--help"], capture_output=True, text=True, check=True).stdout
    flags = {"help"}
    for name in re.findall(r"^  (?:-h, )?--(\[no_\])?([a-z0-9_]+)", text, re.MULTILINE):
        flags.add(name[1])
        if name[0]:
            flags.add("no_" + name[1])
    return flags


def words_of(lines):
    """Words of each command line, with continued lines joined and comments left out."""
    for line in "\n".join(lines).replace("\\\n", " ").split("\n"):
        lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
        lexer.whitespace_split = True
        try:
            yield list(lexer)
        except ValueError:  # a quote that a later line closes
            continue


def documented_defaults(path):
    """{field: text in the last brackets of its comment} of bel_run_config; "" without brackets."""
    with open(path, encoding="utf-8") as file:
        body = re.search(r"typedef struct bel_run_config \{\n(.*?)\n\} bel_run_config;", file.read(), re.DOTALL)[1]
    found = {}
    item = r"((?:^ *///(?!<).*\n)*)^ *([^/\n]+;)((?: *///<.*\n)*)"  # comment, fields, comment
    for before, code, after in re.findall(item, body + "\n", re.MULTILINE):
        brackets = re.findall(r"\[([^\[\]]*)\]", before + after)
        for name in re.findall(r"(\w+)[,;]", code):
            found[name] = brackets[-1] if brackets else ""
    return found


def check_defaults(header, table):
    """Number of fields whose documented default is another one."""
    documented, wrong = documented_defaults(header), 0
    with open(table, encoding="utf-8") as file:
        rows = re.findall(r'ROW\([A-Z]+, (\w+), \w+, [^"]*"([^"]*)"', file.read())
    for name, default in rows:
        said = documented[name].lower()
        if said != default and not (said == "" and default in ("", "0", "false")):
            wrong += 1
            print(f"FAILED: {header}: {name} has the default {default}, not [{documented[name]}]")
    return wrong if len(rows) > 40 else 1


def check_sizes(paths):
    """Number of initializers without a size; HEADER's examples are in its comments."""
    headers = "".join(open(p, encoding="utf-8").read() for p in paths if p.endswith(".h"))
    sized = "|".join(re.findall(r"typedef struct (\w+) \{\n *size_t size;", headers))
    wrong = 0
    for path in paths:
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"^///", "", file.read(), flags=re.MULTILINE) if path.endswith(".h") else file.read()
        for found in re.finditer(rf"\b({sized})(?: \w+ = |\)){{(?!\s*\.size = )", text):
            wrong += 1
            print(f"FAILED: {path}:{text[:found.start()].count(chr(10)) + 1}: {found[1]} without .size")
    return wrong if sized else 1


class Checker:
    def __init__(self, belfry):
        self.belfry, self.known, self.failures = belfry, {}, 0
        listed = subprocess.run([belfry, "help"], capture_output=True, text=True, check=True).stdout
        self.verbs = {tuple(v.split()) for v in re.findall(r"^  ([a-z_]+(?:[ -][a-z_-]+)*)  ", listed, re.MULTILINE)}

    def fail(self, place, text):
        self.failures += 1
        print(f"FAILED: {place}: {text}")

    def flags(self, verb):
        if verb not in self.known:
            self.known[verb] = flags_of(self.belfry, list(verb))
        return self.known[verb]

    def check_command(self, place, words):
        verb = next((tuple(words[:n]) for n in (3, 2, 1) if tuple(words[:n]) in self.verbs), None)
        if verb is None:
            if words and words[0] not in ("VERB", "help", "-h", "manual"):
                self.fail(place, f"no such verb: {' '.join(words[:2])}")
            return
        known = self.flags(verb)
        for i, word in enumerate(words):
            if word == "--":
                if i + 1 < len(words) and words[i + 1].startswith("./"):
                    return  # flags of a program
                known = self.flags(("train_and_evaluate",))
            elif word.startswith("--"):
                name = word[2:].split("=")[0].replace("-", "_")
                if name not in known:
                    self.fail(place, f"{' '.join(verb)} has no flag {word}")

    def check(self, path):
        for number, kind, lines in blocks(path):
            place = f"{path}:{number}"
            if kind == "":
                self.fail(place, "a block without a kind (sh, sh norun, text, c, yaml, json)")
            if kind.split(" ")[0] != "sh":
                continue
            for words in words_of(lines):
                for i, word in enumerate(words):
                    if word not in COMMANDS:
                        continue
                    rest = words[i + 1:]
                    ends = [j for j, other in enumerate(rest) if other in ENDS or other[0] in "<>"]
                    self.check_command(place, rest[:ends[0]] if ends else rest)


def main(arguments):
    if arguments[0] == "script":
        for number, kind, lines in blocks(arguments[1]):
            if kind == "sh":
                print("\n".join([f"# line {number}"] + lines))
        return 0
    if arguments[0] == "defaults":
        return 1 if check_defaults(arguments[1], arguments[2]) else 0
    if arguments[0] == "sizes":
        return 1 if check_sizes(arguments[1:]) else 0
    checker = Checker(arguments[1])
    for path in arguments[2:]:
        checker.check(path)
    return 1 if checker.failures else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
