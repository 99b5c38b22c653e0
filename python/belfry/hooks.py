"""Hooks and exporters: what a training calls and keeps (belfry/hook.h, estimator.h)."""

import ctypes
import difflib
from typing import Any, Callable, Dict, List, Optional, Tuple

import numpy as np

from . import structs
from .calls import Call, Handle
from .errors import InvalidArgumentError
from .library import lib
from .results import Result, StepReport


class HookContext(Handle):
    """Access to the training, valid during the call of a hook's function."""

    def __init__(self, handle: int, estimator: Any) -> None:
        super().__init__(handle)
        self.estimator = estimator

    def request_stop(self) -> None:
        """Requests a normal end of the training; at a worker it has no effect."""
        lib.bel_hook_request_stop(self.handle)

    def summary_text(self, name: str, text: str) -> None:
        """Adds a text of this run, shown as Markdown among TensorBoard's texts."""
        lib.bel_hook_summary_text(self.handle, structs.text(name, "name"), structs.text(text, "text"))


class Hook:
    """Functions that a training calls: override those that you need, the others are not called.

    name: for messages, and for the state in checkpoints; the class's name unless it is set. every_steps: of
    after_step; 0: each. state: an array that each checkpoint stores, and a resumed run restores before `begin`.

    The process that represents the job calls begin to end, on the thread that trains, while training continues. Each
    worker calls worker_before_step and worker_after_step, on its thread, in the middle of a step: there each call takes
    the GIL. A hook cannot change a bit of the result, except by a request to stop. After a return to a checkpoint steps
    repeat (report.went_back). An exception ends the job.
    """

    name: str = ""
    every_steps: int = 0
    state: Optional[Any] = None

    def __init_subclass__(cls) -> None:
        """InvalidArgumentError: a method has almost the name of one of a hook, and would not be called."""
        for name in vars(cls):
            near = difflib.get_close_matches(name, vars(Hook), 1, 0.75)
            if near and len(name) > 4 and callable(getattr(cls, name)) and name[0] != "_" and not hasattr(Hook, name):
                raise InvalidArgumentError(f"{cls.__name__}.{name}: a hook has no such method, so nothing would call "
                                           f"it; did you mean {near[0]}? hint: begin the names of others with _")

    def begin(self, context: HookContext, step: int) -> None:
        """Before the first step of this call."""

    def after_step(self, context: HookContext, report: StepReport) -> None:
        """Once for each version that is a multiple of every_steps, in order."""

    def after_save(self, context: HookContext, step: int, folder: str) -> None:
        """A checkpoint is complete."""

    def after_evaluation(self, context: HookContext, name: str, result: Result) -> None:
        """An evaluation is done; name: "eval", or "eval_" and that of its EvalSpec."""

    def end(self, context: HookContext, result: Result) -> None:
        """The training ended normally."""

    def worker_before_step(self, context: HookContext, step: int) -> None:
        """Before the worker's replicas compute on version `step`."""

    def worker_after_step(self, context: HookContext, report: StepReport) -> None:
        """After they have reported."""

    def make(self, estimator: Any, call: Call) -> Any:
        """bel_hook, valid until the call ends."""
        values: Dict[str, Any] = {"name": self.name or type(self).__name__, "every_steps": self.every_steps}
        struct = structs.make("bel_hook", values, "Hook")
        for name, words in lib.fields("bel_hook").items():
            if "(" in words and getattr(type(self), name) is not getattr(Hook, name):
                kind = type(getattr(struct, name))
                setattr(struct, name, call.status(kind, _called(getattr(self, name), estimator)))
        if self.state is not None:
            struct.state, struct.state_bytes = memory_of(self.state, f"{values['name']}.state", call)
        return struct


def _called(function: Callable[..., None], estimator: Any) -> Callable[..., None]:
    """A function of C for a method of a hook: its arguments as objects of Python."""
    def called(_user: Any, context: int, *arguments: Any) -> None:
        HookContext(context, estimator).lend(function, *(_argument(item, estimator) for item in arguments))
    return called


def _argument(item: Any, estimator: Any) -> Any:
    if isinstance(item, bytes):
        return item.decode()
    if isinstance(item, int):
        return item
    struct = item.contents
    return Result(struct, estimator.model_dir) if isinstance(struct, lib.bel_result) else StepReport(struct)


def memory_of(array: Any, what: str, call: Call) -> Tuple[int, int]:
    """Address and bytes of an array in which a checkpoint stores a state."""
    if not isinstance(array, np.ndarray) or array.dtype.hasobject or not array.flags.c_contiguous or \
            not array.flags.writeable:
        raise InvalidArgumentError(f"{what}: expected a numpy array of numbers in C order that can be written, got "
                                   f"{type(array).__name__}")
    call.keep.append(array)
    return array.ctypes.data, array.nbytes


class Exporter:
    """Keeps evaluated versions as model_dir/export/<name>/<step>/, for belfry.Predictor and other programs.

    kind: "latest" (each evaluated version), "best" (each better than all before) or "final" (the last of a run).
    fields: those of bel_exporter: keep, metric, goal ("auto", "min", "max"). is_better: of "best", called as
    is_better(best, now) with two Results, instead of a metric.
    """

    def __init__(self, name: str, kind: str = "best", *, is_better: Optional[Callable[[Result, Result], bool]] = None,
                 **fields: Any) -> None:
        self.fields = {"name": name, "kind": kind, **fields}
        self.is_better = is_better
        structs.make("bel_exporter", self.fields, "Exporter")  # refuses wrong ones here

    def make(self, call: Call) -> Any:
        """bel_exporter, valid until the call ends."""
        struct = structs.make("bel_exporter", self.fields, "Exporter")
        if self.is_better is not None:
            better = self.is_better
            struct.is_better = call.plain(lib.bel_compare_fn, lambda _user, best, now: bool(
                better(Result(best.contents), Result(now.contents))), False)
        return struct


def pointers(kind: str, items: List[Any]) -> Any:
    """A list of pointers to structs."""
    return (ctypes.POINTER(getattr(lib, kind)) * max(len(items), 1))(*map(ctypes.pointer, items))
