#!/usr/bin/env python3
"""Checks a manifest against the schemas beside this file: only their fields, with their types.

usage: validate.py MANIFEST     exits with 1 after printing a line for each mistake
The schemas use these words of JSON Schema: type, properties, required, additionalProperties (a schema), items, enum, pattern,
minimum, maxLength, $ref into "definitions". An object has only the properties that its schema names.
"""
import json
import pathlib
import re
import sys

import yaml

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int}
folder = pathlib.Path(__file__).parent


def check(value, schema, root, place, say):
    if "$ref" in schema:
        name, _, definition = schema["$ref"].partition("#/definitions/")
        if name:
            root = json.loads((folder / name).read_text())
        return check(value, root["definitions"][definition], root, place, say)
    kind = schema["type"]
    if not isinstance(value, TYPES[kind]) or (kind == "integer" and isinstance(value, bool)):
        return say(place, f"expected {kind}, got {value!r}")
    if "enum" in schema and value not in schema["enum"]:
        say(place, f"expected one of {schema['enum']}, got {value!r}")
    if "pattern" in schema and not re.fullmatch(schema["pattern"], value):
        say(place, f"expected {schema['pattern']}, got {value!r}")
    if "minimum" in schema and value < schema["minimum"]:
        say(place, f"expected {schema['minimum']} at least, got {value!r}")
    if "maxLength" in schema and len(value) > schema["maxLength"]:
        say(place, f"expected at most {schema['maxLength']} characters, got {len(value)}")
    if kind == "array":
        for i, item in enumerate(value):
            check(item, schema["items"], root, f"{place}[{i}]", say)
    if kind == "object":
        known, others = schema.get("properties", {}), schema.get("additionalProperties")
        for name in schema.get("required", []):
            if name not in value:
                say(place, f"{name} is missing")
        for name, item in value.items():
            if name in known or others:
                check(item, known.get(name, others), root, f"{place}.{name}", say)
            else:
                say(place, f"unknown field {name}")
    return None


def main():
    mistakes = []
    documents = list(yaml.safe_load_all(open(sys.argv[1], encoding="utf-8")))
    for value in documents:
        kind = value.get("kind", "") if isinstance(value, dict) else ""
        schema = folder / f"{kind.lower()}.json"
        if not kind.isalpha() or not schema.exists():
            mistakes.append(f"unknown kind {kind!r}")
            continue
        root = json.loads(schema.read_text())
        check(value, root, root, kind, lambda place, what: mistakes.append(f"{place}: {what}"))
    print("\n".join(mistakes or [" ".join(value["kind"] for value in documents)]))
    return 1 if mistakes or not documents else 0


if __name__ == "__main__":
    sys.exit(main())
