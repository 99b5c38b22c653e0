"""Operations of a graph, by their names in belfry/ops.h, graph.h and collective.h, without the prefix bel_.

    values, indices = ops.top_k(x, 3)   bel_top_k(graph, x, 3, -1, true, &indices)

They are made from the declarations of the C interface when they are first used. `help(belfry.ops.attention)` shows
parameters and defaults, and the headers describe what they do. Differences from C:

- A list and its count are one sequence; for an axis a number is enough. Fields of options are keyword arguments.
- Further results (out_…) are returned: such a function returns a tuple.
- An enumeration is the end of a name, "mean" for BEL_COMBINE_MEAN; a type is one of numpy's.
- An initializer is a name, "zeros", or a pair of name and number, ("uniform", 0.1).
- A number or an array beside a value becomes a constant of its type.
- After an optional parameter, required ones are keyword arguments.
- and, or, xor and not of booleans are the operators & | ^ ~. Layers are in belfry.layers.
"""

import ctypes
import functools
import inspect
import math
import re
import sys
from types import FrameType
from typing import Any, Callable, Dict, List, Mapping, NamedTuple, Optional, Sequence, Tuple

from . import structs
from .errors import InvalidArgumentError, expect
from .graph import Value, building, call, constant, handle_of, value_of
from .library import lib

__all__ = ["Value", "constant"]  # and those of __dir__, which are made when they are used
_REQUIRED = inspect.Parameter.empty
# Defaults of parameters, by name or by function and name; ONNX's where ONNX has the operation.
_DEFAULTS: Dict[str, Any] = {
    "axes": None, "keepdims": False, "weights": None, "mask": None, "lengths": None, "causal": False, "group": 1,
    "class_weights": None, "ceil_mode": False, "count_include_pad": False, "zero_infinity": False, "context": None,
    "output_padding": None, "output_shape": None, "exclusive": False, "reverse": False, "training": False,
    "momentum": 0.9, "epsilon": 1e-5, "kind": "trainable", "mode": "constant", "combiner": "sum", "op": "sum",
    "reduction": "weighted_mean", "source": 0, "largest": True,
    "unsqueeze.axes": _REQUIRED, "sequence_mask.lengths": _REQUIRED, "weighted_mean.weights": _REQUIRED,
    "conv.bias": None, "conv_transpose.bias": None, "layer_normalization.bias": None, "gemm.c": None, "gemm.alpha": 1.0,
    "gemm.beta": 1.0, "gemm.transpose_a": False, "gemm.transpose_b": False, "variable.initializer": "glorot_uniform",
    "attention.scale": 0.0, "attention_step.scale": 0.0,
    "leaky_relu.alpha": 0.01, "elu.alpha": 1.0, "hard_sigmoid.alpha": 0.2,
    "hard_sigmoid.beta": 0.5, "clip.low": -math.inf, "clip.high": math.inf, "huber_loss.delta": 1.0,
    "random_uniform.low": 0.0, "random_uniform.high": 1.0, "random_normal.mean": 0.0, "random_normal.deviation": 1.0,
    "top_k.axis": -1, "arg_max.axis": -1, "arg_min.axis": -1, "cum_sum.axis": -1, "concat.axis": -1, "flatten.axis": 1,
    "layer_normalization.axis": -1, "pad.value": 0.0, "pad.before": None, "pad.behind": None,
    "average_pool.kernel": None, "max_pool.kernel": None, "weighted_softmax_cross_entropy.ignored": -1,
}
# Lists without a count, of which C reads this many numbers for an input of a rank.
_LENGTHS: Dict[str, Callable[[int], int]] = {
    "permutation": lambda rank: rank, "before": lambda rank: rank, "behind": lambda rank: rank,
    "kernel": lambda rank: rank - 2, "strides": lambda rank: rank - 2, "dilations": lambda rank: rank - 2,
    "pads": lambda rank: 2 * (rank - 2), "output_padding": lambda rank: rank - 2, "output_shape": lambda rank: rank - 2,
}
_BY_HAND = {"slice", "split", "gradients", "map_reduce", "map_gather", "all_reduce_n", "broadcast_n", "constant",
            "scalar", "assign_state", "graph_create", "graph_destroy", "graph_check", "graph_fail", "graph_push_scope",
            "graph_pop_scope", "input_value", "value_shape", "value_dtype", "variable_kind_of", "replica_count",
            "batch_norm", "and", "or", "not", "xor"}  # operators of Value: & | ~ ^
# Layers, which make variables: belfry.layers has them.
LAYERS = {"conv_2d", "dense", "embedding", "embedding_bag", "group_norm", "gru", "layer_norm", "lstm",
          "multi_head_attention"}


class _Parameter(NamedTuple):
    name: str
    kind: str  # "value", "values", "out", "numbers", "count", "file", or a C type

    @property
    def options(self) -> str:
        """The struct whose fields are keyword arguments; "" for another parameter."""
        found = re.match(r"const (bel_\w+_options) \*", self.kind)
        return found[1] if found else ""


def _declared(function: str, skip: int) -> List[_Parameter]:
    """The parameters after the first ones."""
    found = []
    for words in lib.parameters(function)[skip:]:
        split = re.match(r"(.*?)(\w+)$", words)
        assert split, words
        kind, name = split[1].strip(), split[2]
        what = {"bel_value *": "value", "bel_value *const *": "values", "bel_value **": "out",
                "const int64_t *": "numbers", "const char *": "file" if name == "file" else kind}.get(kind, kind)
        if what == "int" and name in ("count", "axis_count"):
            what = "count"
        found.append(_Parameter(name, what))
    return found


class _Arguments:
    """Converts the arguments of one call."""

    def __init__(self, name: str, given: Mapping[str, Any], frame: FrameType) -> None:
        self.name, self.given, self.frame = name, given, frame
        self.outs: List[Any] = []
        values = [value for value in given.values() if isinstance(value, Value)]
        self.like = next((value for value in values if value.dtype != bool), None)  # the type of constants
        self.first = values[0] if values else None
        self.count = 0

    def of(self, parameter: _Parameter, default: Any) -> Any:
        """The argument for C of a parameter."""
        name, kind = parameter
        value, what = self.given.get(name), f"{self.name}: {name}"
        if kind == "out":
            self.outs.append(ctypes.c_void_p())
            return ctypes.byref(self.outs[-1])
        if kind == "count":
            return self.count
        if kind == "file":
            return self.frame.f_code.co_filename.encode()
        if name == "line" and kind == "int":
            return self.frame.f_lineno
        if value is None and default is None:
            self.count = 0
            return None
        if kind == "value":
            return handle_of(value, what, self.like)
        if kind == "values":
            handles = [handle_of(item, f"{what}[{i}]", self.like) for i, item in enumerate(_list(value, what))]
            self.count = len(handles)
            return (ctypes.c_void_p * len(handles))(*handles)
        if kind == "numbers":
            return self._numbers(name, value, what)
        if parameter.options:
            return self._options(parameter.options, value or {})
        if kind == "bel_initializer":
            return initializer(value)
        if kind == "const bel_shape *":
            return ctypes.byref(structs.shape(value, what))
        return structs.convert(kind, value, what)

    def _numbers(self, name: str, value: Any, what: str) -> Any:
        numbers = [value] if hasattr(value, "__index__") else _list(value, what)
        self._check_length(name, numbers, what)
        self.count = len(numbers)
        return structs.sequence("const int64_t *", numbers, what) or None

    def _check_length(self, name: str, numbers: Sequence[Any], what: str) -> None:
        if name in _LENGTHS and self.first is not None:
            rank = len(self.first.shape)
            expect(len(numbers) == _LENGTHS[name](rank), f"{what}: expected {_LENGTHS[name](rank)} numbers for "
                   f"{self.first!r}, got {list(numbers)}")

    def _options(self, kind: str, options: Mapping[str, Any]) -> Any:
        for key, value in options.items():
            if key in _LENGTHS and value is not None:
                self._check_length(key, _list(value, f"{self.name}: {key}"), f"{self.name}: {key}")
        return ctypes.byref(structs.make(kind, options, self.name))


def _list(value: Any, what: str) -> Any:
    expect(isinstance(value, (list, tuple, range)), f"{what}: expected a list, got {type(value).__name__}")
    return value


def derive(name: str, function: str, skip: int, use: Callable[..., Any], **given: Any) -> Callable[..., Any]:
    """A function of Python for one of C, without its first `skip` parameters.

    use: gets the converted arguments and the _Arguments; its result is the function's. given: defaults of parameters.
    """
    parameters = _declared(function, skip)
    known = {**_DEFAULTS, **given}
    defaults = {p.name: known.get(f"{name}.{p.name}", known.get(p.name, _REQUIRED)) for p in parameters}
    places, optional = [], False
    for p in parameters:
        if p.kind in ("out", "count", "file") or p.name == "line":
            continue
        required = defaults[p.name] is _REQUIRED
        style = inspect.Parameter.VAR_KEYWORD if p.options else \
            inspect.Parameter.KEYWORD_ONLY if optional and required else inspect.Parameter.POSITIONAL_OR_KEYWORD
        optional = optional or not required
        places.append(inspect.Parameter(p.name, style, default=defaults[p.name]))
    signature = inspect.Signature(sorted(places, key=lambda place: place.kind))

    def operation(*args: Any, **kwargs: Any) -> Any:
        try:
            bound = signature.bind(*args, **kwargs)
        except TypeError as error:
            raise InvalidArgumentError(f"{name}{signature}: {error}") from None
        bound.apply_defaults()
        arguments = _Arguments(name, bound.arguments, sys._getframe(1))
        return use([arguments.of(p, defaults[p.name]) for p in parameters], arguments)

    operation.__name__ = operation.__qualname__ = name
    operation.__doc__ = f"{function}({', '.join(lib.parameters(function))}): the header describes it."
    operation.__signature__ = signature  # type: ignore[attr-defined]
    return operation


@functools.lru_cache(maxsize=None)
def derived(name: str) -> Callable[..., Any]:
    """The operation of this name, or the function that a layer of belfry.layers wraps."""
    function = f"bel_{name}_at" if f"bel_{name}_at" in functions() else "bel_" + name

    def use(converted: List[Any], arguments: _Arguments) -> Any:
        result = value_of(call(function, *converted))
        return (result, *(value_of(out.value) for out in arguments.outs)) if arguments.outs else result
    return derive(name, function, 1, use)


def functions() -> List[str]:
    """The functions of C from which this module has its own."""
    return [name for header in ("ops", "graph", "collective") for name in lib.headers[f"belfry/{header}.h"]]


def __dir__() -> List[str]:
    made = {name[len("bel_"):-3 if name.endswith("_at") else None] for name in functions()}
    return sorted((made - _BY_HAND - LAYERS) | {"all_reduce_n", "assign_state", "broadcast_n", "constant", "gradients",
                                                "map_gather", "map_reduce", "replica_count", "scope", "split"})


def __getattr__(name: str) -> Callable[..., Any]:
    if name.startswith("_") or name not in __dir__():
        raise AttributeError(str(structs.refuse(name, __dir__(), "belfry.ops")))
    made = globals()[name] = derived(name)
    return made


def initializer(value: Any) -> Any:
    """bel_initializer: "zeros", or a pair of kind and number, ("normal", 0.1)."""
    kind, number = (value, 0.0) if isinstance(value, str) else value
    return structs.make("bel_initializer", {"kind": kind, "value": number})


class scope:
    """Names of variables made inside of `with ops.scope("encoder"):` begin with "encoder/"."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> None:
        call("bel_graph_push_scope", structs.text(self.name, "scope"))

    def __exit__(self, *_: Any) -> None:
        lib.bel_graph_pop_scope(building().graph)


def split(x: Value, axis: int, sizes: Optional[Sequence[int]] = None, count: Optional[int] = None) -> Tuple[Value, ...]:
    """Parts of x along an axis, of these sizes, or `count` equal ones of which the last may be smaller."""
    expect((sizes is None) != (count is None), "split: expected either sizes or count")
    number = int(count) if count is not None else len(sizes or ())
    parts = (ctypes.c_void_p * number)()
    lengths = None if sizes is None else structs.sequence("const int64_t *", sizes, "split: sizes")
    call("bel_split", handle_of(x, "split: x"), axis, lengths, number, parts)
    return tuple(value_of(part) for part in parts)


def gradients(loss: Value, values: Sequence[Value]) -> Tuple[Optional[Value], ...]:
    """The gradients of the scalar `loss` for values; None for one on which it does not depend."""
    handles = [handle_of(value, "gradients: values") for value in values]
    results = (ctypes.c_void_p * len(handles))()
    call("bel_gradients", handle_of(loss, "gradients: loss"), (ctypes.c_void_p * len(handles))(*handles), len(handles),
         results)
    return tuple(value_of(result) if result else None for result in results)


def assign_state(variable: Value, value: Value) -> None:
    """Sets the value that this replica assigns to a state variable in each step of training."""
    call("bel_assign_state", handle_of(variable, "assign_state: variable"), handle_of(value, "assign_state: value"))


def replica_count() -> int:
    """The number of replicas that exchange with each other; 1 in evaluation and prediction."""
    return int(lib.bel_replica_count(building().graph))


def _exchange(function: str, values: Sequence[Value], last: int) -> Tuple[Value, ...]:
    frame = sys._getframe(2)
    handles = (ctypes.c_void_p * len(values))(*(handle_of(value, function) for value in values))
    call(f"bel_{function}_at", handles, len(values), last, frame.f_code.co_filename.encode(), frame.f_lineno)
    return tuple(value_of(handle) for handle in handles)


def all_reduce_n(values: Sequence[Value], op: str = "sum") -> Tuple[Value, ...]:
    """The reductions of values over the replicas, in one exchange if they are independent."""
    return _exchange("all_reduce_n", values, structs.number("bel_reduce_op", op, "all_reduce_n: op"))


def broadcast_n(values: Sequence[Value], source: int = 0) -> Tuple[Value, ...]:
    """The values of replica `source`, grouped as by all_reduce_n."""
    return _exchange("broadcast_n", values, source)


def _map(function: str, items: Sequence[Value], map: Callable[[Value], Value], *more: int) -> Value:
    frame, raised = sys._getframe(2), []

    def one(_user: Any, _graph: Any, item: int) -> Optional[int]:
        try:
            return handle_of(map(value_of(item)), f"{function}: result of the map")
        except BaseException as error:  # raised below
            raised.append(error)
            return None

    handles = (ctypes.c_void_p * len(items))(*(handle_of(item, f"{function}: items") for item in items))
    graph = building().graph
    result = getattr(lib, f"bel_{function}_at")(graph, handles, len(items), lib.bel_map_item_fn(one), None, *more,
                                                frame.f_code.co_filename.encode(), frame.f_lineno)
    if raised:
        raise raised[0]
    return value_of(result)


def map_reduce(items: Sequence[Value], map: Callable[[Value], Value], op: str = "sum") -> Value:
    """Maps each item in one replica, and reduces the results for all replicas. The function builds a graph."""
    return _map("map_reduce", items, map, structs.number("bel_reduce_op", op, "map_reduce: op"))


def map_gather(items: Sequence[Value], map: Callable[[Value], Value]) -> Value:
    """Like map_reduce, but concatenates the results along a new leading axis."""
    return _map("map_gather", items, map)
