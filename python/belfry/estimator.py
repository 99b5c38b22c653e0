"""Estimator: train, evaluate and predict with a model function (belfry/estimator.h; examples in docs/python.md).

The same program is one process, or each process of a job. Model functions and input functions run in every process
that needs their graph or data, so their results must depend only on their arguments.
"""

import contextlib
import ctypes
import os
import sys
import threading
from typing import Any, Callable, Dict, Iterator, List, Mapping, Optional, Sequence, Tuple, Union

import numpy as np

from . import structs
from .calls import Call, Owner, check_process, reads, training
from .config import RunConfig, setting
from .dataset import Dataset
from .errors import FailedPreconditionError, InvalidArgumentError, expect
from .graph import Building
from .hooks import Exporter, Hook, pointers
from .job import in_job, report_at_end
from .library import lib
from .model import Context, EstimatorSpec, ModelFunction
from .replicator import Loop
from .results import Result, new_result
from .structs import Path
from .tensors import numpy_dtype

InputFunction = Callable[[], Dataset]
_MODES = ("train", "eval", "predict")


class TrainSpec:
    """Input and end of a training.

    input_fn: a function without arguments that returns a Dataset; called in each process that reads data.
    fields: those of bel_train_spec: max_steps (the step at which training ends, counted over all runs), steps (of this
    call), max_seconds, early_stopping={"patience": 3, "metric": "accuracy"}, keep_best={"metric": "loss"},
    warm_start={"checkpoint": "runs/other", "names": {"old/*": "new/*"}}.
    hooks: objects of classes made from belfry.Hook. loop: a belfry.Loop, instead of steps of the model function.
    init_fn: called as init_fn(name, values) for each variable of a new run; writes initial values in place.
    """

    def __init__(self, input_fn: InputFunction, *, hooks: Sequence[Hook] = (), loop: Optional[Loop] = None,
                 init_fn: Optional[Callable[[str, Any], None]] = None, **fields: Any) -> None:
        self.input_fn = _callable(input_fn, "TrainSpec.input_fn")
        self.hooks, self.loop, self.init_fn, self.fields = tuple(hooks), loop, init_fn, fields
        _check_types(self.hooks, Hook, "TrainSpec.hooks")
        _check_types([] if loop is None else [loop], Loop, "TrainSpec.loop")
        structs.make("bel_train_spec", fields, "TrainSpec")  # refuses wrong ones here

    def make(self, estimator: "Estimator", call: Call) -> Any:
        """bel_train_spec, valid until the call ends."""
        struct = structs.make("bel_train_spec", self.fields, "TrainSpec")
        struct.input_fn = _input(self.input_fn, call)
        hooks = [hook.make(estimator, call) for hook in self.hooks]
        struct.hooks, struct.hook_count = pointers("bel_hook", hooks), len(hooks)
        if self.init_fn is not None:
            struct.init_fn = call.status(lib.bel_init_fn, self._initialize)
        if self.loop is not None:
            struct.loop = ctypes.pointer(self.loop.make(estimator, call))
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
        _check_types(self.exporters, Exporter, "EvalSpec.exporters")
        structs.make("bel_eval_spec", fields, "EvalSpec")  # refuses wrong ones here

    @property
    def name(self) -> str:
        """The name of its results: "eval" if it has none."""
        return str(self.fields.get("name") or "eval")

    def make(self, call: Call) -> Any:
        """bel_eval_spec, valid until the call ends."""
        struct = structs.make("bel_eval_spec", self.fields, "EvalSpec")
        struct.input_fn = _input(self.input_fn, call)
        exporters = [exporter.make(call) for exporter in self.exporters]
        struct.exporters, struct.exporter_count = pointers("bel_exporter", exporters), len(exporters)
        return struct


def _check_types(items: Sequence[Any], kind: type, what: str) -> None:
    for item in items:
        expect(isinstance(item, kind), f"{what}: expected a belfry.{kind.__name__}, got {item!r}")


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
        expect(isinstance(dataset, Dataset), f"input function {_name(input_fn)}: expected a belfry.Dataset, got "
               f"{type(dataset).__name__}")
        out_dataset[0] = dataset.make(call)
    return call.status(lib.bel_input_fn, made)


def _name(function: Any) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


def _param_text(value: Any, name: str) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple, np.ndarray)):
        return ",".join(_param_text(item, name) for item in value)
    if isinstance(value, (str, int, float, np.integer, np.floating)):
        return str(value)
    raise InvalidArgumentError(f"params[{name!r}]: expected a text, a number, a bool or a list of these, which "
                               f"checkpoints record; got {type(value).__name__}")


class Estimator(Owner):
    """A model function with settings and parameters.

    model_fn: called as model_fn(ctx) with a Context for each graph that is built; returns an EstimatorSpec. Or the name
    of a model that comes with Belfry, "wide_deep", whose parameters are in docs/models.md.
    model_dir: the folder of checkpoints, events and report; None: that of config, or of the launcher (`--job_dir`).
    config: a RunConfig. params: texts, numbers, bools and lists of these by name (None: unset), for ctx.params.
    Checkpoints record them.

    One call at a time uses an estimator. `close` frees it; leaving `with` does, too. Errors: InvalidArgumentError (a
    setting is out of range, named), FailedPreconditionError.
    """

    _free = "bel_estimator_destroy"

    def __init__(self, model_fn: Union[ModelFunction, str], model_dir: Optional[Path] = None,
                 config: Optional[RunConfig] = None, params: Optional[Mapping[str, Any]] = None) -> None:
        self._call: Optional[Call] = None
        expect(params is None or isinstance(params, Mapping), "params: expected a dict of values by name, got "
               f"{type(params).__name__}")
        self.params: Dict[str, Any] = {str(name): value for name, value in (params or {}).items() if value is not None}
        self._model = self._model_function(model_fn)
        config = config if config is not None else RunConfig()
        _check_types([config], RunConfig, "config")
        struct = lib.bel_run_config.from_buffer_copy(config.struct)
        if model_dir is not None:
            folder = structs.text(model_dir, "model_dir")
            given = os.fsdecode(struct.model_dir or folder)
            expect(given == os.fsdecode(folder), f"model_dir: expected {given}, as in config; got {os.fsdecode(folder)}")
            struct.model_dir = folder
        texts = {name: _param_text(value, name) for name, value in self.params.items()}
        listed = (lib.bel_param * max(len(texts), 1))(*(
            lib.bel_param(name=name.encode(), value=text.encode()) for name, text in texts.items()))
        self._handle = lib.make("bel_estimator_create", self._model, ctypes.byref(struct), listed, len(texts))
        if isinstance(model_fn, str):
            lib.bel_estimator_param(self._handle, b"model", None)  # else a warning says that no one reads it

    def _model_function(self, model_fn: Union[ModelFunction, str]) -> Any:
        """bel_model_fn of a function, or of a model's name."""
        if isinstance(model_fn, str):
            found = lib.bel_model_find(model_fn.encode())
            expect(found, f"model_fn: no model of this name comes with Belfry: {model_fn}")
            self.params["model"] = model_fn
            return found.contents.model_fn
        expect(callable(model_fn), f"model_fn: expected a function, got {type(model_fn).__name__}")
        return self.function(model_fn)

    def function(self, function: ModelFunction) -> Any:
        """bel_model_fn of a model function or step function."""
        return lib.bel_model_fn(lambda context, spec: self._build(function, context, spec))

    def _build(self, function: ModelFunction, context: int, spec: int) -> Optional[int]:
        """Calls a function that builds a graph; returns its status."""
        call = self._call
        assert call is not None, "the library calls model functions only during a call"
        mode = _MODES[lib.bel_context_mode(context)]
        try:
            with Building(lib.bel_context_graph(context), context, spec, mode) as at:
                made = call.run(function, Context(self, at))
                expect(isinstance(made, EstimatorSpec), f"model function {_name(function)}: expected it to return a "
                       f"belfry.EstimatorSpec in mode {mode}, got {type(made).__name__}")
                made.apply(at, call)
            call.keep += at.keep
        except BaseException as error:
            return call.failed(error)
        return None

    @contextlib.contextmanager
    def use(self, call: Call) -> Iterator[None]:
        """Lets a call use this estimator."""
        self.handle
        if self._call is not None:
            raise FailedPreconditionError("another call uses this estimator; expected one call at a time")
        self._call = call
        try:
            yield
        finally:
            self._call = None

    def close(self) -> None:
        """Frees the estimator; every later call is an error. A second close does nothing."""
        if self._call is not None:
            raise FailedPreconditionError("close: a call uses the estimator")
        super().close()

    @property
    def model_dir(self) -> Optional[str]:
        """The folder of checkpoints."""
        folder: Optional[str] = setting(lib.bel_estimator_config(self.handle).contents, "model_dir")
        return folder

    rank: int = reads("bel_estimator_rank", "Index of this process among the job's workers: 0 without a job or for a "
                      "master that trains, -1: no worker.")
    size: int = reads("bel_estimator_size", "Number of workers in the job.")
    role: str = reads("bel_estimator_role", "\"master\", \"worker\", \"ps\" or \"evaluator\".", "bel_role")
    is_chief: bool = reads("bel_estimator_is_chief", "Whether this process saves and represents the job.")
    replicas: int = reads("bel_estimator_replicas", "Replicas whose batches make a step.")

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
        folder of events. Ctrl-C ends it between batches. Errors: NotFoundError (no checkpoint, or it lacks a
        variable), DataLossError.
        """
        with Call() as call, self.use(call), call.interruptible():
            struct, result = EvalSpec(input_fn, steps=steps, name=name).make(call), new_result()
            struct.between = call.status(lib.bel_between_fn, lambda _user: None)
            lib.bel_evaluate(self.handle, ctypes.byref(struct), _folder(checkpoint), ctypes.byref(result))
            return Result(result, self.model_dir)

    def predict(self, input_fn: InputFunction, *, checkpoint: Optional[Path] = None) -> Dict[str, Any]:
        """Predicts every example of the input.

        Returns arrays [examples, …] by name: "predictions", and the names of EstimatorSpec.predictions. A name whose
        examples differ in shape is a list of arrays. Ctrl-C ends it. Errors: those of evaluate; InvalidArgumentError:
        no example.
        """
        outputs: Dict[int, List[_Rows]] = {}
        row_bytes, string_at = ctypes.sizeof(lib.bel_row), ctypes.string_at

        def each(_user: Any, _example: int, values: Any, count: int) -> None:
            first = ctypes.addressof(values.contents)
            for place in range(count):
                row = string_at(first + place * row_bytes, row_bytes)
                runs = outputs.setdefault(place, [])
                if not runs or runs[-1].head != row[:-_ADDRESS]:
                    runs.append(_Rows(row))
                run = runs[-1]
                run.memory += string_at(int.from_bytes(row[-_ADDRESS:], sys.byteorder), run.bytes)
                run.count += 1

        with Call() as call, self.use(call), call.interruptible():
            lib.bel_predict(self.handle, _input(_callable(input_fn, "input_fn"), call), None, _folder(checkpoint),
                            call.status(lib.bel_predict_fn, each), None)
        expect(outputs, "predict: expected an input with at least one example, got none")
        return {runs[0].name: _joined([run.array() for run in runs]) for runs in outputs.values()}

    def export(self, folder: Path, *, checkpoint: Optional[Path] = None, **options: Any) -> None:
        """Writes the model of a checkpoint into a folder, for belfry.Predictor and other programs.

        options: fields of bel_export_options: external_data, inline_tables, training (for the learner), opset.
        Errors: UnimplementedError (an operation that ONNX lacks, named), AlreadyExistsError (the folder is something
        else), those of evaluate.
        """
        with Call() as call, self.use(call):
            struct = ctypes.byref(structs.make("bel_export_options", options, "export"))
            lib.bel_export(self.handle, _folder(checkpoint), struct, os.fsencode(folder))


_ADDRESS = ctypes.sizeof(ctypes.c_void_p)  # a bel_row ends with the address of its elements


class _Rows:
    """Rows of an output one after another whose bel_row differs only in the address, copied into memory that grows."""

    def __init__(self, row: bytes) -> None:
        struct = lib.bel_row.from_buffer_copy(row)
        self.head, self.name = row[:-_ADDRESS], struct.name.decode()
        shape = struct.value.shape
        self._dtype, self._shape = numpy_dtype(struct.value.dtype), tuple(shape.dims[:shape.rank])
        self.bytes = int(np.prod(self._shape, dtype=np.int64)) * self._dtype.itemsize
        self.memory, self.count = bytearray(), 0

    def array(self) -> Any:
        """The rows, [count, …]."""
        return np.frombuffer(self.memory, self._dtype).reshape((self.count, *self._shape))


def _joined(arrays: List[Any]) -> Any:
    """One array of all rows; a list of the rows if their shapes differ."""
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if len({array.shape[1:] for array in arrays}) == 1 else [
        row for array in arrays for row in array]


def _folder(path: Optional[Path]) -> Optional[bytes]:
    return None if path is None else os.fsencode(path)


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
    _check_types([estimator], Estimator, "train_and_evaluate")
    _check_types([train_spec], TrainSpec, "train_and_evaluate")
    _check_types(eval_specs, EvalSpec, "train_and_evaluate")
    return run_training(estimator, train_spec, eval_specs)


def run_training(estimator: Estimator, train_spec: TrainSpec, eval_specs: Sequence[EvalSpec] = (),
                 level: Optional[str] = None) -> Optional[Result]:
    """As train_and_evaluate; level: as for calls.training."""
    try:
        result, code = _train(estimator, train_spec, eval_specs, level)
    except Exception as error:
        if in_job():
            report_at_end(error, estimator.is_chief)
        raise
    if code == 128 + 2 and not in_job():
        raise KeyboardInterrupt(f"stopped and saved at step {result.global_step if result else '?'}")
    if code != 0:
        raise SystemExit(code)
    return result


def _train(estimator: Estimator, train_spec: TrainSpec, eval_specs: Sequence[EvalSpec],
           level: Optional[str]) -> Tuple[Optional[Result], int]:
    """The result, None if this process has none, and the exit code that a signal asks for."""
    check_process()
    with training(level), Call(trains=True) as call, estimator.use(call):
        train = train_spec.make(estimator, call)
        evals = (lib.bel_eval_spec * max(len(eval_specs), 1))(*(spec.make(call) for spec in eval_specs))
        results = [new_result() for _ in eval_specs]
        for spec, out in zip(evals, results):
            spec.out_result = ctypes.pointer(out)
        result, code = new_result(), ctypes.c_int()
        arguments = (estimator.handle, ctypes.byref(train), evals if eval_specs else None, len(eval_specs),
                     ctypes.byref(result))
        if threading.current_thread() is threading.main_thread():  # Python gives it the signals
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
