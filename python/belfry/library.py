"""The C library: its functions, structs and constants, by their names in the headers.

interface.txt is the binary interface as the release's test keeps it (tests/abi). A name is translated to ctypes when it
is first used, so importing costs little, and no second list of prototypes can differ from the headers.

    lib.bel_version()                    a function; one that returns bel_status * raises its error instead
    lib.bel_tensor                       a struct, as a class of ctypes
    lib.BEL_DTYPE_F32                    an enumerator, as an int

Calls release the GIL. Pointers to opaque objects are ints (c_void_p).
"""

import ctypes
import os
import re
from typing import Any, Container, Dict, List, Tuple

from . import errors

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_PLAIN: Dict[str, Any] = {
    "void": None, "bool": ctypes.c_bool, "char": ctypes.c_char, "double": ctypes.c_double, "float": ctypes.c_float,
    "int": ctypes.c_int, "unsigned": ctypes.c_uint, "long long": ctypes.c_longlong, "size_t": ctypes.c_size_t,
    "int32_t": ctypes.c_int32, "uint32_t": ctypes.c_uint32, "int64_t": ctypes.c_int64, "uint64_t": ctypes.c_uint64,
    "uint8_t": ctypes.c_uint8, "uint16_t": ctypes.c_uint16,
}
_DECLARED = re.compile(r"(?P<type>.*?[\s*])(?P<name>\w+)\s*(?P<size>\[[^\]]*\])?$")


def _find_library() -> str:
    """The path of libbelfry.so: $BELFRY_LIBRARY, the one beside this file, or the system's."""
    given = os.environ.get("BELFRY_LIBRARY")
    beside = os.path.join(_FOLDER, "libbelfry.so")
    if given:
        return given
    return beside if os.path.exists(beside) else "libbelfry.so." + _interface_version()


def _interface_version() -> str:
    """The version of interface.txt, "0.3": a library of another one is not loaded."""
    from . import version
    return ".".join(version.VERSION.split(".")[:2])


def _split(arguments: str) -> List[str]:
    """Splits parameters at the commas outside of parentheses."""
    parts, depth, part = [], 0, ""
    for char in arguments:
        depth += (char == "(") - (char == ")")
        if char == "," and depth == 0:
            parts.append(part.strip())
            part = ""
        else:
            part += char
    return parts + [part.strip()] if part.strip() not in ("", "void") else parts


class Library:
    """Names of the C interface as attributes; see the head of this file."""

    def __init__(self) -> None:
        self._functions: Dict[str, str] = {}
        self._structs: Dict[str, List[Tuple[str, str]]] = {}
        self._callbacks: Dict[str, str] = {}
        self.enums: Dict[str, List[str]] = {}  # the enumerators of each enumeration
        self.headers: Dict[str, List[str]] = {}  # the functions of each header
        table = os.path.join(_FOLDER, "interface.txt")
        try:
            with open(table, encoding="utf-8") as file:
                self._read(file.read().splitlines())
        except FileNotFoundError:
            raise ImportError(f"belfry: there is no {table}, which is a link in the sources; hint: install the package "
                              "(docs/python.md) instead of copying its folder") from None
        path = _find_library()
        try:
            self._library = ctypes.CDLL(path)
        except OSError as error:
            raise ImportError(f"belfry: cannot load {path}: {error}; hint: install libbelfry, or set BELFRY_LIBRARY to "
                              "the path of libbelfry.so") from None
        self._check_version(path)

    def _read(self, lines: List[str]) -> None:
        fields: List[Tuple[str, str]] = []
        functions: List[str] = []
        for line in lines:
            if line.startswith("    "):
                fields.append((line.split()[0], line.split(": ", 1)[1]))
            elif line.startswith("# "):
                functions = self.headers[line[2:]] = []
            elif line.startswith("enum "):
                name, values = line[len("enum "):].split(": ")
                self.enums[name] = values.split()
            elif line.startswith("struct "):
                fields = self._structs[line[len("struct "):].split(":")[0]] = []
            elif line.startswith("typedef "):
                found = re.search(r"(\w+)\(", line)
                assert found, line
                self._callbacks[found[1]] = line[len("typedef "):]
            elif "(" in line:
                found = re.search(r"(\w+)\(", line)
                assert found, line
                self._functions[found[1]] = line
                functions.append(found[1])
            elif " = " in line:
                name, value = line.split(" = ")
                setattr(self, name, int(value))

    def _check_version(self, path: str) -> None:
        found = self.bel_version().decode()
        if ".".join(found.split(".")[:2]) != _interface_version():
            raise ImportError(f"belfry: {path} has version {found}; expected {_interface_version()}")

    def __getattr__(self, name: str) -> Any:
        """Translates a name on its first use."""
        if name in self._functions:
            value = self._function(name)
        elif name in self._structs:
            value = self._struct(name)
        elif name in self._callbacks:
            result, parameters = self._prototype(self._callbacks[name])
            value = ctypes.CFUNCTYPE(result, *parameters)
        else:
            raise AttributeError(f"belfry/*.h has no {name}")
        setattr(self, name, value)
        return value

    def make(self, function: str, *arguments: Any) -> Any:
        """The object that a function makes and gives by its last parameter."""
        handle = ctypes.c_void_p()
        getattr(self, function)(*arguments, ctypes.byref(handle))
        return handle

    def type_of(self, words: str) -> Any:
        """The ctypes type of a C type without a name, such as "const char *"."""
        stars = words.count("*")
        base = " ".join(w for w in words.replace("*", " ").split() if w not in ("const", "struct", "enum"))
        if base == "char" and stars > 0:
            inner: Any = ctypes.c_char_p
        elif base in self._callbacks:
            inner = getattr(self, base)
        elif base in _PLAIN:
            inner = _PLAIN[base] if stars == 0 else ctypes.c_void_p if base == "void" else ctypes.POINTER(_PLAIN[base])
        elif base in self._structs:
            inner = getattr(self, base) if stars == 0 else ctypes.POINTER(getattr(self, base))
        else:
            inner = ctypes.c_int if stars == 0 else ctypes.c_void_p  # an enumeration, or opaque
        for _ in range(stars - 1):
            inner = ctypes.POINTER(inner)
        return inner

    def _declared(self, words: str) -> Tuple[str, Any]:
        """Name and type of a declaration such as "int64_t dims[BEL_MAX_RANK]"."""
        if "(" in words:  # a function that is declared in place
            found = re.match(r"(.*)\(\*\s*(\w+)\)(\(.*\))$", words)
            assert found, words
            result, parameters = self._prototype(found[1] + found[2] + found[3])
            return found[2], ctypes.CFUNCTYPE(result, *parameters)
        declared = _DECLARED.match(words)
        assert declared, words
        kind, size = self.type_of(declared["type"]), declared["size"]
        if size is None:
            return declared["name"], kind
        return declared["name"], kind * self._count(size[1:-1])

    def _count(self, text: str) -> int:
        """The value of "8", "BEL_MAX_RANK" or "BEL_SCHEDULE_MAX_PIECES - 1"."""
        total, sign = 0, 1
        for word in text.split():
            if word in ("+", "-"):
                sign = 1 if word == "+" else -1
            else:
                total += sign * (int(word) if word.isdigit() else getattr(self, word))
        return total

    def fields(self, struct: str) -> Dict[str, str]:
        """The declaration of each field of a struct: {"path_count": "int path_count"}."""
        declared = {}
        for name, words in self._structs[struct]:
            if "(" not in words:  # several fields may share one declaration
                first, *others = words.split(",")
                base = re.sub(r"[\s*]*\w+(\[[^\]]*\])?$", "", first)
                words = next(f"{base} {part.strip()}" for part in [first[len(base):], *others]
                             if re.search(rf"\b{name}\b", part))
            declared[name] = words
        return declared

    def struct_names(self) -> Container[str]:
        """The names of all structs whose fields a header has."""
        return self._structs.keys()

    def parameters(self, name: str) -> List[str]:
        """The declarations of the parameters of a function or of a type of functions, such as bel_model_fn."""
        line = self._functions.get(name) or self._callbacks[name]
        return _split(line[line.index("(") + 1:line.rindex(")")])

    def _prototype(self, line: str) -> Tuple[Any, List[Any]]:
        head, arguments = line.split("(", 1)
        result = self.type_of(re.sub(r"\w+$", "", head))
        parameters = []
        for argument in _split(arguments[:arguments.rindex(")")]):
            if argument == "...":
                break
            kind = self._declared(argument)[1]
            array = isinstance(kind, type) and issubclass(kind, ctypes.Array)
            parameters.append(ctypes.POINTER(kind._type_) if array else kind)
        return result, parameters

    def _struct(self, name: str) -> Any:
        kind: Any = type(name, (ctypes.Structure,), {})
        setattr(self, name, kind)  # a field may point to it
        kind._fields_ = [self._declared(words) for words in self.fields(name).values()]
        return kind

    def _function(self, name: str) -> Any:
        line = self._functions[name]
        function = getattr(self._library, name)
        function.restype, function.argtypes = self._prototype(line)
        if re.match(r"bel_status \*", line) and not name.startswith("bel_status_"):
            function.errcheck = self._raise
        return function

    def _raise(self, status: Any, _function: Any, _arguments: Any) -> None:
        """Turns a status into an exception, and frees it."""
        if status is not None:
            raise self.take_error(status)

    def take_error(self, status: int) -> errors.Error:
        """The exception of a status, which is freed."""
        kind = errors.by_code.get(self.bel_status_code(status), errors.UnknownError)
        error = kind(self.bel_status_message(status).decode(errors="replace"),
                     self.bel_status_trace(status).decode(errors="replace"))
        self.bel_status_destroy(status)
        return error


lib = Library()
