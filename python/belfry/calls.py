"""Calls of the library that call functions of Python: model functions, input functions, maps, hooks, loops.

C calls them on its threads and on the caller's; ctypes takes the GIL for each. An exception ends the call of the
library with an error, and then the call raises the exception itself, with its traceback; the library's error, which
says where it happened, is its cause.
"""

import collections
import contextlib
import os
import signal
import threading
import traceback
from typing import Any, Callable, Deque, Iterator, List, Optional, Tuple, Type, TypeVar

from . import structs
from .errors import Error, FailedPreconditionError, expect
from .library import lib

_Self = TypeVar("_Self", bound="Owner")
_MOST_RAISED = 16  # exceptions that are kept; a map may skip records that raise
_MOST_TEXT, _MOST_WORD = 400, 60  # characters


def reads(function: str, words: str, enumeration: str = "") -> Any:
    """A property: the number, text or name of an enumeration that a function of the library returns for an object."""
    def read(self: Any) -> Any:
        value = getattr(lib, function)(self.handle)
        if enumeration:
            return structs.enumerator(enumeration, value)
        return value.decode(errors="replace") if isinstance(value, bytes) else value
    return property(read, doc=words)


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

    _free = ""  # the function of the library that frees it
    _handle: Any

    @property
    def handle(self) -> Any:
        """The object of the library. InvalidArgumentError: it is closed."""
        expect(self._handle, f"the {type(self).__name__.lower()} is closed")
        return self._handle

    def close(self) -> None:
        """Frees it; every later call is an error. A second close does nothing."""
        taken, self._handle = self._handle, None
        getattr(lib, self._free)(taken)

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
        self._interrupted = False

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

    @contextlib.contextmanager
    def interruptible(self) -> Iterator[None]:
        """Within it Ctrl-C raises KeyboardInterrupt in the next function of Python that C calls, or at the end.

        ctypes drops an exception that Python raises before a function's first line, as its own handler does. A
        handler that the program has set stays, as do those of other threads than the main one.
        """
        def note(_number: int, _frame: Any) -> None:
            self._interrupted = True
        on_main = threading.current_thread() is threading.main_thread()
        if not on_main or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        signal.signal(signal.SIGINT, note)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._interrupted:
            raise KeyboardInterrupt

    def run(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Calls a function of Python; in one that a training calls, another training would wait for this one."""
        if self._interrupted:
            raise KeyboardInterrupt
        before = getattr(_thread, "in_training", False)
        _thread.in_training = before or self._trains
        try:
            return function(*arguments)
        finally:
            _thread.in_training = before

    def last(self) -> Optional[BaseException]:
        """The exception that was raised last."""
        return self._raised[-1][1] if self._raised else None

    def status(self, kind: Any, function: Callable[..., Any]) -> Any:
        """A C function of type `kind`, which returns a status, for one of Python, whose result is dropped."""
        def called(*arguments: Any) -> Optional[int]:
            try:
                self.run(function, *arguments)
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
                return self.run(function, *arguments)
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
        self._raised.append((encoded.decode(), error))
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
_thread = threading.local()  # in_training: it runs a function that a training has called


@contextlib.contextmanager
def training(level: Optional[str] = None) -> Iterator[None]:
    """Lets one training run at a time in a process. level: wait for another one, and log at most up to this level;
    None: refuse, and leave the log as it is."""
    if level is not None and getattr(_thread, "in_training", False):
        raise FailedPreconditionError("a function that a training calls began another training, which would wait for "
                                      "the first one; hint: fit before or after it, or in another process")
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
