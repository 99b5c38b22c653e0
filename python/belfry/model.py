"""What a model function gets and returns: its context and its spec (belfry/model.h)."""

import ctypes
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Optional, Tuple, Union

from . import structs
from .calls import Call
from .errors import InvalidArgumentError, expect
from .graph import Building, Value, handle_of
from .library import lib
from .metrics import Metric
from .optimizers import Optimizer

if TYPE_CHECKING:
    from .estimator import Estimator


def _value(at: Building, function: str, *arguments: Any) -> Optional[Value]:
    """The value that a function of the context returns; None if it returns none."""
    handle = getattr(lib, function)(at.check().context, *arguments)
    at.check()
    return Value(handle, at) if handle else None


class _Features(Mapping[str, Value]):
    """Features of the batch by name. The library has no list of them: a wrong name is an error that lists all."""

    def __init__(self, at: Building) -> None:
        self._at = at

    def __getitem__(self, name: str) -> Value:
        found = _value(self._at, "bel_context_feature", structs.text(name, "features"))
        assert found is not None
        return found

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(lib.bel_context_has_feature(self._at.check().context, name.encode()))

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    def __iter__(self) -> Iterator[str]:
        raise InvalidArgumentError("features are taken by name: features[\"x\"]")

    __len__ = __iter__  # type: ignore[assignment]


class _Params(Mapping[str, Any]):
    """Parameters of an estimator. The library notes which ones a graph reads."""

    def __init__(self, at: Building, params: Mapping[str, Any]) -> None:
        self._at, self._params = at, params

    def __getitem__(self, name: str) -> Any:
        if name not in self._params:
            raise KeyError(str(structs.refuse(name, self._params, "params")))
        lib.bel_context_param(self._at.check().context, name.encode(), None)
        return self._params[name]

    def __contains__(self, name: object) -> bool:
        return name in self._params

    def __iter__(self) -> Iterator[str]:
        return iter(self._params)

    def __len__(self) -> int:
        return len(self._params)


class Context:
    """What a model function gets.

    features: values by name, [batch, …]. labels: the field "label"; None in mode "predict" and without one.
    mode: "train", "eval" or "predict". params: those of the estimator. estimator: the estimator.
    """

    def __init__(self, estimator: "Estimator", at: Building) -> None:
        self._at = at
        self.estimator = estimator
        self.mode = at.mode
        self.features: Mapping[str, Value] = _Features(at)
        self.params: Mapping[str, Any] = _Params(at, estimator.params)

    @property
    def labels(self) -> Optional[Value]:
        return _value(self._at, "bel_context_labels")

    def label(self, name: str) -> Optional[Value]:
        """A field that the dataset names as a label (Dataset.labels); None in mode "predict"."""
        return _value(self._at, "bel_context_label", structs.text(name, "label"))

    @property
    def feature(self) -> Value:
        """The only feature, whatever its name. InvalidArgumentError: there are several, or none."""
        found = _value(self._at, "bel_context_only_feature")
        assert found is not None
        return found

    @property
    def batch_size(self) -> int:
        """Examples in a full batch, for numbers outside of the graph: the last batch may be shorter."""
        return int(lib.bel_context_batch_size(self._at.check().context))


class EstimatorSpec:
    """What a model function returns. Required: TRAIN loss and optimizer, EVAL loss, PREDICT predictions.

    predictions: a value [batch, …], or several by name. loss: scalar float32, the mean over the batch. loss_weight:
    the divisor in that mean; None: the number of examples. losses: further losses by name, each a value or a pair of
    value and factor, which are added to the loss and shown. optimizer: an Optimizer, or several by patterns of
    variables, with None for all others. metrics: by name (belfry.metrics), for EVAL. returns: of a step function, by
    name, a pair of value and "mean", "sum" or "replicas", for the loop.
    """

    def __init__(self, *, predictions: Union[Value, Mapping[str, Value], None] = None, loss: Optional[Value] = None,
                 loss_weight: Optional[Value] = None,
                 losses: Optional[Mapping[str, Union[Value, Tuple[Value, float]]]] = None,
                 optimizer: Union[Optimizer, Mapping[Optional[str], Optimizer], None] = None,
                 metrics: Optional[Mapping[str, Metric]] = None,
                 returns: Optional[Mapping[str, Tuple[Value, str]]] = None) -> None:
        self.predictions, self.loss, self.loss_weight = predictions, loss, loss_weight
        self.losses, self.optimizer, self.metrics, self.returns = losses or {}, optimizer, metrics or {}, returns or {}

    def apply(self, at: Building, call: Call) -> None:
        """Fills in the spec of the library."""
        spec, context = at.spec, at.context

        if self.loss is not None:
            lib.bel_loss_set(spec, handle_of(self.loss, "EstimatorSpec.loss"))
        if self.loss_weight is not None:
            lib.bel_loss_weight_set(spec, handle_of(self.loss_weight, "EstimatorSpec.loss_weight"))
        for name, item in self.losses.items():
            loss, factor = item if isinstance(item, tuple) else (item, 1.0)
            lib.bel_loss_add(context, spec, at.text(name), handle_of(loss, f"loss {name}"), factor)
        for name, output in _by_name(self.predictions, "predictions"):
            if name == "predictions":
                lib.bel_predictions_set(spec, handle_of(output, "EstimatorSpec.predictions"))
            else:
                lib.bel_output_add(context, spec, at.text(name), handle_of(output, f"prediction {name}"))
        for pattern, optimizer in _by_name(self.optimizer, None):
            expect(isinstance(optimizer, Optimizer), "EstimatorSpec.optimizer: expected a belfry.Optimizer, got "
                   f"{optimizer!r}")
            lib.bel_optimizer_use(spec, at.text(pattern) if pattern else None, ctypes.byref(optimizer.struct))
        for name, metric in self.metrics.items():
            expect(isinstance(metric, Metric), f"metric {name}: expected one of belfry.metrics, got {metric!r}")
            own = metric.own
            metric.add(name, *([call.plain(lib.bel_metric_fn, own, float("nan")), None] if own else []))
        for name, (value, kind) in self.returns.items():
            number = structs.number("bel_return_kind", kind, f"returns {name}")
            lib.bel_return_add(context, spec, at.text(name), handle_of(value, f"returns {name}"), number)
        lib.bel_graph_check(at.graph)


def _by_name(given: Any, name: Optional[str]) -> Iterable[Tuple[Any, Any]]:
    """The items of a mapping; of one thing, under this name; of None, nothing."""
    return given.items() if isinstance(given, Mapping) else [] if given is None else [(name, given)]


ModelFunction = Callable[[Context], EstimatorSpec]
