"""Calls of the library that call functions of Python: model functions, input functions, maps, hooks, loops.

C calls them on its threads and on the caller's; ctypes takes the GIL for each. An exception ends the call of the
library with an error, and then the call raises the exception itself, with its traceback; the library's error, which
says where it happened, is its cause.
"""

import collections
import contextlib
import os
import threading
import traceback
from typing import Any, Callable, Deque, Iterator, List, Optional, Tuple, Type, TypeVar

from . import structs
from .errors import Error, FailedPreconditionError, in_python
from .library import lib

_Self = TypeVar("_Self", bound="Owner")
_MOST_RAISED = 16  # exceptions that are kept; a map may skip records that raise
_MOST_TEXT, _MOST_WORD = 400, 60  # characters


class Handle:
    """An object of the library that a function of Python gets: valid until that function returns."""

    def __init__(self, handle: int) -> None:
        self._handle = handle

    @property
    def handle(self) -> int:
        if not self._handle:
            raise FailedPreconditionError(f"this {type(self).__name__} was valid only during the call that it was for")
        return self._handle

    def lend(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function with this object and other arguments."""
        try:
            return function(self, *arguments)
        finally:
            self._handle = 0


class Owner:
    """An object that owns something of the library: `close` frees it, as do the ends of `with` and of the object."""

    _handle: Any

    def close(self) -> None:
        raise NotImplementedError

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()


class Call:
    """One call of the library with functions of Python; a context manager around it.

    trains: a function that cannot return an error asks the training to stop when it raises.
    keep: what C points to until the call returns.
    """

    def __init__(self, trains: bool = False) -> None:
        self.keep: List[Any] = []
        self._trains = trains
        self._raised: Deque[Tuple[str, BaseException]] = collections.deque(maxlen=_MOST_RAISED)
        self._unreported: Optional[BaseException] = None

    def __enter__(self) -> "Call":
        check_process()
        return self

    def __exit__(self, _kind: Optional[Type[BaseException]], error: Optional[BaseException], _trace: Any) -> None:
        cause = self._unreported
        if cause is None and isinstance(error, Error):
            cause = next((raised for text, raised in reversed(self._raised) if text in error.message), None)
        self._raised.clear()  # their tracebacks hold frames
        if cause is not None and cause is not error:
            raise cause from error

    def last(self) -> Optional[BaseException]:
        """The exception that was raised last."""
        return self._raised[-1][1] if self._raised else None

    def status(self, kind: Any, function: Callable[..., Any]) -> Any:
        """A C function of type `kind`, which returns a status, for one of Python, whose result is dropped."""
        def called(*arguments: Any) -> Optional[int]:
            try:
                function(*arguments)
            except BaseException as error:
                return self.failed(error)
            return None
        return self._kept(kind(called))

    def plain(self, kind: Any, function: Callable[..., Any], otherwise: Any) -> Any:
        """The same for a type that cannot return an error: after an exception it returns `otherwise`, and the call
        raises at its end."""
        def called(*arguments: Any) -> Any:
            if self._unreported is not None:
                return otherwise
            try:
                return function(*arguments)
            except BaseException as error:
                self._unreported = error
                if self._trains:
                    lib.bel_request_stop()
                return otherwise
        return self._kept(kind(called))

    def failed(self, error: BaseException) -> int:
        """A status for an exception, which is kept for the end of the call."""
        text, place = f"{type(error).__name__}: {error}", ""
        if isinstance(error, Error):
            text = error.message
        elif error.__traceback__ is not None:
            last = traceback.extract_tb(error.__traceback__)[-1]
            place = f" ({os.path.basename(last.filename)}:{last.lineno})"
        # A status is one line, and shortens words of more than 256 bytes.
        text = " ".join(word[:_MOST_WORD] for word in text.split())[:_MOST_TEXT] + place
        encoded = text.encode(errors="replace")
        self._raised.append((in_python(encoded.decode()), error))
        code = error.code if isinstance(error, Error) else lib.BEL_UNKNOWN
        status: int = lib.bel_status_create(code, b"python", 0, b"%s", encoded)
        return status

    def _kept(self, function: Any) -> Any:
        self.keep.append(function)
        return function


_process: List[int] = []  # the process that has called the library first


def check_process() -> None:
    """FailedPreconditionError in a child of a process that had used the library: fork copies neither its threads nor
    its locks."""
    if not _process:
        _process.append(os.getpid())
    elif _process[0] != os.getpid():
        raise FailedPreconditionError(
            f"process {os.getpid()} was forked from process {_process[0]}, which had called the library: its "
            "threads do not exist here; hint: multiprocessing.set_start_method(\"spawn\")")


_training = threading.Lock()


@contextlib.contextmanager
def training(level: Optional[str] = None) -> Iterator[None]:
    """Lets one training run at a time in a process. level: wait for another one, and log at most up to this level;
    None: refuse, and leave the log as it is."""
    if not _training.acquire(blocking=level is not None):
        raise FailedPreconditionError("this process trains already; expected one training at a time")
    try:
        with log_level(level) if level is not None else contextlib.nullcontext():
            yield
    finally:
        _training.release()


@contextlib.contextmanager
def log_level(level: str) -> Iterator[None]:
    """Logs at most up to a level meanwhile."""
    before = set_log_level(level)
    set_log_level(min(before, level, key=list(structs.enumerators("bel_log_level")).index))
    try:
        yield
    finally:
        set_log_level(before)


def set_log_level(level: str) -> str:
    """Sets what the library writes to stderr in this process: "error", "warn", "info" (at first; with progress) or
    "debug", each with those before it. Returns the level before. InvalidArgumentError: another word."""
    number = structs.number("bel_log_level", level, "set_log_level")
    return structs.enumerator("bel_log_level", lib.bel_log_set_level(number))


def request_stop() -> None:
    """Asks the training of this process, and in a job all of it, to save and end at the next step. Any thread."""
    lib.bel_request_stop()
