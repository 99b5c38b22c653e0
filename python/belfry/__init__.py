"""Belfry for Python: a thin layer over libbelfry. Every computation, process and bit is the C library's.

    belfry.Estimator      trains, evaluates and predicts with a model function, in one process or many
    belfry.Dataset        input: arrays, files, generators, and stages such as shuffle and batch
    belfry.ops, layers    what a model function builds a graph of; metrics, summaries
    belfry.Loop           several step functions, in the order that the program decides
    belfry.Predictor      a trained model inside the program
    belfry.Classifier     learns the rows of a table, with the interface of scikit-learn; belfry.Regressor
    belfry.ddl            collectives of processes: a program that trains in one process trains in many
"""

from . import layers, metrics, ops, summaries
from .calls import request_stop, set_log_level
from .config import RunConfig
from .dataset import FOREVER, Dataset, Record, Skip
from .errors import (AbortedError, AlreadyExistsError, CancelledError, DataLossError, DeadlineExceededError, Error,
                     FailedPreconditionError, InternalError, InvalidArgumentError, NotFoundError, OutOfRangeError,
                     PermissionDeniedError, ResourceExhaustedError, UnauthenticatedError, UnavailableError,
                     UnimplementedError, UnknownError)
from .estimator import Estimator, EvalSpec, TrainSpec, train_and_evaluate
from .graph import Value
from .hooks import Exporter, Hook, HookContext
from .model import Context, EstimatorSpec
from .optimizers import FTRL, LAMB, LARS, SGD, Adadelta, Adagrad, Adam, AdamW, Momentum, Optimizer, RMSProp
from .predictor import Port, Predictor
from .replicator import Loop, Replicator
from .results import Result, StepReport, StepResult
from .tabular import Classifier, Regressor
from .version import VERSION as __version__

__all__ = [
    "AbortedError", "Adadelta", "Adagrad", "Adam", "AdamW", "AlreadyExistsError", "CancelledError", "Classifier",
    "Context", "DataLossError", "Dataset", "DeadlineExceededError", "Error", "Estimator", "EstimatorSpec", "EvalSpec",
    "Exporter", "FOREVER", "FTRL", "FailedPreconditionError", "Hook", "HookContext", "InternalError",
    "InvalidArgumentError", "LAMB", "LARS", "Loop", "Momentum", "NotFoundError", "Optimizer", "OutOfRangeError",
    "PermissionDeniedError", "Port", "Predictor", "RMSProp", "Record", "Regressor", "Replicator",
    "ResourceExhaustedError", "Result", "RunConfig", "SGD", "Skip", "StepReport", "StepResult", "TrainSpec",
    "UnauthenticatedError", "UnavailableError", "UnimplementedError", "UnknownError", "Value", "__version__",
    "layers", "metrics", "ops", "request_stop", "set_log_level", "summaries", "train_and_evaluate",
]
