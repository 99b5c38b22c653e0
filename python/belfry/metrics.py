"""Metrics of evaluations, by their names in belfry/model.h, without the prefix bel_metric_.

    EstimatorSpec(..., metrics={"accuracy": metrics.accuracy(labels, ops.arg_max(logits))})

A metric is computed over the whole evaluation. `weights` (float32, of the shape of the labels or values) are weights of
examples; an example of weight 0 is ignored.
"""

from typing import Any, Callable, Optional

import numpy as np

from . import structs
from .graph import Value, building, handle_of
from .library import lib


class Metric:
    """What a function of this module returns: a function of the library with its arguments."""

    def __init__(self, function: str, *arguments: Any, own: Optional[Callable[..., float]] = None) -> None:
        self._function, self._arguments, self.own = function, arguments, own

    def add(self, name: str, own: Any = None) -> None:
        """Adds it to the spec of the function that runs. own: the C function of `own`."""
        at = building()
        label = structs.text(name, "metrics")
        at.keep.append(label)  # the library does not copy it
        arguments = [handle_of(value, f"metric {name}") if isinstance(value, Value) else value
                     for value in self._arguments]
        if self.own is not None:
            arguments += [own, None]
        getattr(lib, self._function)(at.context, at.spec, label, *arguments)
        lib.bel_graph_check(at.graph)


def mean(values: Value, weights: Optional[Value] = None) -> Metric:
    """The mean of values (float32, any shape)."""
    return Metric("bel_metric_mean", values, weights)


def accuracy(labels: Value, predicted: Value, weights: Optional[Value] = None) -> Metric:
    """The share of `predicted` that equals `labels`, both of one type and shape, such as int64 [batch]."""
    return Metric("bel_metric_accuracy", labels, predicted, weights)


def top_k(labels: Value, scores: Value, k: int, weights: Optional[Value] = None) -> Metric:
    """The share of labels (int64 [batch]) whose score is among the k highest of scores (float32 [batch, classes])."""
    return Metric("bel_metric_top_k", labels, scores, int(k), weights)


def precision(labels: Value, predicted: Value, weights: Optional[Value] = None) -> Metric:
    """The share of predicted yes that is yes; all except 0 is yes."""
    return Metric("bel_metric_precision", labels, predicted, weights)


def recall(labels: Value, predicted: Value, weights: Optional[Value] = None) -> Metric:
    """The share of yes that was predicted as yes."""
    return Metric("bel_metric_recall", labels, predicted, weights)


def f1(labels: Value, predicted: Value, weights: Optional[Value] = None) -> Metric:
    """The harmonic mean of precision and recall."""
    return Metric("bel_metric_f1", labels, predicted, weights)


def root_mean_squared_error(labels: Value, predicted: Value, weights: Optional[Value] = None) -> Metric:
    """The root of the mean of (predicted - labels)², both float32 of one shape."""
    return Metric("bel_metric_root_mean_squared_error", labels, predicted, weights)


def auc(labels: Value, probabilities: Value, weights: Optional[Value] = None) -> Metric:
    """The area under the receiver operating characteristic: labels and probabilities (float32) [batch]."""
    return Metric("bel_metric_auc", labels, probabilities, weights)


def own(sums: Value, result: Callable[[Any], float]) -> Metric:
    """A custom metric. sums: float32 of a closed shape, what a batch adds to the state. result: computes the value
    from the sum over all batches, an array of float64 with the elements of `sums` in order."""
    def from_sums(_user: Any, numbers: Any, count: int) -> float:
        array: Any = np.ctypeslib.as_array(numbers, (count,))
        return float(result(array.copy()))
    return Metric("bel_metric_own", sums, own=from_sums)
