"""Exceptions of Belfry: one class for each code of bel_code (belfry/status.h)."""

from typing import Any, Dict, Optional, Type


class Error(Exception):
    """A call of the library failed.

    code: the number of bel_code. message: one line, context first. trace: the places in the library's source where
    the error was made and wrapped, the origin first.
    """

    code = 2

    def __init_subclass__(cls, code: Optional[int] = None) -> None:
        cls.code = cls.code if code is None else code

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.message, self.trace = message, trace


class CancelledError(Error, code=1): """Stopped on request."""
class UnknownError(Error, code=2): """Code of the program failed."""
class InvalidArgumentError(Error, ValueError, code=3): """A setting or an argument is wrong."""
class DeadlineExceededError(Error, TimeoutError, code=4): """A wait timed out; the message names the missing process."""
class NotFoundError(Error, code=5): """A file, variable or checkpoint does not exist."""
class AlreadyExistsError(Error, code=6): """The call would overwrite something."""
class PermissionDeniedError(Error, code=7): """The system refused access."""
class ResourceExhaustedError(Error, code=8): """Memory, disk or a limit is used up."""
class FailedPreconditionError(Error, code=9): """The call is not possible in this state."""
class AbortedError(Error, code=10): """Training diverged, or another process gave up."""
class OutOfRangeError(Error, IndexError, code=11): """An index is beyond its end."""
class UnimplementedError(Error, NotImplementedError, code=12): """This build does not support it."""
class InternalError(Error, code=13): """A defect of Belfry."""
class UnavailableError(Error, code=14): """Another process cannot be reached; trying again may help."""
class DataLossError(Error, code=15): """Input data or a file is malformed."""
class UnauthenticatedError(Error, code=16): """The secret is wrong or missing."""


def expect(holds: Any, message: str) -> None:
    """InvalidArgumentError with this message, unless the first argument is true."""
    if not holds:
        raise InvalidArgumentError(message)


by_code: Dict[int, Type[Error]] = {kind.code: kind for kind in Error.__subclasses__()}
