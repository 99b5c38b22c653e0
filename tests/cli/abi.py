"""The binary interface of include/belfry as text: layouts of structs, values of enumerations, functions; abi.sh calls it.

usage: abi.py INCLUDE_FOLDER     prints one line for each item, in the order of the headers

It reads the declarations, and has a compiler ($CC, or cc) print the sizes, offsets and values. A struct with a size
that ends in padding is an error: a later field there would not change the size, and nothing sets its bytes.
"""
import os
import re
import subprocess
import sys
import tempfile


def without_comments(text):
    text = re.sub(r"/\*.*?\*/", " ", text, flags=re.DOTALL)
    text = re.sub(r"//[^\n]*", "", text)
    return re.sub(r"^\s*#([^\n]|\\\n)*$", "", text, flags=re.MULTILINE)


def outer(body):
    """The body without what nested braces hold."""
    depth, kept = 0, []
    for char in body:
        depth -= char == "}"
        if depth == 0:
            kept.append(char)
        depth += char == "{"
    return "".join(kept)


def fields_of(body):
    """(name, declaration) of each field; fields of one declaration have its words."""
    for declaration in outer(body).split(";"):
        words = " ".join(declaration.split())
        for part in re.sub(r"\(\s*\*\s*(\w+)\s*\)\([^)]*\)", r" \1", declaration).split(","):
            found = re.search(r"(\w+)\s*(\[[^\]]*\]\s*)*$", part.strip())
            if found:
                yield found[1], words


def items(text):
    """(kind, name, what) of the declarations: structs with fields, enumerations, functions and their types."""
    pattern = r"(?:typedef )?struct (\w+) \{|enum(?: (\w+))? \{|BEL_API\b[^;]*;|typedef [^;{]*\([^;{]*\);"
    for found in re.finditer(pattern, text):
        if found[0].startswith("BEL_API"):
            words = " ".join(found[0][7:-1].split())
            yield "function", None, re.sub(r" BEL_(MUST_USE|PRINTF\([^)]*\))", "", words)
            continue
        if found[0].endswith(";"):
            yield "function", None, " ".join(found[0][:-1].split())
            continue
        depth, end = 1, found.end()
        while depth > 0:
            depth += {"{": 1, "}": -1}.get(text[end], 0)
            end += 1
        body = text[found.end():end - 1]
        if found[1] is not None:
            yield "struct", found[1], list(fields_of(body))
        else:
            yield "enum", found[2], re.findall(r"(?:^|,)\s*(\w+)", re.sub(r"\([^()]*\)", "", body))


def main(folder):
    names = sorted(name for name in os.listdir(os.path.join(folder, "belfry")) if name.endswith(".h"))
    program = ["#include <stddef.h>", "#include <stdio.h>"] + [f"#include <belfry/{name}>" for name in names]
    program += ["int main(void)", "{"]
    for name in names:
        with open(os.path.join(folder, "belfry", name), encoding="utf-8") as file:
            text = without_comments(file.read())
        program.append(f'puts("# belfry/{name}");')
        for kind, item, what in items(text):
            if kind == "function":
                program.append(f'puts("{what}");')
            elif kind == "enum":
                if item is not None:
                    program.append(f'puts("enum {item}: {" ".join(what)}");')
                program += [f'printf("{value} = %lld\\n", (long long){value});' for value in what]
            else:
                program.append(f'printf("struct {item}: %zu bytes\\n", sizeof(struct {item}));')
                program += [f'printf("    {field} at %zu, %zu bytes: {words}\\n", offsetof(struct {item}, {field}), '
                            f'sizeof(((struct {item} *)0)->{field}));' for field, words in what]
                if ("size", "size_t size") in what:
                    last = what[-1][0]
                    program.append(f'_Static_assert(sizeof(struct {item}) == offsetof(struct {item}, {last}) + '
                                   f'sizeof(((struct {item} *)0)->{last}), "{item} ends in padding");')
    program += ["return 0;", "}", ""]
    with tempfile.TemporaryDirectory() as work:
        source, binary = os.path.join(work, "abi.c"), os.path.join(work, "abi")
        with open(source, "w", encoding="utf-8") as file:
            file.write("\n".join(program))
        subprocess.run([os.environ.get("CC", "cc"), "-I", folder, source, "-o", binary], check=True)
        sys.stdout.write(subprocess.run([binary], check=True, capture_output=True, text=True).stdout)


if __name__ == "__main__":
    main(sys.argv[1])
