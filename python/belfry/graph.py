"""Values of a graph, which model functions and step functions build (belfry/graph.h).

    hidden = ops.relu(x @ weights + bias)
    first = hidden[:, :3] * 2.0

A value has a type and a shape, and no numbers: building computes nothing. Operators are operations of belfry.ops.
Numbers and arrays beside a value become constants of its type. A mistake raises at once, with the operation's name and
the shapes, and the graph stays failed. Values belong to the function that makes them, and are of no use after it.
"""

import ctypes
import threading
from typing import Any, List, Optional, Tuple

import numpy as np

from .errors import FailedPreconditionError, InvalidArgumentError
from .library import lib
from .tensors import numpy_dtype, shape_of, tensor_of


class Building:
    """The function that is building a graph on this thread: its graph, context and spec, as handles of C."""

    def __init__(self, graph: int, context: int, spec: int, mode: str) -> None:
        self.graph, self.context, self.spec, self.mode = graph, context, spec, mode
        self.keep: List[Any] = []  # texts that the library does not copy
        self.outer: Optional[Building] = None

    def __enter__(self) -> "Building":
        self.outer, _thread.building = getattr(_thread, "building", None), self
        return self

    def __exit__(self, *_: Any) -> None:
        _thread.building = self.outer


_thread = threading.local()


def building() -> Building:
    """The function that runs on this thread. FailedPreconditionError: none does."""
    found: Optional[Building] = getattr(_thread, "building", None)
    if found is None:
        raise FailedPreconditionError("operations build a graph: call them in a model function or a step function")
    return found


def call(function: str, *arguments: Any) -> Any:
    """Calls a function of C with the graph before its arguments, and raises the error of the graph."""
    graph = building().graph
    result = getattr(lib, function)(graph, *arguments)
    lib.bel_graph_check(graph)
    return result


def value_of(handle: Optional[int]) -> "Value":
    """A Value of a handle that a call has returned."""
    if not handle:
        lib.bel_graph_check(building().graph)
        raise InvalidArgumentError("the library returned no value")
    return Value(handle, building())


def handle_of(value: Any, what: str, like: Optional["Value"] = None) -> int:
    """The handle of a value of the graph that is being built. like: another value, of whose type numbers and arrays
    become constants; None: only a value is accepted."""
    if isinstance(value, Value):
        if value._building is not building():
            raise FailedPreconditionError(f"{what}: the value belongs to another call of a model function")
        return value._handle
    if like is None:
        raise InvalidArgumentError(f"{what}: expected a value of the graph, got {type(value).__name__}; "
                                   "hint: belfry.ops.constant makes one of an array")
    return constant(value, like.dtype, what)._handle


def constant(value: Any, dtype: Any = None, what: str = "constant") -> "Value":
    """A tensor as a constant; the elements are copied.

    value: a number, a list or an array. dtype: its type in the graph; None: an array's own, float32 for other floats,
    int64 for integers. InvalidArgumentError: a fraction or a number out of range for an integer type.
    """
    array = np.asarray(value)
    if dtype is None:
        dtype = np.float32 if array.dtype == np.float64 and not isinstance(value, np.ndarray) else array.dtype
    if array.dtype != dtype:
        if array.dtype.kind not in "biuf":
            raise InvalidArgumentError(f"{what}: expected numbers, got {array.dtype}")
        converted = array.astype(dtype)
        if np.dtype(dtype).kind in "biu" and not (converted == array).all():
            raise InvalidArgumentError(f"{what}: expected numbers of {np.dtype(dtype)}, got {value!r}")
        array = converted
    array = np.ascontiguousarray(array).reshape(array.shape)
    return value_of(call("bel_constant", ctypes.byref(tensor_of(array, what))))


class Value:
    """A result of an operation. dtype: its type, of numpy. shape: a tuple with None for an open dimension, such as
    the batch."""

    __slots__ = ("_handle", "_building")
    __array_ufunc__ = None  # numpy's operators leave the work to those below

    def __init__(self, handle: int, builder: Building) -> None:
        self._handle = handle
        self._building = builder

    @property
    def shape(self) -> Tuple[Optional[int], ...]:
        return tuple(shape_of(lib.bel_value_shape(handle_of(self, "shape"))))

    @property
    def dtype(self) -> Any:
        return numpy_dtype(lib.bel_value_dtype(handle_of(self, "dtype")))

    def __repr__(self) -> str:
        if self._building is not getattr(_thread, "building", None):
            return "<belfry.Value of an earlier graph>"
        return f"<belfry.Value {self.dtype} [{', '.join('?' if d is None else str(d) for d in self.shape)}]>"

    def _operate(self, function: str, other: Any, swapped: bool = False) -> "Value":
        a, b = handle_of(self, function), handle_of(other, function, self)
        return value_of(call("bel_" + function, *((b, a) if swapped else (a, b))))

    def __add__(self, other: Any) -> "Value":
        return self._operate("add", other)

    def __radd__(self, other: Any) -> "Value":
        return self._operate("add", other, True)

    def __sub__(self, other: Any) -> "Value":
        return self._operate("sub", other)

    def __rsub__(self, other: Any) -> "Value":
        return self._operate("sub", other, True)

    def __mul__(self, other: Any) -> "Value":
        return self._operate("mul", other)

    def __rmul__(self, other: Any) -> "Value":
        return self._operate("mul", other, True)

    def __truediv__(self, other: Any) -> "Value":
        return self._fraction()._operate("div", other)

    def __rtruediv__(self, other: Any) -> "Value":
        return self._fraction()._operate("div", other, True)

    def __pow__(self, other: Any) -> "Value":
        return self._operate("pow", other)

    def __rpow__(self, other: Any) -> "Value":
        return self._operate("pow", other, True)

    def __matmul__(self, other: Any) -> "Value":
        return self._operate("matmul", other)

    def __rmatmul__(self, other: Any) -> "Value":
        return self._operate("matmul", other, True)

    def __eq__(self, other: Any) -> "Value":  # type: ignore[override]
        return self._operate("equal", other)

    def __ne__(self, other: Any) -> "Value":  # type: ignore[override]
        return ~self._operate("equal", other)

    def __lt__(self, other: Any) -> "Value":
        return self._operate("less", other)

    def __le__(self, other: Any) -> "Value":
        return self._operate("less_or_equal", other)

    def __gt__(self, other: Any) -> "Value":
        return self._operate("greater", other)

    def __ge__(self, other: Any) -> "Value":
        return self._operate("greater_or_equal", other)

    def __and__(self, other: Any) -> "Value":
        return self._operate("and", other)

    def __or__(self, other: Any) -> "Value":
        return self._operate("or", other)

    def __xor__(self, other: Any) -> "Value":
        return self._operate("xor", other)

    def __invert__(self) -> "Value":
        return value_of(call("bel_not", handle_of(self, "not")))

    def __neg__(self) -> "Value":
        return value_of(call("bel_neg", handle_of(self, "neg")))

    def __abs__(self) -> "Value":
        return value_of(call("bel_abs", handle_of(self, "abs")))

    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise InvalidArgumentError("a value of a graph is neither true nor false: its numbers exist only while the "
                                   "graph runs; hint: belfry.ops.where chooses by a condition")

    def __iter__(self) -> Any:
        raise InvalidArgumentError("a value of a graph cannot be iterated; hint: belfry.ops.split makes parts of it")

    def _fraction(self) -> "Value":
        if self.dtype.kind != "f":
            raise InvalidArgumentError(f"/ is for floats, and this is {self.dtype}; hint: belfry.ops.cast, or "
                                       "belfry.ops.div, which truncates")
        return self

    def __getitem__(self, index: Any) -> "Value":
        """Slices as numpy does: integers, slices, None for a new axis, and an ellipsis. An open dimension allows only
        the full range. For indices that are values use belfry.ops.gather."""
        items = list(index) if isinstance(index, tuple) else [index]
        rank, used = len(self.shape), sum(item is not None and item is not Ellipsis for item in items)
        if used > rank or sum(item is Ellipsis for item in items) > 1:
            raise InvalidArgumentError(f"expected at most {rank} indices, got {used}")
        if Ellipsis not in [item for item in items if not isinstance(item, Value)]:
            items.append(Ellipsis)
        place = next(i for i, item in enumerate(items) if item is Ellipsis)
        items[place:place + 1] = [slice(None)] * (rank - used)
        return self._slice(items)

    def _slice(self, items: List[Any]) -> "Value":
        """Slices by an item for each dimension, with None for new axes in between."""
        axes: List[int] = []
        ranges: List[Tuple[int, int, int]] = []
        dropped: List[int] = []
        new: List[int] = []
        axis = kept = 0
        for item in items:
            if item is None:
                new.append(kept)
                kept += 1
                continue
            if isinstance(item, slice):
                kept += 1
                if item != slice(None):
                    axes.append(axis)
                    ranges.append(self._range(item))
            elif hasattr(item, "__index__"):
                place = self._place(int(item), axis)
                axes.append(axis)
                ranges.append((place, place + 1, 1))
                dropped.append(axis)
            else:
                raise InvalidArgumentError(f"expected an integer or a slice as index, got {type(item).__name__}; hint: "
                                           "belfry.ops.gather")
            axis += 1
        value = self
        if axes:
            columns = [_numbers(list(column)) for column in zip(*ranges)]
            value = value_of(call("bel_slice", handle_of(self, "slice"), _numbers(axes), *columns, len(axes)))
        if dropped:
            value = value_of(call("bel_squeeze", value._handle, _numbers(dropped), len(dropped)))
        if new:
            value = value_of(call("bel_unsqueeze", value._handle, _numbers(new), len(new)))
        return value

    def _place(self, index: int, axis: int) -> int:
        size = self.shape[axis]
        if size is None or not -size <= index < size:
            raise InvalidArgumentError(f"index {index} is out of range for axis {axis} of {self!r}")
        return index % size

    @staticmethod
    def _range(item: slice) -> Tuple[int, int, int]:
        step = 1 if item.step is None else int(item.step)
        first = (0 if step > 0 else 2**63 - 1) if item.start is None else int(item.start)
        last = (2**63 - 1 if step > 0 else -2**63) if item.stop is None else int(item.stop)
        return first, last, step


def _numbers(values: List[int]) -> Any:
    return (ctypes.c_int64 * len(values))(*values)
