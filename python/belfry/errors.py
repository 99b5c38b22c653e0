"""Exceptions of Belfry: one class for each code of bel_code (belfry/status.h)."""

from typing import Dict, Type


class Error(Exception):
    """A call of the library failed.

    code: the number of bel_code. message: one line, context first. trace: the places in the library's source where
    the error was made and wrapped, the origin first.
    """

    code = 2

    def __init__(self, message: str, trace: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.trace = trace


class CancelledError(Error):
    """Stopped on request."""
    code = 1


class UnknownError(Error):
    """Code of the program failed."""
    code = 2


class InvalidArgumentError(Error, ValueError):
    """A setting or an argument is wrong."""
    code = 3


class DeadlineExceededError(Error, TimeoutError):
    """A wait timed out; the message names the missing process."""
    code = 4


class NotFoundError(Error):
    """A file, variable or checkpoint does not exist."""
    code = 5


class AlreadyExistsError(Error):
    """The call would overwrite something."""
    code = 6


class PermissionDeniedError(Error):
    """The system refused access."""
    code = 7


class ResourceExhaustedError(Error):
    """Memory, disk or a limit is used up."""
    code = 8


class FailedPreconditionError(Error):
    """The call is not possible in this state."""
    code = 9


class AbortedError(Error):
    """Training diverged, or another process gave up."""
    code = 10


class OutOfRangeError(Error, IndexError):
    """An index is beyond its end."""
    code = 11


class UnimplementedError(Error, NotImplementedError):
    """This build does not support it."""
    code = 12


class InternalError(Error):
    """A defect of Belfry."""
    code = 13


class UnavailableError(Error):
    """Another process cannot be reached; trying again may help."""
    code = 14


class DataLossError(Error):
    """Input data or a file is malformed."""
    code = 15


class UnauthenticatedError(Error):
    """The secret is wrong or missing."""
    code = 16


by_code: Dict[int, Type[Error]] = {kind.code: kind for kind in Error.__subclasses__()}
