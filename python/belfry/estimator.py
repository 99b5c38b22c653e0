"""Estimator: train, evaluate and predict with a model function (belfry/estimator.h).

    def model_fn(ctx):
        logits = layers.dense(ctx.features["x"], 10, "logits")
        if ctx.labels is None:
            return belfry.EstimatorSpec(predictions=ops.softmax(logits))
        loss = ops.mean(ops.softmax_cross_entropy(logits, ctx.labels))
        accuracy = metrics.accuracy(ctx.labels, ops.arg_max(logits))
        return belfry.EstimatorSpec(loss=loss, optimizer=belfry.Adam(0.001), metrics={"accuracy": accuracy})

    estimator = belfry.Estimator(model_fn, "runs/digits", belfry.RunConfig(save_checkpoints_steps=500))
    train = belfry.TrainSpec(lambda: data.shuffle().repeat().batch(64), max_steps=2000)
    result = belfry.train_and_evaluate(estimator, train, belfry.EvalSpec(lambda: held.batch(256)))

The same program is one process, or each process of a job. Model functions and input functions run in every process
that needs their graph or data, so their results must depend only on their arguments.
"""

import ctypes
import os
from typing import Any, Callable, Dict, Iterable, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import structs
from .calls import Call, Training, check_process, is_main_thread
from .dataset import Dataset
from .errors import Error, FailedPreconditionError, InvalidArgumentError
from .graph import Building, Value, handle_of
from .hooks import Exporter, Hook, pointers
from .job import in_job, report_at_end
from .library import lib
from .metrics import Metric
from .optimizers import Optimizer
from .results import Result, new_result
from .tensors import numpy_dtype

InputFunction = Callable[[], Dataset]
_MODES = ("train", "eval", "predict")
Path = Union[str, "os.PathLike[str]"]


class RunConfig:
    """Settings of a run: the fields of bel_run_config, with their defaults, as keyword arguments and attributes.

        config = belfry.RunConfig(num_gpus=2, save_checkpoints_steps=500, mode="async")
        config.seed = 7

    An estimator copies it. InvalidArgumentError: no such field, which names similar ones, or a value of another type;
    the estimator checks ranges.
    """

    def __init__(self, **fields: Any) -> None:
        struct = lib.bel_run_config()
        lib.bel_run_config_init(ctypes.byref(struct), ctypes.sizeof(struct))
        vars(self).update(struct=struct, _keep=[])
        self._set(fields)

    def _set(self, fields: Mapping[str, Any]) -> None:
        structs.make("bel_run_config", fields, self._keep, "RunConfig", self.struct)
        towers = fields.get("towers_of")
        if towers is not None:  # the library reads one for each worker
            self._set({"num_workers": len(towers)})

    def __setattr__(self, name: str, value: Any) -> None:
        self._set({name: value})

    def __getattr__(self, name: str) -> Any:
        settings = structs.settings_of("bel_run_config")
        if name not in settings:
            raise AttributeError(str(structs.refuse(name, settings, "RunConfig")))
        return _setting(self.struct, name)

    def flags(self, arguments: Sequence[str]) -> List[str]:
        """Applies the flags of a run, such as --num_workers 2, and returns the other arguments.

        arguments: those of the program, without its name and without flags that it knows itself
        (argparse's parse_known_args). InvalidArgumentError: an unknown flag; the message names the nearest.
        """
        given = (ctypes.c_char_p * (len(arguments) + 2))(b"python3", *(os.fsencode(word) for word in arguments))
        count = ctypes.c_int(len(arguments) + 1)
        self._keep.append(given)  # texts are borrowed
        lib.bel_run_config_flags(ctypes.byref(self.struct), ctypes.byref(count), given)
        lib.bel_refuse_flags(count, given)
        return [os.fsdecode(word) for word in given[1:count.value] if word is not None]

    def __repr__(self) -> str:
        default = RunConfig()
        changed = ((name, getattr(self, name)) for name in structs.settings_of("bel_run_config"))
        return f"RunConfig({', '.join(f'{n}={v!r}' for n, v in changed if v != getattr(default, n))})"


def _setting(struct: Any, name: str) -> Any:
    """A field of bel_run_config as a value of Python."""
    value, words = getattr(struct, name), lib.fields("bel_run_config")[name]
    if name == "towers_of":
        return value[:struct.num_workers] if value else None
    kind = words.split()[0]
    if kind in lib.enums:
        return structs.enumerator(kind, value)
    return os.fsdecode(value) if isinstance(value, bytes) else value


class _Features(Mapping[str, Value]):
    """Features of the batch by name. The library has no list of them: a wrong name is an error that lists all."""

    def __init__(self, at: Building) -> None:
        self._at = at

    def __getitem__(self, name: str) -> Value:
        handle = lib.bel_context_feature(self._at.context, structs.text(name, "features"))
        lib.bel_graph_check(self._at.graph)
        return Value(handle, self._at)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and bool(lib.bel_context_has_feature(self._at.context, name.encode()))

    def get(self, name: str, default: Any = None) -> Any:
        return self[name] if name in self else default

    def __iter__(self) -> Iterator[str]:
        raise InvalidArgumentError("features are taken by name: features[\"x\"]")

    __len__ = __iter__  # type: ignore[assignment]


class _Params(Mapping[str, Any]):
    """Parameters of an estimator. The library notes which ones a graph reads."""

    def __init__(self, context: int, params: Mapping[str, Any]) -> None:
        self._context, self._params = context, params

    def __getitem__(self, name: str) -> Any:
        if name not in self._params:
            raise KeyError(str(structs.refuse(name, self._params, "params")))
        lib.bel_context_param(self._context, name.encode(), None)
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
        self.params: Mapping[str, Any] = _Params(at.context, estimator.params)

    @property
    def labels(self) -> Optional[Value]:
        handle = lib.bel_context_labels(self._at.context)
        return Value(handle, self._at) if handle else None

    def label(self, name: str) -> Optional[Value]:
        """A field that the dataset names as a label (Dataset.labels); None in mode "predict"."""
        handle = lib.bel_context_label(self._at.context, structs.text(name, "label"))
        lib.bel_graph_check(self._at.graph)
        return Value(handle, self._at) if handle else None

    @property
    def feature(self) -> Value:
        """The only feature, whatever its name. InvalidArgumentError: there are several, or none."""
        handle = lib.bel_context_only_feature(self._at.context)
        lib.bel_graph_check(self._at.graph)
        return Value(handle, self._at)

    @property
    def batch_size(self) -> int:
        """Examples in a full batch, for numbers outside of the graph: the last batch may be shorter."""
        return int(lib.bel_context_batch_size(self._at.context))


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

        def label(name: str) -> bytes:
            at.keep.append(structs.text(name, "EstimatorSpec"))
            return bytes(at.keep[-1])

        if self.loss is not None:
            lib.bel_loss_set(spec, handle_of(self.loss, "EstimatorSpec.loss"))
        if self.loss_weight is not None:
            lib.bel_loss_weight_set(spec, handle_of(self.loss_weight, "EstimatorSpec.loss_weight"))
        for name, item in self.losses.items():
            loss, factor = item if isinstance(item, tuple) else (item, 1.0)
            lib.bel_loss_add(context, spec, label(name), handle_of(loss, f"loss {name}"), factor)
        for name, output in _by_name(self.predictions, "predictions"):
            if name == "predictions":
                lib.bel_predictions_set(spec, handle_of(output, "EstimatorSpec.predictions"))
            else:
                lib.bel_output_add(context, spec, label(name), handle_of(output, f"prediction {name}"))
        for pattern, optimizer in _by_name(self.optimizer, None):
            if not isinstance(optimizer, Optimizer):
                raise InvalidArgumentError(f"EstimatorSpec.optimizer: expected a belfry.Optimizer, got {optimizer!r}")
            lib.bel_optimizer_use(spec, label(pattern) if pattern else None, ctypes.byref(optimizer.struct))
        for name, metric in self.metrics.items():
            if not isinstance(metric, Metric):
                raise InvalidArgumentError(f"metric {name}: expected one of belfry.metrics, got {metric!r}")
            own = metric.own
            metric.add(name, *([call.plain(lib.bel_metric_fn, own, float("nan")), None] if own else []))
        for name, (value, kind) in self.returns.items():
            number = structs.convert("bel_return_kind", kind, [], f"returns {name}")
            lib.bel_return_add(context, spec, label(name), handle_of(value, f"returns {name}"), number)
        lib.bel_graph_check(at.graph)


def _by_name(given: Any, name: Optional[str]) -> Iterable[Tuple[Any, Any]]:
    """The items of a mapping; of one thing, under this name; of None, nothing."""
    return given.items() if isinstance(given, Mapping) else [] if given is None else [(name, given)]


ModelFunction = Callable[[Context], EstimatorSpec]


class TrainSpec:
    """Input and end of a training.

    input_fn: a function without arguments that returns a Dataset; called in each process that reads data.
    fields: those of bel_train_spec: max_steps (the step at which training ends, counted over all runs), steps (of this
    call), max_seconds, early_stopping={"patience": 3, "metric": "accuracy"}, keep_best={"metric": "loss"},
    warm_start={"checkpoint": "runs/other", "names": {"old/*": "new/*"}}.
    hooks: objects of classes made from belfry.Hook. loop: a belfry.Loop, instead of steps of the model function.
    init_fn: called as init_fn(name, values) for each variable of a new run; writes initial values in place.
    """

    def __init__(self, input_fn: InputFunction, *, hooks: Sequence[Hook] = (), loop: Any = None,
                 init_fn: Optional[Callable[[str, Any], None]] = None, **fields: Any) -> None:
        self.input_fn = _callable(input_fn, "TrainSpec.input_fn")
        self.hooks, self.loop, self.init_fn, self.fields = tuple(hooks), loop, init_fn, fields
        for hook in self.hooks:
            if not isinstance(hook, Hook):
                raise InvalidArgumentError(f"TrainSpec.hooks: expected objects of belfry.Hook, got {hook!r}")
        structs.make("bel_train_spec", fields, [], "TrainSpec")  # refuses wrong ones here

    def make(self, estimator: "Estimator", call: Call) -> Any:
        """bel_train_spec, valid until the call ends."""
        struct = structs.make("bel_train_spec", self.fields, call.keep, "TrainSpec")
        struct.input_fn = _input(self.input_fn, call)
        hooks = [hook.make(estimator, call) for hook in self.hooks]
        struct.hooks, struct.hook_count = pointers("bel_hook", hooks, call.keep), len(hooks)
        if self.init_fn is not None:
            struct.init_fn = call.status(lib.bel_init_fn, self._initialize)
        if self.loop is not None:
            loop = self.loop.make(estimator, call)
            call.keep.append(loop)
            struct.loop = ctypes.pointer(loop)
        return struct

    def _initialize(self, _user: Any, _estimator: Any, name: bytes, shape: Any, values: Any) -> None:
        dims = tuple(shape.contents.dims[:shape.contents.rank])
        array = np.ctypeslib.as_array(values, (int(np.prod(dims, dtype=np.int64)),)).reshape(dims)
        assert self.init_fn is not None
        self.init_fn(name.decode(), array)


class EvalSpec:
    """Input and schedule of an evaluation.

    input_fn: as of TrainSpec. fields: those of bel_eval_spec: steps (batches; None: all of the input), name,
    every_steps, throttle_secs, start_delay_secs. exporters: belfry.Exporter objects.
    """

    def __init__(self, input_fn: InputFunction, *, exporters: Sequence[Exporter] = (), **fields: Any) -> None:
        self.input_fn = _callable(input_fn, "EvalSpec.input_fn")
        self.exporters, self.fields = tuple(exporters), fields
        structs.make("bel_eval_spec", fields, [], "EvalSpec")  # refuses wrong ones here

    @property
    def name(self) -> str:
        """The name of its results: "eval" if it has none."""
        return str(self.fields.get("name") or "eval")

    def make(self, call: Call) -> Any:
        """bel_eval_spec, valid until the call ends."""
        struct = structs.make("bel_eval_spec", self.fields, call.keep, "EvalSpec")
        struct.input_fn = _input(self.input_fn, call)
        exporters = [exporter.make(call) for exporter in self.exporters]
        struct.exporters, struct.exporter_count = pointers("bel_exporter", exporters, call.keep), len(exporters)
        return struct


def _callable(function: Any, what: str) -> Any:
    if not callable(function):
        hint = "; hint: lambda: dataset" if isinstance(function, Dataset) else ""
        raise InvalidArgumentError(f"{what}: expected a function that returns a belfry.Dataset, got "
                                   f"{type(function).__name__}{hint}")
    return function


def _input(input_fn: InputFunction, call: Call) -> Any:
    """bel_input_fn of an input function."""
    def made(_user: Any, _estimator: Any, _mode: int, out_dataset: Any) -> None:
        dataset = input_fn()
        if not isinstance(dataset, Dataset):
            raise InvalidArgumentError(f"input function {_name(input_fn)}: expected a belfry.Dataset, got "
                                       f"{type(dataset).__name__}")
        out_dataset[0] = dataset.make(call)
    return call.status(lib.bel_input_fn, made)


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _param_text(value: Any, name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return ",".join(_param_text(item, name) for item in value)
    if isinstance(value, (str, int, float, np.integer, np.floating)):
        return str(value)
    raise InvalidArgumentError(f"params[{name!r}]: expected a text, a number, a bool or a list of these, which "
                               f"checkpoints record; got {type(value).__name__}")


class Estimator:
    """A model function with settings and parameters.

    model_fn: called as model_fn(ctx) with a Context for each graph that is built; returns an EstimatorSpec.
    model_dir: the folder of checkpoints, events and report; None: that of config, or of the launcher (`--job_dir`).
    config: a RunConfig. params: texts, numbers, bools and lists of these by name: ctx.params. Checkpoints record them.

    One call at a time uses an estimator. `close` frees it; leaving `with` does, too. Errors: InvalidArgumentError (a
    setting is out of range, named), FailedPreconditionError.
    """

    def __init__(self, model_fn: ModelFunction, model_dir: Optional[Path] = None, config: Optional[RunConfig] = None,
                 params: Optional[Mapping[str, Any]] = None) -> None:
        self._handle = ctypes.c_void_p()
        self._call: Optional[Call] = None
        if not callable(model_fn):
            raise InvalidArgumentError(f"model_fn: expected a function, got {type(model_fn).__name__}")
        config = config if config is not None else RunConfig()
        if not isinstance(config, RunConfig):
            raise InvalidArgumentError(f"config: expected a belfry.RunConfig, got {type(config).__name__}")
        self._model_fn = model_fn
        self.params: Dict[str, Any] = {str(name): value for name, value in (params or {}).items() if value is not None}
        struct = lib.bel_run_config.from_buffer_copy(config.struct)
        if model_dir is not None:
            folder = structs.text(model_dir, "model_dir")
            if struct.model_dir not in (None, folder):
                raise InvalidArgumentError(f"model_dir: expected {os.fsdecode(struct.model_dir)}, as in config; got "
                                           f"{os.fsdecode(folder)}")
            struct.model_dir = folder
        texts = {name: _param_text(value, name) for name, value in self.params.items()}
        listed = (lib.bel_param * max(len(texts), 1))(*(
            lib.bel_param(name=name.encode(), value=text.encode()) for name, text in texts.items()))
        self._model = lib.bel_model_fn(lambda context, spec: self.build(model_fn, context, spec))
        lib.bel_estimator_create(self._model, ctypes.byref(struct), listed, len(texts), ctypes.byref(self._handle))

    def build(self, function: ModelFunction, context: int, spec: int) -> Optional[int]:
        """Calls a model function or step function for the library; returns its status."""
        call = self._call
        assert call is not None, "the library calls model functions only during a call"
        mode = _MODES[lib.bel_context_mode(context)]
        try:
            with Building(lib.bel_context_graph(context), context, spec, mode) as at:
                made = function(Context(self, at))
                if not isinstance(made, EstimatorSpec):
                    raise InvalidArgumentError(
                        f"model function {_name(function)}: expected it to return a belfry.EstimatorSpec in mode "
                        f"{mode}, got {type(made).__name__}")
                made.apply(at, call)
            call.keep += at.keep
        except BaseException as error:
            return call.failed(error)
        return None

    def use(self, call: Call) -> "_Use":
        """Lets a call use this estimator; a context manager."""
        return _Use(self, call)

    @property
    def handle(self) -> Any:
        """The estimator of the library."""
        if not self._handle:
            raise InvalidArgumentError("the estimator is closed")
        return self._handle

    def close(self) -> None:
        """Frees the estimator; every later call is an error. A second close does nothing."""
        if self._call is not None:
            raise FailedPreconditionError("close: a call uses the estimator")
        taken, self._handle = self._handle, ctypes.c_void_p()
        lib.bel_estimator_destroy(taken)

    def __enter__(self) -> "Estimator":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    @property
    def model_dir(self) -> Optional[str]:
        """The folder of checkpoints."""
        folder: Optional[str] = _setting(lib.bel_estimator_config(self.handle).contents, "model_dir")
        return folder

    @property
    def rank(self) -> int:
        """Index of this process among the job's workers; 0 without a job and for a master that trains, -1: no worker."""
        return int(lib.bel_estimator_rank(self.handle))

    @property
    def size(self) -> int:
        """Number of workers in the job."""
        return int(lib.bel_estimator_size(self.handle))

    @property
    def role(self) -> str:
        """"master", "worker", "ps" or "evaluator"."""
        return structs.enumerator("bel_role", lib.bel_estimator_role(self.handle))

    @property
    def is_chief(self) -> bool:
        """Whether this process saves and represents the job."""
        return bool(lib.bel_estimator_is_chief(self.handle))

    @property
    def replicas(self) -> int:
        """Replicas whose batches make a step."""
        return int(lib.bel_estimator_replicas(self.handle))

    def batch_per_replica(self, examples: int) -> int:
        """Divides a step's examples by the replicas: the batch size for an input function. InvalidArgumentError: no
        multiple of the replicas."""
        batch = ctypes.c_int64()
        lib.bel_batch_per_replica(self.handle, examples, ctypes.byref(batch))
        return batch.value

    def train(self, input_fn: InputFunction, **fields: Any) -> Optional[Result]:
        """Trains without evaluations: train_and_evaluate with TrainSpec(input_fn, **fields)."""
        return train_and_evaluate(self, TrainSpec(input_fn, **fields))

    def evaluate(self, input_fn: InputFunction, *, checkpoint: Optional[Path] = None, steps: Optional[int] = None,
                 name: Optional[str] = None) -> Result:
        """Evaluates a checkpoint.

        checkpoint: its folder; None: the newest in model_dir. steps: batches; None: all of the input. name: of its
        folder of events. Errors: NotFoundError (no checkpoint, or it lacks a variable), DataLossError.
        """
        with Call() as call, self.use(call):
            struct, result = EvalSpec(input_fn, steps=steps, name=name).make(call), new_result()
            lib.bel_evaluate(self.handle, ctypes.byref(struct), _folder(checkpoint), ctypes.byref(result))
            return Result(result, self.model_dir)

    def predict(self, input_fn: InputFunction, *, checkpoint: Optional[Path] = None) -> Dict[str, Any]:
        """Predicts every example of the input.

        Returns arrays [examples, …] by name: "predictions", and the names of EstimatorSpec.predictions. A name whose
        examples differ in shape is a list of arrays. Errors: those of evaluate.
        """
        rows: Dict[str, List[Any]] = {}

        def each(_user: Any, _example: int, values: Any, count: int) -> None:
            for row in values[:count]:
                rows.setdefault(row.name.decode(), []).append(_copy(row.value))

        with Call() as call, self.use(call):
            lib.bel_predict(self.handle, _input(_callable(input_fn, "input_fn"), call), None, _folder(checkpoint),
                            call.status(lib.bel_predict_fn, each), None)
        return {name: np.stack(items) if len({item.shape for item in items}) == 1 else items
                for name, items in rows.items()}

    def export(self, folder: Path, *, checkpoint: Optional[Path] = None, **options: Any) -> None:
        """Writes the model of a checkpoint into a folder, for belfry.Predictor and other programs.

        options: fields of bel_export_options: external_data, inline_tables, training (for the learner), opset.
        Errors: UnimplementedError (an operation that ONNX lacks, named), AlreadyExistsError (the folder is something
        else), those of evaluate.
        """
        with Call() as call, self.use(call):
            struct = structs.make("bel_export_options", options, call.keep, "export")
            lib.bel_export(self.handle, _folder(checkpoint), ctypes.byref(struct), os.fsencode(folder))


class _Use:
    """Connects an estimator with the call that uses it."""

    def __init__(self, estimator: Estimator, call: Call) -> None:
        self._estimator, self._call = estimator, call

    def __enter__(self) -> None:
        self._estimator.handle
        if self._estimator._call is not None:
            raise FailedPreconditionError("another call uses this estimator; expected one call at a time")
        self._estimator._call = self._call

    def __exit__(self, *_: Any) -> None:
        self._estimator._call = None


def _folder(path: Optional[Path]) -> Optional[bytes]:
    return None if path is None else os.fsencode(path)


def _copy(tensor: Any) -> Any:
    """The elements of a tensor of the library as an array that owns them."""
    shape, dtype = tuple(tensor.shape.dims[:tensor.shape.rank]), numpy_dtype(tensor.dtype)
    size = int(np.prod(shape, dtype=np.int64)) * dtype.itemsize
    return np.frombuffer(ctypes.string_at(tensor.data, size) if size else b"", dtype).reshape(shape)


def train_and_evaluate(estimator: Estimator, train_spec: TrainSpec, *eval_specs: EvalSpec) -> Optional[Result]:
    """Trains, evaluates along the way and at the end, and saves: all of a job, or this process's part of one.

    It resumes from the newest checkpoint in the model's folder. Returns the result of the training and of the first
    EvalSpec; None in a process that does not represent the job (a worker, a parameter server).

    Ctrl-C saves, and then raises KeyboardInterrupt; the same call continues. A second one ends the process at once.
    SIGTERM saves, or leaves the job to the other processes, and raises SystemExit, as in a process of a job every
    request to end does. This holds on Python's main thread; on others no signal is handled.

    An exception in a function of the program ends the training, and is raised here. Errors: see
    bel_train_and_evaluate.
    """
    if not isinstance(estimator, Estimator) or not isinstance(train_spec, TrainSpec):
        raise InvalidArgumentError("train_and_evaluate: expected an Estimator, a TrainSpec and EvalSpecs, got "
                                   f"{type(estimator).__name__} and {type(train_spec).__name__}")
    for spec in eval_specs:
        if not isinstance(spec, EvalSpec):
            raise InvalidArgumentError(f"train_and_evaluate: expected an EvalSpec, got {type(spec).__name__}")
    try:
        result, code = _train(estimator, train_spec, eval_specs)
    except Exception as error:
        if in_job():
            report_at_end(error, estimator.is_chief)
        raise
    if code == 128 + 2 and not in_job():
        raise KeyboardInterrupt(f"stopped and saved at step {result.global_step if result else '?'}")
    if code != 0:
        raise SystemExit(code)
    return result


def _train(estimator: Estimator, train_spec: TrainSpec, eval_specs: Sequence[EvalSpec]) -> Tuple[Optional[Result], int]:
    """The result, None if this process has none, and the exit code that a signal asks for."""
    check_process()
    with Training(), Call(trains=True) as call, estimator.use(call):
        train = train_spec.make(estimator, call)
        evals = (lib.bel_eval_spec * max(len(eval_specs), 1))(*(spec.make(call) for spec in eval_specs))
        results = [new_result() for _ in eval_specs]
        for spec, out in zip(evals, results):
            spec.out_result = ctypes.pointer(out)
        result, code = new_result(), ctypes.c_int()
        arguments = (estimator.handle, ctypes.byref(train), evals if eval_specs else None, len(eval_specs),
                     ctypes.byref(result))
        if is_main_thread():
            lib.bel_train_with_signals(*arguments, ctypes.byref(code))
        else:
            lib.bel_train_and_evaluate(*arguments)
        raised = call.last()
        if 0 < code.value < 128 and raised is not None:  # the library has logged the error of a member of a job
            raise raised
        if result.digest == b"":
            return None, code.value
        made = Result(result, estimator.model_dir)
        made.evaluations = {spec.name: Result(out, estimator.model_dir) for spec, out in zip(eval_specs, results)}
        return made, code.value
