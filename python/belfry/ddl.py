"""Collectives of processes: the calls of IBM's Distributed Deep Learning (DDL), over belfry/ddl.h; see docs/python.md.

Every rank makes the same calls in the same order. If a rank fails or exits, the calls of the others raise, and the
message names it. A process that no launcher started is a group of one.
"""

import atexit
import ctypes
import sys
from typing import Any, Callable, List, Optional, Tuple

import numpy as np

from . import structs
from .errors import FailedPreconditionError, expect
from .library import lib
from .tensors import array_of, tensors_of


class _Group:
    """The process's membership; its handle is NULL outside of init … finalize."""

    def __init__(self) -> None:
        self.handle: Any = None
        self.distributed: List[Any] = []  # optimizers whose reductions may be under way

    def check(self) -> Any:
        """The handle."""
        if not self.handle:
            raise FailedPreconditionError("there is no group: call ddl.init() first")
        return self.handle

    def live(self) -> Any:
        """The handle, when no thread uses it."""
        self.check()
        for optimizer in self.distributed:
            optimizer.complete()  # one call at a time, in the same order on all ranks
        return self.handle

    def leave(self) -> Any:
        """The handle, which the caller frees."""
        taken, self.handle, self.distributed = self.handle, None, []
        return taken


_group = _Group()


def init(mode: Optional[str] = None, pci: bool = True, *, order: str = "fixed", timeout: float = 600,
         device: int = -1, check: float = 0.0) -> None:
    """Joins the group and waits for all ranks.

    mode: the algorithm of a sum, a letter with dimensions ("s", "r:4x2", …; docs/ddl.md); None: s. pci: devices are
    numbered by PCI address. order: "fixed", along the tree over ranks, or "fast", any order. timeout: longest wait for
    a rank, in seconds. device: preferred device; below 0: by local rank. check: above 0, every sum is compared with one
    in double, and may differ by this share. The variable BELFRY_DDL_OPTIONS overrides all of them.

    A second call does nothing. Errors: InvalidArgumentError, FailedPreconditionError (ranks have other options),
    DeadlineExceededError (names the missing rank), AbortedError, UnauthenticatedError, AlreadyExistsError.
    """
    if _group.handle:
        return
    options = {"mode": mode, "pci": pci, "order": order, "timeout_secs": timeout, "device": device, "check": check}
    _group.handle = lib.make("bel_ddl_init", ctypes.byref(structs.make("bel_ddl_options", options, "init")))


def _place(field: str, words: str) -> Callable[[], int]:
    """A function that returns a number of this process's place."""
    def number() -> int:
        return int(getattr(lib.bel_ddl_place_of(_group.check()), field))
    number.__doc__ = words
    return number


rank = _place("rank", "Number of this process among all, from 0 on.")
size = _place("size", "Number of processes.")
local_rank = _place("local_rank", "Number of this process among those of its host.")
local_size = _place("local_size", "Number of processes of this host.")
local_device = _place("device", "Device of this process.")


_memory_of: Any = ctypes.c_char.from_buffer  # refuses memory that is read-only or not in C order
_last: Tuple[Any, Any] = (None, None)  # of the last call: places, shapes and types of arrays; bel_tensors over them


def _tensors(values: Any, what: str) -> Tuple[Any, int, Any]:
    """bel_tensors over one array or a sequence of arrays, all in place; their number; what the caller keeps alive.

    Programs give the same arrays again and again. To compare them with the last call's costs 1 µs; to make bel_tensors
    6, and 30 after a large sum, whose elements have replaced Python in the processor's caches.
    """
    global _last
    listed = values if isinstance(values, (list, tuple)) else [values]
    try:
        memory = [(ctypes.addressof(_memory_of(array)), array.shape, array.dtype)
                  for array in listed if type(array) is np.ndarray]
    except (TypeError, ValueError):  # an array is read-only, not in C order, or empty
        memory = []
    before, views = _last
    if memory == before and len(memory) == len(listed):
        return views, len(memory), listed
    arrays = [array_of(value, f"{what}, array {index}") for index, value in enumerate(listed)]
    for index, array in enumerate(arrays):
        expect(array.flags.c_contiguous and array.flags.writeable, f"{what}, array {index}: expected an array in C "
               f"order that can be written, as the result replaces it; got strides {array.strides} of shape "
               f"{array.shape}")
    views = tensors_of(arrays, what)
    if len(memory) == len(listed):
        _last = memory, views
    return views, len(arrays), arrays


def bcast(tensors: Any, root: int = 0) -> None:
    """Replaces arrays by those of rank `root`, in place.

    tensors: an array or a sequence of arrays: numpy, or objects with DLPack on the CPU; in C order. The same types and
    shapes on all ranks.
    """
    views, count, _kept = _tensors(tensors, "bcast")
    lib.bel_ddl_bcast_from(_group.live(), root, views, count)


def all_reduce_n(tensors: Any, op: str = "avg", mpi: bool = False, check: float = 0.0) -> None:
    """Adds or averages arrays over the ranks, in place, in one call.

    tensors: as for bcast; float32, float64, and with "sum" also int32 and int64, mixed as you like. op: "sum" or "avg".
    mpi and check belong to the group in Belfry: init(mode="m", order="fast") and init(check=…); others are refused.
    """
    number = structs.number("bel_ddl_op", op, "op")
    expect(not mpi and check <= 0, "mpi and check are set for all calls: ddl.init(mode=\"m\", order=\"fast\"), "
           "ddl.init(check=1e-5)")
    views, count, _kept = _tensors(tensors, "all_reduce_n")
    lib.bel_ddl_all_reduce_n(_group.live(), number, views, count)


def barrier() -> None:
    """Waits until all ranks have called it."""
    lib.bel_ddl_barrier(_group.live())


def finalize() -> None:
    """Waits for the others like a barrier, and leaves the group. Without a group it does nothing.

    A program that ends without it, or by an exception, ends the calls of the other ranks with an error.
    """
    if not _group.handle:
        return
    try:
        _group.live()
    except BaseException as error:
        _abort(f"{type(error).__name__}: {error}")
        raise
    lib.bel_ddl_finalize(_group.leave())


def _abort(why: str) -> None:
    """Ends the calls of all ranks: this one cannot continue. If a thread is inside a call, the group must stay: the end
    of the process ends the others' calls."""
    if not _group.handle or any(optimizer.is_busy() for optimizer in _group.distributed):
        return
    lib.bel_ddl_abort(_group.leave(), why.encode())


@atexit.register
def _leave() -> None:
    """At the end of a program that did not finalize, which may have raised."""
    error = getattr(sys, "last_value", None)
    _abort(f"a rank raised {type(error).__name__}: {error}" if error is not None else "a rank ended without finalize")


def distribute(optimizer: Any, *, model: Optional[Any] = None, bucket_bytes: int = 4 << 20) -> Any:
    """Makes a PyTorch optimizer train with all ranks, and returns it.

    The parameters, and the buffers of `model` if it is given, become those of rank 0. From then on each step uses the
    gradients' averages over the ranks. They are averaged in buckets of about `bucket_bytes`, in the order in which the
    backward pass usually finishes them, by a thread, while the pass continues. When `backward` returns, gradients are
    averages, so they may be clipped. A parameter without a gradient in a step counts as zeros on that rank.

    Each rank's batch is a part of the step's batch: multiply the learning rate by `ddl.size()` if you keep the batch of
    one process for each rank (`scale_learning_rate`), and give each rank other examples (`sampler`). To accumulate
    gradients over several backward passes, wrap all but the last one in `with optimizer.no_sync():`.
    """
    from ._torch import Distributed
    _group.distributed.append(Distributed(optimizer, model, bucket_bytes))
    return optimizer


def scale_learning_rate(optimizer: Any) -> None:
    """Multiplies the learning rates of a PyTorch optimizer by the number of ranks, as for a batch that is larger by
    that factor."""
    for group in optimizer.param_groups:
        group["lr"] *= size()


def sampler(dataset: Any, *, shuffle: bool = True, seed: int = 0) -> Any:
    """A sampler of PyTorch that gives each rank its part of a dataset; call its `set_epoch` before each epoch."""
    from torch.utils.data.distributed import DistributedSampler
    return DistributedSampler(dataset, num_replicas=size(), rank=rank(), shuffle=shuffle, seed=seed)
