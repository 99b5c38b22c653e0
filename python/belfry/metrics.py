"""Metrics of evaluations, by their names in belfry/model.h without the prefix bel_metric_, and `own`.

    EstimatorSpec(..., metrics={"accuracy": metrics.accuracy(labels, ops.arg_max(logits))})

A metric is computed over the whole evaluation. `weights` (float32, of the shape of the labels or values) are weights of
examples; an example of weight 0 is ignored.
"""

from typing import Any, Callable, List, Optional

import numpy as np

from .graph import Value, building, handle_of
from .library import lib
from .ops import derive

_PREFIX = "bel_metric_"


class Metric:
    """A function of the library with its arguments after the name. own: computes the value of a custom metric."""

    def __init__(self, function: str, arguments: List[Any], own: Optional[Callable[..., float]] = None) -> None:
        self._function, self._arguments, self.own = function, arguments, own

    def add(self, name: str, *own: Any) -> None:
        """Adds it to the spec of the function that runs. own: the C function of `own`, and its user."""
        at = building()
        getattr(lib, self._function)(at.context, at.spec, at.text(name), *self._arguments, *own)
        lib.bel_graph_check(at.graph)


def own(sums: Value, result: Callable[[Any], float]) -> Metric:
    """A custom metric. sums: float32 of a closed shape, what a batch adds to the state. result: computes the value
    from the sum over all batches, an array of float64 with the elements of `sums` in order."""
    def from_sums(_user: Any, numbers: Any, count: int) -> float:
        return float(result(np.ctypeslib.as_array(numbers, (count,)).copy()))
    return Metric(_PREFIX + "own", [handle_of(sums, "own: sums")], from_sums)


def __dir__() -> List[str]:
    return sorted(name[len(_PREFIX):] for name in lib.headers["belfry/model.h"] if name.startswith(_PREFIX))


def __getattr__(name: str) -> Callable[..., Metric]:
    if name not in __dir__():
        raise AttributeError(f"belfry.metrics has {', '.join(__dir__())}, and no {name}")
    return derive(name, _PREFIX + name, 3, lambda converted, _arguments: Metric(_PREFIX + name, converted))
