"""Summaries of training, for TensorBoard and report.html (belfry/model.h). Call them in a model function; they have no
effect in modes where the header says so.

    summaries.scalar("gradient_norm", norm)
"""

from typing import Any

from . import structs
from .graph import Value, building, handle_of
from .library import lib


def _add(function: str, name: str, value: Value, *more: Any) -> None:
    at = building()
    label = structs.text(name, "summary")
    at.keep.append(label)  # the library does not copy it
    getattr(lib, function)(at.context, at.spec, label, handle_of(value, f"summary {name}"), *more)
    lib.bel_graph_check(at.graph)


def scalar(name: str, value: Value) -> None:
    """A number of a training step: the mean of `value`, a float32 scalar, over all replicas."""
    _add("bel_summary_scalar", name, value)


def histogram(name: str, value: Value) -> None:
    """A histogram of the numbers of `value`, float32 of any shape."""
    _add("bel_summary_histogram", name, value)


def image(name: str, value: Value, most: int = 3) -> None:
    """The first `most` (1 to 64) images of the batch: [batch, c, h, w] with 1, 3 or 4 channels, uint8, or float32 from
    0 (dark) to 1."""
    _add("bel_summary_image", name, value, int(most))


def confusion(labels: Value, predicted: Value, classes: int) -> None:
    """A confusion matrix in report.html: labels and predicted classes, int64 [batch], below `classes` (2 to 50)."""
    at = building()
    lib.bel_summary_confusion(at.context, at.spec, handle_of(labels, "confusion: labels"),
                              handle_of(predicted, "confusion: predicted"), int(classes))
    lib.bel_graph_check(at.graph)
