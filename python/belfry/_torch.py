"""A PyTorch optimizer whose gradients are averaged over the ranks (belfry.ddl.distribute).

A hook on each parameter notes that its gradient is complete. When all of a bucket are, and the buckets before it have
been passed on, a thread averages them in place by one call, so buckets go in one order, that of all ranks. The call
releases the GIL, so the backward pass continues meanwhile. A callback at the end of the pass passes on what is left,
with zeros for gradients that are missing, and waits. With several distributed optimizers no bucket is passed on before
that, because their order would depend on the hooks.
"""

import contextlib
import queue
import threading
import types
from typing import Any, Dict, Iterator, List, Optional

import torch

from . import ddl
from .errors import FailedPreconditionError, InvalidArgumentError
from .library import lib
from .tensors import array_of, tensors_of


class Distributed:
    """The averaging of one optimizer's gradients."""

    def __init__(self, optimizer: Any, model: Optional[Any], bucket_bytes: int) -> None:
        if getattr(optimizer, "no_sync", None) is not None:
            raise FailedPreconditionError("the optimizer is distributed already")
        self._parameters = [p for group in optimizer.param_groups for p in group["params"] if p.requires_grad]
        if not self._parameters:
            raise InvalidArgumentError("the optimizer has no parameter to train")
        for parameter in self._parameters:
            if parameter.device.type != "cpu":
                raise InvalidArgumentError(f"expected parameters in the processor's memory, got {parameter.device}")
        state = [p.detach() for p in self._parameters]
        if model is not None:
            state += list(model.buffers())
        ddl.bcast(state)
        self._make_buckets(bucket_bytes)
        self._work: "queue.SimpleQueue[int]" = queue.SimpleQueue()
        self._error: Optional[BaseException] = None
        self._syncs = True
        self._idle = threading.Condition()  # guards _pending, the buckets that the thread has
        self._pending = 0
        self._begin()
        self._hooks = [self._hook(parameter) for parameter in self._parameters]
        threading.Thread(target=self._run, daemon=True, name="belfry-ddl").start()
        self._replace_methods(optimizer)

    def _make_buckets(self, bucket_bytes: int) -> None:
        """Cuts the parameters, last ones first, as the backward pass finishes them."""
        self._buckets: List[List[Any]] = [[]]
        self._bucket_of: Dict[int, int] = {}
        room = bucket_bytes
        for parameter in reversed(self._parameters):
            bytes_of = parameter.numel() * parameter.element_size()
            if self._buckets[-1] and bytes_of > room:
                self._buckets.append([])
                room = bucket_bytes
            room -= bytes_of
            self._buckets[-1].append(parameter)
            self._bucket_of[id(parameter)] = len(self._buckets) - 1
        self._forms = {id(p): (p.dtype, p.numel()) for p in self._parameters}
        self._tensors = [tensors_of([array_of(p, "parameter") for p in bucket], "gradients")
                         for bucket in self._buckets]  # of gradients, whose addresses change

    def _begin(self) -> None:
        """Before the backward pass of a step."""
        self._missing = [set(map(id, bucket)) for bucket in self._buckets]
        self._next = 0  # the first bucket that was not passed on
        self._begun = False  # a backward pass has finished a gradient

    def _hook(self, parameter: Any) -> Any:
        """Calls `_finished` when the parameter's gradient is complete in a backward pass."""
        accumulator = parameter.expand_as(parameter).grad_fn.next_functions[0][0]
        accumulator.register_hook(lambda *_: self._finished(parameter))
        return accumulator  # it lives as long as it is held

    def _finished(self, parameter: Any) -> None:
        if not self._syncs:
            return
        ddl._group.check()
        bucket = self._bucket_of[id(parameter)]
        if bucket < self._next:
            raise FailedPreconditionError(
                "a gradient changes after it was averaged: two backward passes before optimizer.step(); wrap all but "
                "the last one in `with optimizer.no_sync():`")
        if not self._begun:
            self._begun = True
            torch.autograd.Variable._execution_engine.queue_callback(self.complete)  # when the pass ends
        self._missing[bucket].discard(id(parameter))
        while self._only() and self._next < len(self._buckets) and not self._missing[self._next]:
            self._pass_on()

    @staticmethod
    def _only() -> bool:
        return len(ddl._group.distributed) == 1

    def _pass_on(self) -> None:
        with self._idle:
            self._pending += 1
        self._work.put(self._next)
        self._next += 1

    def _run(self) -> None:
        """The thread: one bucket after the other. After an error the rest is passed over."""
        while True:
            bucket = self._work.get()
            try:
                if self._error is None:
                    self._average(bucket)
            except BaseException as error:  # raised where the program waits
                self._error = error
            with self._idle:
                self._pending -= 1
                self._idle.notify_all()

    def _average(self, bucket: int) -> None:
        """Only this thread calls the library meanwhile."""
        tensors = self._tensors[bucket]
        for tensor, parameter in zip(tensors, self._buckets[bucket]):
            tensor.data = _gradient(parameter, *self._forms[id(parameter)]).data_ptr()
        lib.bel_ddl_all_reduce_n(ddl._group.check(), lib.BEL_DDL_AVG, tensors, len(tensors))

    def is_busy(self) -> bool:
        """Whether the thread has buckets: then it may be inside a call of the library."""
        with self._idle:
            return self._pending > 0

    def complete(self) -> None:
        """Passes on all buckets of a backward pass that has begun, and waits for them: which ones were passed on
        before may differ between ranks. Raises what the thread met."""
        while self._begun and self._next < len(self._buckets):
            self._pass_on()
        with self._idle:
            while self._pending > 0:  # each call of the thread has the group's timeout
                self._idle.wait()
        if self._error is not None:
            error, self._error = self._error, None
            raise error

    def _check_parameters(self, optimizer: Any) -> None:
        present = {id(p) for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
        if not present <= self._bucket_of.keys():
            raise FailedPreconditionError("the optimizer has parameters that it did not train when it was distributed: "
                                          "call ddl.distribute after all of them are added and unfrozen")

    def _replace_methods(self, optimizer: Any) -> None:
        """As methods, which schedulers of learning rates expect."""
        step, zero_grad = optimizer.step, optimizer.zero_grad

        def averaged_step(_optimizer: Any, closure: Optional[Any] = None) -> Any:
            if closure is not None:
                raise InvalidArgumentError("a distributed optimizer takes no closure: call backward before step")
            ddl._group.check()
            self._check_parameters(optimizer)
            self._begun = True  # also without a gradient here
            self.complete()
            self._begin()
            return step()

        def ended_zero_grad(_optimizer: Any, *arguments: Any, **named: Any) -> Any:
            self.complete()  # of a step that the program leaves out
            self._begin()
            return zero_grad(*arguments, **named)

        optimizer.step = types.MethodType(averaged_step, optimizer)
        optimizer.zero_grad = types.MethodType(ended_zero_grad, optimizer)
        optimizer.no_sync = self.no_sync

    @contextlib.contextmanager
    def no_sync(self) -> Iterator[None]:
        """Gradients of backward passes inside are only accumulated."""
        self._syncs = False
        try:
            yield
        finally:
            self._syncs = True


def _gradient(parameter: Any, dtype: Any, elements: int) -> Any:
    """Its gradient in C order, of the type and size that the parameter had; zeros if it has none."""
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter, memory_format=torch.contiguous_format)
    elif parameter.grad.layout != torch.strided:
        raise InvalidArgumentError(f"expected dense gradients, got one with layout {parameter.grad.layout} of shape "
                                   f"{tuple(parameter.grad.shape)}; hint: an embedding with sparse=False")
    elif not parameter.grad.is_contiguous():
        parameter.grad = parameter.grad.contiguous()
    if parameter.grad.dtype != dtype or parameter.grad.numel() != elements:
        raise InvalidArgumentError(f"expected a gradient of {elements} elements of {dtype}, as when the optimizer was "
                                   f"distributed, got {parameter.grad.numel()} of {parameter.grad.dtype}; hint: convert "
                                   "the model before")
    return parameter.grad
