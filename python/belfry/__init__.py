"""Belfry for Python: a thin layer over libbelfry. Every computation, process and bit is the C library's.

    belfry.Predictor      a trained model inside the program
    belfry.Classifier     learns the rows of a table, with the interface of scikit-learn; belfry.Regressor
    belfry.ddl            collectives of processes: a program that trains in one process trains in many
"""

from .errors import (AbortedError, AlreadyExistsError, CancelledError, DataLossError, DeadlineExceededError, Error,
                     FailedPreconditionError, InternalError, InvalidArgumentError, NotFoundError, OutOfRangeError,
                     PermissionDeniedError, ResourceExhaustedError, UnauthenticatedError, UnavailableError,
                     UnimplementedError, UnknownError)
from .predictor import Port, Predictor
from .tabular import Classifier, Regressor
from .version import VERSION as __version__

__all__ = [
    "AbortedError", "AlreadyExistsError", "CancelledError", "Classifier", "DataLossError", "DeadlineExceededError", "Error",
    "FailedPreconditionError", "InternalError", "InvalidArgumentError", "NotFoundError", "OutOfRangeError",
    "PermissionDeniedError", "Port", "Predictor", "Regressor", "ResourceExhaustedError", "UnauthenticatedError", "UnavailableError",
    "UnimplementedError", "UnknownError", "__version__",
]
