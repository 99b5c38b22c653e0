"""Structs and arguments of the C library from Python values, by the declarations in the headers.

    make("bel_exporter", {"name": "best", "kind": "best"})

    bool, numbers           the same; fractions, overflow and other types are refused
    const char *            a str, or a path
    an enumeration          the end of an enumerator's name: "best" is BEL_EXPORT_BEST
    bel_dtype, bel_shape    a type of numpy, or str; a sequence with None or -1 for an open dimension
    a struct                a mapping of its fields
    a list                  a sequence; its count is set as well
    a list of pairs         also a mapping: {"encoder/*": "bert/*"} is a list of bel_rename

A struct of ctypes keeps the texts, lists and structs that it points to: hold it as long as C may read it.
"""

import ctypes
import difflib
import functools
import itertools
import os
import re
from typing import Any, Dict, Iterable, List, Mapping, Optional, Union

import numpy as np

from .errors import InvalidArgumentError, expect
from .library import lib
from .tensors import dtype_number

Path = Union[str, "os.PathLike[str]"]


@functools.lru_cache(maxsize=None)
def enumerators(kind: str) -> Dict[str, int]:
    """The names of an enumeration without their common prefix, in lower case: {"auto": 0, "min": 1, "max": 2}."""
    names = [name for name in lib.enums[kind] if not name.endswith("_COUNT")]
    prefix = os.path.commonprefix(names).rpartition("_")[0]
    return {name[len(prefix) + 1:].lower(): getattr(lib, name) for name in names}


def enumerator(kind: str, value: int) -> str:
    """The name of a number of an enumeration, as `enumerators` has it."""
    return next(name for name, number in enumerators(kind).items() if number == value)


def number(kind: str, name: Any, what: str) -> int:
    """The number of a name of an enumeration. InvalidArgumentError: there is no such name."""
    names = enumerators(kind)
    if not isinstance(name, str) or name not in names:
        raise InvalidArgumentError(f"{what}: expected {', '.join(names)}, got {name!r}")
    return names[name]


def refuse(name: str, known: Iterable[str], what: str) -> InvalidArgumentError:
    """The error about a name that is not known; it names similar ones, or else all."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, 3, 0.6)
    hint = f"did you mean {' or '.join(near)}?" if near else f"expected one of {', '.join(names)}"
    return InvalidArgumentError(f"{what}: there is no {name}; {hint}")


def _count_field(field: str, fields: Mapping[str, str]) -> Optional[str]:
    """The field with the count of a list: paths and path_count, classes and class_count."""
    for single in (field, field[:-1], field[:-2], field[:-3] + "y"):
        if single + "_count" in fields:
            return single + "_count"
    return None


def settings_of(struct: str) -> Dict[str, str]:
    """The fields of a struct that a user sets, with their declarations: no sizes, counts, `user` and results."""
    fields = lib.fields(struct)
    counts = {_count_field(name, fields) for name, words in fields.items() if "*" in words}
    hidden = {"size", *counts, *(name for name in fields if re.search(r"^out_|^(\w+_)?user$", name))}
    return {name: words for name, words in fields.items() if name not in hidden}


def make(struct: str, values: Mapping[str, Any], what: str = "", into: Any = None) -> Any:
    """Fills in a struct from the values of its fields.

    struct: its name. values: by the names of the fields; None leaves a field at its default. into: a struct that has
    its defaults already. Returns the struct. InvalidArgumentError: no such field, which names similar ones; a value of
    another type or out of range.
    """
    what = what or struct[len("bel_"):]
    result = getattr(lib, struct)() if into is None else into
    fields, settings = lib.fields(struct), settings_of(struct)
    if hasattr(lib, struct + "_init") and into is None:
        getattr(lib, struct + "_init")(ctypes.byref(result), ctypes.sizeof(result))
    elif "size" in fields and into is None:
        result.size = ctypes.sizeof(result)
    for name, value in values.items():
        if name not in settings:
            raise refuse(name, settings, what)
        if value is None:
            continue
        kind = re.sub(rf"\s*\b{name}\b", "", fields[name], count=1)
        where = f"{what}.{name}"
        if isinstance(value, ctypes._CFuncPtr):  # type: ignore[attr-defined]
            setattr(result, name, value)
        elif kind.startswith("char["):
            setattr(result, name, short(text(value, where), getattr(type(result), name).size - 1, where))
        elif "[" in kind:
            _fill(getattr(result, name), kind.split("[")[0], value, where)
        elif _is_list(kind):
            array = sequence(kind, value, where)
            setattr(result, name, array if isinstance(array, ctypes.Array) else None)
            count = _count_field(name, fields)
            if count is not None:
                setattr(result, count, len(array))
        else:
            setattr(result, name, convert(kind, value, where))
    return result


def _base(kind: str) -> str:
    return " ".join(word for word in kind.replace("*", " ").split() if word not in ("const", "struct"))


def _is_list(kind: str) -> bool:
    """Whether a declaration is a list: a pointer, but no text and no opaque object."""
    stars, base = kind.count("*"), _base(kind)
    return stars == 2 or (stars == 1 and base not in ("char", "void") and
                          (not base.startswith("bel_") or base in lib.struct_names()))


def sequence(kind: str, values: Any, what: str) -> Any:
    """An array of ctypes for a list declared as `kind`, "const int64_t *"; [] for none. A mapping is a list of pairs:
    structs of two fields."""
    if isinstance(values, (str, bytes)) or not isinstance(values, (Mapping, list, tuple, range, np.ndarray, set)):
        raise InvalidArgumentError(f"{what}: expected a list, got {type(values).__name__}")
    element = kind[:kind.rindex("*")].strip()
    element = element[:-len("const")].strip() if element.endswith("const") else element
    if isinstance(values, Mapping):
        names = list(lib.fields(_base(kind)))
        values = [dict(zip(names, pair)) for pair in values.items()]
    items = [convert(element, value, f"{what}[{index}]") for index, value in enumerate(values)]
    if not items:
        return []
    base = _base(element)
    ctype = ctypes.c_char_p if base == "char" else ctypes.c_void_p if "*" in element else lib.type_of(base)
    return (ctype * len(items))(*items)


def _fill(array: Any, element: str, values: Any, what: str) -> None:
    """Fills in an array inside of a struct."""
    items = sequence(element + " *", values, what)
    expect(len(items) <= len(array), f"{what}: expected at most {len(array)} values, got {len(items)}")
    for index, item in enumerate(items):
        array[index] = item


def short(encoded: bytes, most: int, what: str) -> bytes:
    """The same text, which must not be longer than `most` bytes."""
    expect(len(encoded) <= most, f"{what}: expected at most {most} bytes, got {len(encoded)}")
    return encoded


def convert(kind: str, value: Any, what: str) -> Any:
    """`value` as one object of the C type `kind`, such as "int64_t" or "bel_goal"; see the head of this file."""
    base = _base(kind)
    if base == "char" and "*" in kind:
        return text(value, what)
    if "*" in kind:
        expect(isinstance(value, (ctypes.c_void_p, ctypes._Pointer)), f"{what}: expected an object of the library, got "
               f"{value!r}")
        return value
    if base == "bool":
        expect(isinstance(value, (bool, np.bool_)), f"{what}: expected True or False, got {value!r}")
        return bool(value)
    if base == "char":
        return short(text(value, what), 1, what) or b"\0"
    if base in ("double", "float"):
        expect(not isinstance(value, (str, bytes)) and hasattr(value, "__float__"), f"{what}: expected a number, got "
               f"{value!r}")
        return float(value)
    if base == "bel_dtype":
        return lib.BEL_DTYPE_STRING if value in (str, "str") else dtype_number(value, what)
    if base == "bel_shape":
        return shape(value, what)
    if base in lib.enums:
        return number(base, value, what)
    if base in lib.struct_names():
        if not isinstance(value, Mapping):
            raise InvalidArgumentError(f"{what}: expected a dict of {', '.join(settings_of(base))}, got {value!r}")
        return make(base, value, what)
    return _integer(lib.type_of(base), value, what)


def _integer(ctype: Any, value: Any, what: str) -> int:
    expect(not isinstance(value, (bool, np.bool_)) and hasattr(value, "__index__"), f"{what}: expected an integer, got "
           f"{value!r}")
    number = int(value)
    if ctype(number).value != number:
        least = "from 0 on, " if ctype(-1).value != -1 else ""
        bits = 8 * ctypes.sizeof(ctype)
        raise InvalidArgumentError(f"{what}: expected an integer {least}of {bits} bits, got {number}")
    return number


def text(value: Any, what: str) -> bytes:
    """A str, bytes or path as bytes without a zero byte."""
    expect(isinstance(value, (str, bytes, os.PathLike)), f"{what}: expected a text, got {value!r}")
    encoded = os.fsencode(value)
    expect(b"\0" not in encoded, f"{what}: expected a text without zero bytes, got {value!r}")
    return encoded


def texts(function: Any, *owner: Any) -> List[str]:
    """The texts that a function of the library returns for 0, 1, … until NULL."""
    found = (function(*owner, index) for index in itertools.count())
    return [text.decode() for text in itertools.takewhile(lambda text: text is not None, found)]


def shape(value: Any, what: str) -> Any:
    """bel_shape of a sequence of sizes; None counts as -1, an open dimension."""
    if isinstance(value, (int, np.integer)):
        value = [value]
    dims = [-1 if dim is None else _integer(ctypes.c_int64, dim, what) for dim in value]
    expect(len(dims) <= lib.BEL_MAX_RANK, f"{what}: expected at most {lib.BEL_MAX_RANK} dimensions, got {len(dims)}")
    result = lib.bel_shape(rank=len(dims))
    result.dims[:len(dims)] = dims
    return result
