"""Tables of a program, and descriptions of their columns (belfry/columns.h).

A Table makes columns of numpy arrays, pandas frames and dicts readable for the C library: numbers in place, texts by
their numbers. Columns is a description: what each column is, and the features that it becomes.
"""

import copy
import ctypes
import json
import re
import warnings
from typing import Any, Collection, Dict, Iterable, List, Mapping, Optional, Sequence, Tuple

import numpy as np

from . import structs
from .calls import Owner, reads
from .errors import InvalidArgumentError, expect
from .library import lib
from .tensors import array_of, pointer_to

_EXACT = 2**53  # integers beyond it are names, as in files: a double does not hold them


class CellError(InvalidArgumentError, TypeError):
    """A cell is of a type that no column has."""


class Table:
    """Columns of one length, each of numbers (float32 or float64, read in place) or of texts.

    The arrays must not change while the table is in use. order: the rows to read, int64, or None for all. booleans:
    columns in which the numbers 0 and 1 are False and True.
    """

    def __init__(self, row_count: int, booleans: Collection[str] = ()) -> None:
        self.row_count, self._booleans = row_count, booleans
        self.order: Any = None
        self.names: List[str] = []
        self._columns: List[Any] = []
        self._kept: List[Any] = []  # arrays and texts that the columns point to

    def add(self, name: str, values: Any) -> None:
        """Adds a column: a pandas series, an array or a list of numbers, booleans, dates or texts. None, NaN, NaT and
        pandas.NA are missing values. InvalidArgumentError: another length or type."""
        expect(len(values) == self.row_count, f"column {name}: expected {self.row_count} rows, got {len(values)}")
        if hasattr(values, "cat"):
            self.add_codes(name, values.cat.codes.to_numpy(), values.cat.categories)
            return
        dtype = getattr(values, "dtype", np.dtype(object))
        if dtype.kind == "M":
            self._add_dates(name, values)
            return
        if dtype.kind in "iuf" and not isinstance(dtype, np.dtype):  # pandas' Int64, Float64 …
            values = values.to_numpy(dtype=np.float64, na_value=np.nan)
        values = without_mask(values)
        try:
            array = values if isinstance(values, np.ndarray) else np.asarray(values)
        except ValueError:  # lists of several lengths
            raise _no_cell(name, next(value for value in values if isinstance(value, (Sequence, np.ndarray)))) from None
        expect(array.ndim == 1, f"column {name}: expected one value a row, got shape {array.shape}")
        if array.dtype.kind in "iuf" and name in self._booleans:
            others = array[(array != 0) & (array != 1) & (array == array)]
            if len(others) > 0:
                raise InvalidArgumentError(f"column {name}: expected booleans, as in the training, got {others[0]}")
            self.add_codes(name, np.where(array == array, array, -1), ("False", "True"))
        elif array.dtype.kind in "iuf" and not _has_names(array):
            self.add_numbers(name, array)
        elif array.dtype.kind == "b":
            self.add_codes(name, array, ("False", "True"))
        elif array.dtype.kind in "iuOU":
            self._add_texts(name, values)
        else:
            raise InvalidArgumentError(f"column {name}: expected numbers, booleans, dates or texts, got {array.dtype}; "
                                       "hint: convert it to numbers")

    def add_numbers(self, name: str, array: Any) -> None:
        """Adds numbers [row_count] with any stride; NaN is a missing value."""
        size = array.dtype.itemsize
        if (array.dtype not in (np.float32, np.float64) or not array.dtype.isnative
                or array.strides[0] % size != 0 or array.strides[0] == 0):
            array, size = array.astype(np.float64), 8
        dtype = lib.BEL_DTYPE_F32 if size == 4 else lib.BEL_DTYPE_F64
        self._append(name, array, numbers=array.__array_interface__["data"][0], dtype=dtype,
                     stride=array.strides[0] // size)

    def _add_texts(self, name: str, values: Any) -> None:
        items = values.tolist() if hasattr(values, "tolist") else values
        try:
            if hasattr(values, "factorize"):
                codes, found = getattr(values, "array", values).factorize()  # of a series: without an index
            else:
                numbers: Dict[Any, int] = {}
                codes = np.array([-1 if is_missing(value) else numbers.setdefault(value, len(numbers))
                                  for value in items], np.int32)
                found = list(numbers)
        except TypeError:  # a cell has no hash
            raise _no_cell(name, next(value for value in items if type(value).__hash__ is None)) from None
        self.add_codes(name, codes, found)

    def _add_dates(self, name: str, values: Any) -> None:
        if hasattr(values, "dt") and values.dt.tz is not None:
            values = values.dt.tz_convert(None)
        found, codes = np.unique(np.asarray(values).astype("datetime64[ms]"), return_inverse=True)
        texts = np.datetime_as_string(found)
        codes = codes.astype(np.int32)
        codes[np.isnat(found)[codes]] = -1
        self.add_codes(name, codes, texts)

    def add_codes(self, name: str, codes: Any, values: Iterable[Any]) -> None:
        """Adds a column whose row i is values[codes[i]]; a code below 0 is a missing value."""
        codes = np.ascontiguousarray(codes, np.int32)
        encoded = [_text(name, value) for value in values]
        texts = (ctypes.c_char_p * max(len(encoded), 1))(*encoded)
        self._append(name, (codes, texts, encoded), codes=pointer_to(codes), texts=texts, text_count=len(encoded))

    def _append(self, name: str, kept: Any, **fields: Any) -> None:
        self.names.append(name)
        self._columns.append(lib.bel_memory_column(name=name.encode(), **fields))
        self._kept.append(kept)

    def struct(self) -> Any:
        """bel_memory_table, which is valid as long as this object and until the next column."""
        columns = (lib.bel_memory_column * max(len(self._columns), 1))(*self._columns)
        order = None if self.order is None else pointer_to(self.order)
        rows = self.row_count if self.order is None else len(self.order)
        return lib.bel_memory_table(size=ctypes.sizeof(lib.bel_memory_table), columns=columns,
                                    column_count=len(self._columns), row_count=rows, order=order)

    def split(self, count: int) -> "Table":
        """Takes its last rows, in their order, away into a new table of the same columns."""
        other = copy.copy(self)
        assert self.order is not None
        self.order, other.order = self.order[:-count], self.order[-count:]
        return other

    def sort_by_cells(self) -> None:
        """Puts the rows into an order that depends only on their cells."""
        order = np.empty(self.row_count if self.order is None else len(self.order), np.int64)
        lib.bel_memory_table_order(ctypes.byref(self.struct()), pointer_to(order))
        self.order = order


def _has_names(array: Any) -> bool:
    return array.dtype.itemsize == 8 and array.dtype.kind in "iu" and array.size > 0 and (
        int(array.max()) > _EXACT or int(array.min()) < -_EXACT)


def _no_cell(name: str, value: Any) -> CellError:
    return CellError(f"column {name}: argument must be a string or a number, got {type(value).__name__}")


def is_missing(value: Any) -> bool:
    """Whether a cell is None, NaN, NaT or pandas.NA."""
    return value is None or type(value).__name__ in ("NAType", "NaTType") or (
        isinstance(value, (float, np.generic)) and value != value)


def without_mask(values: Any) -> Any:
    """The same; of a numpy array with a mask the masked elements become missing values."""
    masked = isinstance(values, np.ma.MaskedArray)
    if not masked:
        return values
    if values.dtype.kind == "M":
        return values.filled(np.datetime64("NaT"))
    if values.dtype.kind in "iuf" and not _has_names(values.filled(0)):
        return values.astype(np.float64).filled(np.nan)
    return values.astype(object).filled(None)


def _text(name: str, value: Any) -> bytes:
    if isinstance(value, bytes):
        raise _no_cell(name, value)
    text = str(value)
    expect("\0" not in text, f"column {name}: expected texts without a zero byte, got {text!r}")
    return text.encode()


def is_frame(value: Any) -> bool:
    """Whether a value has columns by name: a pandas frame, or a dict."""
    if hasattr(value, "toarray"):  # some sparse matrices are dicts
        return False
    return isinstance(value, Mapping) or (hasattr(value, "columns") and hasattr(value, "iloc"))


def names_of(value: Any) -> List[str]:
    """Names of the columns of a frame or dict, as texts."""
    return [str(name) for name in (value if isinstance(value, Mapping) else value.columns)]


def table_of(value: Any, names: Optional[Sequence[str]] = None, booleans: Collection[str] = ()) -> Table:
    """A table of a pandas frame or a dict of columns; of an array [rows, columns] with these names.

    names: for a frame only these columns, in any order. booleans: as of Table. InvalidArgumentError: it is no such
    thing.
    """
    if not is_frame(value):
        return _table_of_matrix(value, names, booleans)
    columns = [value[name] for name in value] if isinstance(value, Mapping) else [
        value.iloc[:, place] for place in range(value.shape[1])]
    for name, column in zip(names_of(value), columns):
        if isinstance(column, (str, bytes)) or not hasattr(column, "__len__"):
            raise InvalidArgumentError(f"column {name}: expected a list or an array with a cell for each row, got "
                                       f"{column!r}; hint: [{column!r}] for one row")
    row_count = len(columns[0]) if columns else len(value)
    check_shape(row_count, len(columns))
    table = Table(row_count, booleans)
    for name, column in zip(names_of(value), columns):
        if names is None or name in names:
            table.add(name, column)
    return table


def check_shape(rows: int, columns: int) -> None:
    """InvalidArgumentError: there is nothing."""
    for count, what in ((rows, "sample"), (columns, "feature")):
        expect(count != 0, f"Found array with 0 {what}(s) (shape=({rows}, {columns})) while a minimum of 1 is "
               "required.")


def matrix_of(value: Any) -> Any:
    """An array [rows, columns] of a value: numbers, or objects of which some are texts."""
    if hasattr(value, "toarray"):
        raise CellError("X: a sparse matrix was passed, but dense data is required; hint: X.toarray()")
    value = without_mask(value)
    array = array_of(value, "X") if hasattr(value, "__dlpack__") else np.asarray(value)
    expect(array.dtype.kind != "c", "X: Complex data not supported: expected real numbers")
    expect(array.ndim == 2, f"X: Expected 2D array, got {array.ndim}D array instead. Reshape your data: [rows, "
           "columns], or X.reshape(1, -1) for a single row.")
    check_shape(*array.shape)
    if array.dtype.kind == "O":
        try:
            array = np.where(np.frompyfunc(is_missing, 1, 1)(array).astype(bool), np.nan, array).astype(np.float64)
        except (TypeError, ValueError):  # some are texts
            pass
    expect(array.dtype.kind in "biufOU", f"X: expected numbers or texts, got {array.dtype}")
    return array


def _table_of_matrix(value: Any, names: Optional[Sequence[str]], booleans: Collection[str]) -> Table:
    array = matrix_of(value)
    rows, columns = array.shape
    names = names or [f"x{place}" for place in range(columns)]
    expect(len(names) == columns, f"X has {columns} features, but {len(names)} features are expected as input")
    if array.dtype.kind in "biu" or array.dtype == np.float16:
        array = array.astype(np.float64)
    table = Table(rows, booleans)
    for place, name in enumerate(names):
        (table.add if array.dtype.kind in "OU" or name in booleans else table.add_numbers)(name, array[:, place])
    return table


class Columns(Owner):
    """A description of a table's columns: what each is, and what becomes of it (docs/columns.md)."""

    label_kind: str = reads("bel_columns_label_kind", "\"none\", \"classes\", \"number\" or \"several\".",
                            "bel_label_kind")

    _free = "bel_columns_destroy"

    def __init__(self, handle: Any) -> None:
        self._handle = handle

    @classmethod
    def parse(cls, text: str, source: str) -> "Columns":
        """The description of a checkpoint or an export."""
        return cls(lib.make("bel_columns_parse", text.encode(), source.encode()))

    @classmethod
    def infer(cls, table: Table, **options: Any) -> "Columns":
        """Looks at every cell. options: fields of bel_columns_options, except the tokens of a text."""
        for name in ("text", "text_most"):
            expect(name not in options, f"columns.{name}: Python makes no tokens of texts; hint: belfry train")
        struct = structs.make("bel_columns_options", options, "columns")
        return cls(lib.make("bel_columns_infer_memory", ctypes.byref(table.struct()), ctypes.byref(struct)))

    @property
    def classes(self) -> Tuple[str, ...]:
        """Names of the classes, in the order of the model's probabilities; none for another label."""
        count = lib.bel_columns_class_count(self.handle) if self.label_kind == "classes" else 0
        return tuple(lib.bel_columns_class(self.handle, number).decode() for number in range(count))

    @property
    def labels(self) -> Tuple[str, ...]:
        """Names of the labels."""
        count = lib.bel_columns_label_count(self.handle)
        return tuple(lib.bel_columns_label_at(self.handle, number).decode() for number in range(count))

    @property
    def feature_names(self) -> Tuple[str, ...]:
        """Names of the columns that are read to predict."""
        return tuple(structs.texts(lib.bel_columns_feature_name, self.handle))

    @property
    def hashed(self) -> List[str]:
        """Names of the columns whose cells become features by Belfry's hash."""
        return [name for name, kind, _ in self._described() if kind in ("hash", "list", "text", "cross")]

    @property
    def tokenized(self) -> List[str]:
        """Names of the columns of texts that become tokens, which Python does not make."""
        return [name for name, kind, _ in self._described() if kind == "tokens"]

    @property
    def booleans(self) -> List[str]:
        """Names of the columns of booleans."""
        return [name for name, _, rest in self._described()
                if '["False", "True"]' in rest or '["True", "False"]' in rest]

    def _described(self) -> Iterable[Tuple[str, str, str]]:
        """Name, kind and the other keys of each column, of their lines in the description."""
        text = lib.bel_columns_text(self.handle).decode()
        for name, kind, rest in re.findall(r'^ *- \{name: ("(?:[^"\\]|\\.)*"), kind: (\w+)(.*)$', text, re.M):
            yield json.loads(name), kind, rest

    def features(self, table: Table) -> Dict[str, Any]:
        """The features of all rows: "x" float32 [n, x], "ids" int64 [n, ids], "id_lists" int64 [n, lists, most]; those
        with elements. InvalidArgumentError: a column is missing, or a cell is wrong."""
        widths, struct = lib.bel_columns_feature_widths(self.handle), table.struct()
        rows = struct.row_count
        arrays: Dict[str, Any] = {"x": np.empty((rows, widths.x), np.float32),
                                  "ids": np.empty((rows, widths.ids), np.int64),
                                  "id_lists": np.empty((rows, widths.id_lists, widths.most), np.int64)}
        lib.bel_columns_features(self.handle, ctypes.byref(struct), *map(pointer_to, arrays.values()))
        return {name: array for name, array in arrays.items() if array.shape[-1] > 0}

    def input(self, table: Table, name: str, width: int) -> Any:
        """What an exported model takes for a column, float64 [n, width]."""
        struct = table.struct()
        out = np.empty((struct.row_count, width), np.float64)
        lib.bel_columns_input(self.handle, ctypes.byref(struct), name.encode(), width, pointer_to(out))
        return out


class Cells:
    """Tables for a model by its columns: keeps the columns that it was trained with, and says once which others are
    left out."""

    def __init__(self, names: Sequence[str], labels: Sequence[str] = (), booleans: Collection[str] = ()) -> None:
        self._names, self._labels, self._booleans = frozenset(names), frozenset(labels), booleans
        self._said = False

    def table(self, value: Any) -> Table:
        """InvalidArgumentError: a column is missing; all of them are named."""
        if not is_frame(value):
            raise InvalidArgumentError(f"expected a frame or a dict of columns by name, got {type(value).__name__}; "
                                       f"hint: the columns are {', '.join(sorted(self._names))}")
        given = names_of(value)
        missing = sorted(self._names - set(given))
        others = [name for name in given if name not in self._names | self._labels]
        if missing:
            raise InvalidArgumentError(f"expected the columns of the training, got none called {', '.join(missing)}"
                                       + (f"; others here: {', '.join(others)}" if others else ""))
        if others and not self._said:
            self._said = True
            warnings.warn(f"left out, as the model was not trained with them: {', '.join(others)}", stacklevel=4)
        return table_of(value, sorted(self._names), self._booleans)
