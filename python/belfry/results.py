"""Numbers of trainings, evaluations and steps, as objects that own them."""

import ctypes
import html
import os
from typing import Any, Dict, Iterator, List, Mapping, Optional, Union

import numpy as np

from .library import lib


class Result:
    """Numbers of an evaluation or a training (bel_result).

    result.loss, result["accuracy"], result.metrics

    global_step: of the evaluated checkpoint, or after training. evaluation_step: the evaluated version; -1: there was
    no evaluation. loss: mean over examples; of a training without evaluations that of its last step. batch_mean_loss:
    mean of the batches' means, as TensorFlow reports it. examples: the evaluated ones. metrics: by name. interrupted:
    a request ended the training, after saving. digest: of the last checkpoint, 32 hex digits. train_seconds,
    examples_per_second: of training. evaluations: of a training, the last result of each EvalSpec, by its name
    ("eval": the unnamed one).
    """

    global_step: int
    evaluation_step: int
    loss: float
    batch_mean_loss: float
    examples: int
    interrupted: bool
    digest: str
    train_seconds: float
    examples_per_second: float

    def __init__(self, struct: Any, model_dir: Optional[str] = None) -> None:
        _copy_fields(self, struct)
        self.metrics: Dict[str, float] = {
            metric.name.decode(): metric.value for metric in struct.metrics[:struct.metric_count]}
        self.evaluations: Dict[str, Result] = {}
        self._model_dir = model_dir

    def __getitem__(self, name: str) -> Union[int, float]:
        """A metric, or one of "loss" and "global_step"."""
        return self._numbers()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._numbers())

    def __len__(self) -> int:
        return len(self._numbers())

    def keys(self) -> List[str]:
        """The names of the metrics, "loss" and "global_step"; dict(result) has them all."""
        return list(self._numbers())

    def _numbers(self) -> Dict[str, Union[int, float]]:
        return {"global_step": self.global_step, "loss": self.loss, **self.metrics}

    def __repr__(self) -> str:
        numbers = ", ".join(f"{name}={value:.6g}" for name, value in self._numbers().items() if name != "global_step")
        stopped = ", interrupted" if self.interrupted else ""
        return f"<belfry.Result at step {self.global_step}: {numbers}{stopped}>"

    def _repr_html_(self) -> str:
        """For notebooks: the numbers, and the charts of report.html in the model's folder, if there is one."""
        rows = "".join(f"<tr><td>{html.escape(name)}</td><td>{value:.6g}</td></tr>"
                       for name, value in self._numbers().items())
        report = os.path.join(self._model_dir or "", "report.html")
        charts = ""
        if self._model_dir is not None and os.path.exists(report):
            with open(report, encoding="utf-8") as file:
                charts = (f'<iframe srcdoc="{html.escape(file.read())}" width="100%" height="640" '
                          'style="border:0"></iframe>')
        return f"<table>{rows}</table>{charts}"


class StepReport:
    """Report of a step to a hook (bel_step_report). step: the version it made, at a worker the version it computed on.
    loss, examples, examples_per_second, went_back, and values: named numbers of the step."""

    step: int
    loss: float
    examples: int
    examples_per_second: float
    went_back: bool

    def __init__(self, struct: Any) -> None:
        _copy_fields(self, struct)
        self.values: Mapping[str, float] = {
            item.name.decode(): item.value for item in struct.values[:struct.value_count]}


class StepResult:
    """Result of a step that a loop ran (bel_step_result): step, loss, examples, and values: the numbers that the step
    function returned, arrays of float64 by name."""

    step: int
    loss: float
    examples: int

    def __init__(self, struct: Any) -> None:
        _copy_fields(self, struct)
        self.values: Dict[str, Any] = {item.name.decode(): np.array(item.numbers[:item.count])
                                       for item in struct.values[:struct.value_count]}


def _copy_fields(result: Any, struct: Any) -> None:
    """Sets the attributes that a class declares by the fields of these names."""
    for name in type(result).__annotations__:
        value = getattr(struct, name)
        setattr(result, name, value.decode() if isinstance(value, bytes) else value)


def new_result() -> Any:
    """A bel_result for the library to fill in."""
    return lib.bel_result(size=ctypes.sizeof(lib.bel_result))
