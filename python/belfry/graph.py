"""Values of a graph, which model functions and step functions build (belfry/graph.h).

A value has a type and a shape, and no numbers: building computes nothing. Operators are operations of belfry.ops.
Numbers and arrays beside a value become constants of its type. A mistake raises at once, and the graph stays failed.
"""

import ctypes
import threading
from typing import Any, Iterable, List, Optional, Tuple

import numpy as np

from . import structs
from .errors import FailedPreconditionError, InvalidArgumentError, expect
from .library import lib
from .tensors import numpy_dtype, shape_of, tensor_of


class Building:
    """The function that is building a graph on this thread: its graph, context and spec, as handles of C."""

    def __init__(self, graph: int, context: int, spec: int, mode: str) -> None:
        self.graph, self.context, self.spec, self.mode = graph, context, spec, mode
        self.keep: List[Any] = []  # texts that the library does not copy
        self.outer: Optional[Building] = None

    def text(self, name: Any) -> bytes:
        """A name that stays until the call of the library ends."""
        self.keep.append(structs.text(name, "name"))
        return bytes(self.keep[-1])

    def check(self) -> "Building":
        """Raises the error of the graph, and FailedPreconditionError after the function has returned."""
        if building() is not self:
            raise FailedPreconditionError("the context belongs to another call of a model function")
        lib.bel_graph_check(self.graph)
        return self

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
        raise InvalidArgumentError(f"{what}: expected a value of the graph, got {type(value).__name__}; hint: "
                                   "belfry.ops.constant makes one of an array")
    return constant(value, like.dtype, what)._handle


def constant(value: Any, dtype: Any = None, what: str = "constant") -> "Value":
    """A tensor as a constant; the elements are copied.

    value: a number, a list or an array. dtype: its type in the graph; None: an array's own, float32 for other floats,
    int64 for integers. InvalidArgumentError: a fraction or a number out of range for an integer type.
    """
    if value is None:
        mode = building().mode
        hint = "" if mode != "predict" else ("; hint: there are no labels in mode predict: return EstimatorSpec("
                                             "predictions=…) before, if ctx.mode == \"predict\"")
        raise InvalidArgumentError(f"{what}: expected a value, got None{hint}")
    array = np.asarray(value)
    if dtype is None:
        dtype = np.float32 if array.dtype == np.float64 and not isinstance(value, np.ndarray) else array.dtype
    if array.dtype != dtype:
        expect(array.dtype.kind in "biuf", f"{what}: expected numbers, got {array.dtype}")
        converted = array.astype(dtype)
        if np.dtype(dtype).kind in "biu" and not (converted == array).all():
            raise InvalidArgumentError(f"{what}: expected numbers of {np.dtype(dtype)}, got {value!r}")
        array = converted
    array = np.ascontiguousarray(array).reshape(array.shape)
    return value_of(call("bel_constant", ctypes.byref(tensor_of(array, what))))


def _operators(function: str) -> Tuple[Any, Any]:
    """The methods of an operator of two values, and of the same with swapped operands."""
    def operate(a: "Value", other: Any, swapped: bool = False) -> "Value":
        expect(function != "div" or a.dtype.kind == "f", f"/ is for floats, and this is {a.dtype}; hint: "
               "belfry.ops.cast, or belfry.ops.div, which truncates")
        handles = handle_of(a, function), handle_of(other, function, a)
        return value_of(call("bel_" + function, *(handles[::-1] if swapped else handles)))
    return operate, lambda a, other: operate(a, other, True)


def _unary(function: str) -> Any:
    """The method of an operator of one value."""
    return lambda a: value_of(call("bel_" + function, handle_of(a, function)))


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

    __add__, __radd__ = _operators("add")
    __sub__, __rsub__ = _operators("sub")
    __mul__, __rmul__ = _operators("mul")
    __truediv__, __rtruediv__ = _operators("div")
    __pow__, __rpow__ = _operators("pow")
    __matmul__, __rmatmul__ = _operators("matmul")
    __and__, __rand__ = _operators("and")
    __or__, __ror__ = _operators("or")
    __xor__, __rxor__ = _operators("xor")
    __eq__ = _operators("equal")[0]
    __lt__ = _operators("less")[0]
    __le__ = _operators("less_or_equal")[0]
    __gt__ = _operators("greater")[0]
    __ge__ = _operators("greater_or_equal")[0]

    def __ne__(self, other: Any) -> "Value":  # type: ignore[override]
        other_than: Value = ~(self == other)
        return other_than

    __invert__, __neg__, __abs__ = _unary("not"), _unary("neg"), _unary("abs")
    __hash__ = object.__hash__

    def __bool__(self) -> bool:
        raise InvalidArgumentError("a value of a graph is neither true nor false: its numbers exist only while the "
                                   "graph runs; hint: belfry.ops.where chooses by a condition")

    def __iter__(self) -> Any:
        raise InvalidArgumentError("a value of a graph cannot be iterated; hint: belfry.ops.split makes parts of it")

    def __getitem__(self, index: Any) -> "Value":
        """Slices as numpy does: integers, slices, None for a new axis, and an ellipsis. An open dimension allows only
        the full range. For indices that are values use belfry.ops.gather."""
        items = list(index) if isinstance(index, tuple) else [index]
        for item in items:
            if not isinstance(item, (int, np.integer, slice, type(None), type(Ellipsis))):
                raise InvalidArgumentError(f"expected an integer or a slice as index, got {type(item).__name__}; hint: "
                                           "belfry.ops.gather")
        rank, used = len(self.shape), sum(item is not None and item is not Ellipsis for item in items)
        expect(used <= rank and items.count(Ellipsis) <= 1, f"expected at most {rank} indices and one ellipsis, got "
               f"{used}")
        place = items.index(Ellipsis) if Ellipsis in items else len(items)
        items[place:place + 1] = [slice(None)] * (rank - used)
        ranges = {}  # start, end and step by axis
        dropped = []
        for axis, item in enumerate(item for item in items if item is not None):
            if not isinstance(item, slice):
                first = self._place(int(item), axis)
                ranges[axis] = first, first + 1, 1
                dropped.append(axis)
            elif item != slice(None):
                ranges[axis] = _range(item)
        value = self
        if ranges:
            columns = [_numbers(column) for column in zip(*ranges.values())]
            value = value_of(call("bel_slice", handle_of(self, "slice"), _numbers(ranges), *columns, len(ranges)))
        if dropped:
            value = value_of(call("bel_squeeze", value._handle, _numbers(dropped), len(dropped)))
        kept = [item for item in items if item is None or isinstance(item, slice)]
        new = [axis for axis, item in enumerate(kept) if item is None]
        if new:
            value = value_of(call("bel_unsqueeze", value._handle, _numbers(new), len(new)))
        return value

    def _place(self, index: int, axis: int) -> int:
        size = self.shape[axis]
        if size is None or not -size <= index < size:
            raise InvalidArgumentError(f"index {index} is out of range for axis {axis} of {self!r}")
        return index % size


def _range(item: slice) -> Tuple[int, int, int]:
    """Start, end and step of bel_slice."""
    step = 1 if item.step is None else int(item.step)
    first = (0 if step > 0 else 2**63 - 1) if item.start is None else int(item.start)
    last = (2**63 - 1 if step > 0 else -2**63) if item.stop is None else int(item.stop)
    return first, last, step


def _numbers(values: Iterable[int]) -> Any:
    listed = list(values)
    return (ctypes.c_int64 * len(listed))(*listed)
