"""Classifier and Regressor: models of tables with the interface of scikit-learn, which they do not import.

A table is an array of numbers, a pandas frame or a dict of columns. The model is "wide_deep" with the defaults that
`belfry train_and_evaluate` takes for a table (docs/columns.md).
"""

import contextlib
import ctypes
import inspect
import os
import sys
import tempfile
import threading
import warnings
from typing import Any, Callable, Dict, Iterator, List, Optional, Sequence, Tuple, TypeVar, Union

import numpy as np

from .checkpoint import Checkpoint, make_estimator
from .errors import CancelledError, FailedPreconditionError, InvalidArgumentError
from .library import lib
from .tables import Cells, Columns, Table, is_frame, matrix_of, names_of, table_of
from .tensors import tensor_of, view_of

_Self = TypeVar("_Self", bound="_Learner")

_BLOCK = 32  # rows of a run, as in `belfry predict`: a row's bits do not depend on the rows beside it
_training = threading.Lock()  # a process runs one training at a time (belfry/estimator.h)


def _forget_threads() -> None:
    """A forked process has none of the threads that may hold the lock."""
    global _training
    _training = threading.Lock()


os.register_at_fork(after_in_child=_forget_threads)


class _Model:
    """A trained model: the files of its checkpoint, and what runs it. It pickles as the files."""

    def __init__(self, files: Dict[str, bytes], threads: int) -> None:
        self.files, self._threads = files, threads
        self._estimator, self._predictor, self._learner = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_void_p()
        with tempfile.TemporaryDirectory(prefix="belfry-") as folder:
            _write_files(folder, files)
            checkpoint = Checkpoint(folder)
            assert checkpoint.columns is not None
            self.columns = checkpoint.columns
            self._batch_size = int(checkpoint.settings["train_batch_size"])
            self._estimator = checkpoint.estimator(num_threads=str(threads))
            self._predictor = checkpoint.predictor(self._estimator)

    def __getstate__(self) -> Tuple[Dict[str, bytes], int]:
        return self.files, self._threads

    def __setstate__(self, state: Tuple[Dict[str, bytes], int]) -> None:
        self.__init__(*state)  # type: ignore[misc]

    def __del__(self) -> None:
        for name, destroy in (("_predictor", lib.bel_predictor_destroy), ("_learner", lib.bel_learner_destroy),
                              ("_estimator", lib.bel_estimator_destroy)):
            if getattr(self, name, None):
                destroy(getattr(self, name))

    def predict(self, table: Table) -> Any:
        """The model's output for all rows, [n, classes] or [n]."""
        ports = [lib.bel_predictor_input_port(self._predictor, place)
                 for place in range(lib.bel_predictor_input_count(self._predictor))]
        arrays = self._inputs(table, None, ports)
        blocks = [np.zeros((_BLOCK,) + array.shape[1:], array.dtype) for array in arrays]
        for place, block in enumerate(blocks):
            lib.bel_predictor_bind(self._predictor, place, ctypes.byref(tensor_of(block, "block")))
        out: Any = None
        for first in range(0, table.row_count, _BLOCK):
            count = min(_BLOCK, table.row_count - first)
            for array, block in zip(arrays, blocks):
                block[:count] = array[first:first + count]
            lib.bel_predictor_run(self._predictor)
            part = view_of(lib.bel_predictor_output(self._predictor, 0))
            if out is None:
                out = np.empty((table.row_count,) + part.shape[1:], part.dtype)
            out[first:first + count] = part[:count]
        return out

    def _inputs(self, table: Table, weights: Any, ports: Sequence[Any]) -> List[Any]:
        """Features of all rows for the inputs of a predictor or a learner, of which one may be the weights."""
        names = [port.name.decode() for port in ports]
        if weights is not None and "weight" not in names:
            raise InvalidArgumentError("sample_weight: expected None, as the training began without weights")
        values = self.columns.features(table)
        values["weight"] = np.ones(table.row_count, np.float32) if weights is None else weights.astype(np.float32)
        return [values[name] for name in names]

    def learn(self, table: Table, labels: Any, weights: Any, learning_rate: float) -> None:
        """Trains on all rows once, in their order, with a constant rate. The steps are those of a learner
        (belfry/learner.h) that continues the training."""
        with tempfile.TemporaryDirectory(prefix="belfry-") as folder:
            if not self._learner:
                self._learner = self._load_learner(folder, learning_rate)
            ports = [lib.bel_learner_input_port(self._learner, place)
                     for place in range(lib.bel_learner_input_count(self._learner))]
            inputs, targets = self._inputs(table, weights, ports), [labels]
            for first in range(0, table.row_count, self._batch_size):
                rows = slice(first, first + self._batch_size)
                lib.bel_learner_step(self._learner, _tensors(inputs, rows), _tensors(targets, rows), None)
            lib.bel_predictor_destroy(self._predictor)
            self._predictor = ctypes.c_void_p()
            lib.bel_learner_predictor(self._learner, max(self._threads, 1), ctypes.byref(self._predictor))
            lib.bel_learner_save(self._learner, os.fsencode(os.path.join(folder, "saved")), None)
            self.files = _read_files(os.path.join(folder, "saved"))

    def _load_learner(self, folder: str, learning_rate: float) -> Any:
        _write_files(folder, self.files)
        export, learner = os.path.join(folder, "training"), ctypes.c_void_p()
        options = lib.bel_export_options(size=ctypes.sizeof(lib.bel_export_options), training=True)
        with _alone(lib.BEL_LOG_ERROR):  # a warning says that the schedule has ended; the learner has a rate
            lib.bel_export(self._estimator, os.fsencode(Checkpoint(folder).folder), ctypes.byref(options),
                           os.fsencode(export))
        how = lib.bel_learner_options(size=ctypes.sizeof(lib.bel_learner_options), threads=max(self._threads, 1),
                                      keep_checkpoint_max=1, learning_rate=learning_rate)
        lib.bel_learner_load(os.fsencode(export), ctypes.byref(how), ctypes.byref(learner))
        return learner


def _tensors(arrays: List[Any], rows: slice) -> Any:
    return (lib.bel_tensor * max(len(arrays), 1))(*[tensor_of(array[rows], "batch") for array in arrays])


def _write_files(folder: str, files: Dict[str, bytes]) -> None:
    for name, content in files.items():
        os.makedirs(os.path.join(folder, os.path.dirname(name)), exist_ok=True)
        with open(os.path.join(folder, name), "wb") as file:
            file.write(content)


def _read_files(model_dir: str) -> Dict[str, bytes]:
    """The files of the newest checkpoint, by their paths in model_dir."""
    folder, files = Checkpoint(model_dir).folder, {}
    for name in sorted(os.listdir(folder)):
        with open(os.path.join(folder, name), "rb") as file:
            files[os.path.join(os.path.basename(folder), name)] = file.read()
    return files


class _Learner:
    """What Classifier and Regressor have in common; their comments say what a user must know."""

    _label_kind = lib.BEL_LABEL_NONE
    _estimator_type = ""
    _model: _Model  # after the first training, as are the next three
    _cells: Cells
    _framed: bool
    _rate: float

    def __init__(self, *, hidden_units: Union[None, str, Sequence[int]] = None, dropout: Optional[float] = None,
                 l2: Optional[float] = None, optimizer: str = "adam", learning_rate: Optional[float] = None,
                 schedule: str = "cosine", train_batch_size: Optional[int] = None, num_epochs: Optional[int] = None,
                 random_state: Any = None, num_threads: int = 0, model_dir: Optional[str] = None,
                 verbose: bool = False) -> None:
        self.hidden_units = hidden_units
        self.dropout = dropout
        self.l2 = l2
        self.optimizer = optimizer
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.train_batch_size = train_batch_size
        self.num_epochs = num_epochs
        self.random_state = random_state
        self.num_threads = num_threads
        self.model_dir = model_dir
        self.verbose = verbose

    # --- Parameters, as scikit-learn reads and sets them

    @classmethod
    def _names(cls) -> List[str]:
        return sorted(name for name in inspect.signature(cls.__init__).parameters if name != "self")

    def get_params(self, deep: bool = True) -> Dict[str, Any]:
        """The parameters by name. `deep` has no effect: none of them is an estimator."""
        return {name: getattr(self, name) for name in self._names()}

    def set_params(self: _Self, **params: Any) -> _Self:
        """Sets parameters; the next fit uses them. InvalidArgumentError: no such parameter."""
        for name, value in params.items():
            if name not in self._names():
                raise InvalidArgumentError(f"expected a parameter of {type(self).__name__}, one of "
                                           f"{', '.join(self._names())}, got {name}")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = inspect.signature(type(self).__init__).parameters
        changed = (f"{name}={value!r}" for name, value in self.get_params().items()
                   if value is not defaults[name].default)
        return f"{type(self).__name__}({', '.join(changed)})"

    def _more_tags(self) -> Dict[str, Any]:
        """Facts that scikit-learn up to 1.5 asks for."""
        return {"allow_nan": True, "requires_y": True}

    def __sklearn_tags__(self) -> Any:
        """The same for later versions."""
        from sklearn.utils import (ClassifierTags, InputTags, RegressorTags, Tags,  # type: ignore[import]
                                   TargetTags)
        classifies = self._estimator_type == "classifier"
        return Tags(estimator_type=self._estimator_type, target_tags=TargetTags(required=True),
                    classifier_tags=ClassifierTags() if classifies else None,
                    regressor_tags=None if classifies else RegressorTags(),
                    input_tags=InputTags(allow_nan=True, string=True, categorical=True))

    # --- Training

    def fit(self: _Self, X: Any, y: Any, sample_weight: Any = None) -> _Self:
        """Trains anew; see the class. Returns self."""
        table = self._take_table(X)
        labels = self._take_labels(y, table.row_count, None)
        weights = _weights_of(sample_weight, table.row_count)
        if weights is not None:
            used = np.flatnonzero(weights)
            table.order = used if len(used) < len(weights) else None
            weights = None if np.all(weights[used] == weights[used[0]]) else weights  # equal ones change nothing
        self._train(table, labels, weights, self.schedule, self.num_epochs)
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        begins = not hasattr(self, "_model")
        table = self._take_table(X) if begins else self._table(X)
        labels = self._take_labels(y, table.row_count, classes if begins else getattr(self, "classes_", None))
        weights = _weights_of(sample_weight, table.row_count)
        if begins:
            weights = np.ones(table.row_count) if weights is None else weights  # later calls may have some
            self._train(table, labels, weights, "constant", 1)
        else:
            self._model.learn(table, labels, weights, self._rate)

    def _take_table(self, X: Any) -> Table:
        """The table to train on. Sets what says how X must look from now on."""
        self._framed = is_frame(X)
        X = X if self._framed else matrix_of(X)
        table = table_of(X)
        self._numbers = None if self._framed or X.dtype.kind in "OU" else "x*"  # guess, or all are numbers
        self.n_features_in_ = len(table.names)
        self._columns = list(table.names)
        vars(self).pop("feature_names_in_", None)
        if self._framed and all(isinstance(name, str) for name in X):
            self.feature_names_in_ = np.array(names_of(X), object)
        return table

    def _train(self, table: Table, labels: Any, weights: Any, schedule: str, num_epochs: Optional[int]) -> None:
        label, weight = _free_name("y", table.names), _free_name("weight", table.names)
        self._add_labels(table, label, labels)
        if weights is not None:
            table.add_numbers(weight, weights)
        table.sort_by_cells()
        columns = Columns.infer(table, label, self._label_kind, weight=None if weights is None else weight,
                                numbers=self._numbers, classes=self._class_texts(), threads=self.num_threads)
        level = lib.BEL_LOG_INFO if self.verbose else lib.BEL_LOG_WARN
        with tempfile.TemporaryDirectory(prefix="belfry-") as folder, _alone(level):
            folder = folder if self.model_dir is None else os.fspath(self.model_dir)
            self._run(table, columns, folder, schedule, num_epochs)
            self._model = _Model(_read_files(folder), self.num_threads)
        self._cells = Cells(self._columns)

    def _run(self, table: Table, columns: Columns, folder: str, schedule: str, num_epochs: Optional[int]) -> None:
        defaults = lib.bel_columns_defaults(columns.handle)
        epochs = _count("num_epochs", num_epochs, defaults.epochs)
        batch_size = _count("train_batch_size", self.train_batch_size, defaults.batch_size)
        seed, struct = _seed_of(self.random_state), table.struct()
        params = self._params(columns, defaults, schedule)
        if schedule != "constant":
            params["decay_steps"] = str(-(-epochs * struct.row_count // batch_size))
        self._rate = float(params["learning_rate"])

        def make_input(_user: Any, _estimator: Any, _mode: int, out: Any) -> None:
            dataset = lib.bel_dataset_from_memory_table(ctypes.byref(struct), columns.handle, False)
            lib.bel_dataset_shuffle(dataset, 0, seed)
            lib.bel_dataset_repeat(dataset, epochs)
            lib.bel_dataset_batch(dataset, batch_size)
            out[0] = dataset

        keeps = self.model_dir is not None
        estimator = make_estimator(params, folder, seed=str(seed), num_threads=str(self.num_threads),
                                   report="true" if keeps else "false", save_summary_steps="100" if keeps else "0")
        lib.bel_estimator_param(estimator, b"model", None)  # else a warning says that no one reads it
        spec = lib.bel_train_spec(size=ctypes.sizeof(lib.bel_train_spec), input_fn=lib.bel_input_fn(make_input))
        result = lib.bel_result(size=ctypes.sizeof(lib.bel_result))

        def train() -> None:
            lib.bel_train(estimator, ctypes.byref(spec), ctypes.byref(result))

        try:
            _run_training(train)
        finally:
            lib.bel_estimator_destroy(estimator)
        if result.interrupted:
            raise CancelledError(f"the training was stopped at step {result.global_step}")

    def _params(self, columns: Columns, defaults: Any, schedule: str) -> Dict[str, str]:
        """Parameters of the model: those of the constructor, else the table's."""
        chosen = {"hidden_units": _units_of(self.hidden_units), "dropout": self.dropout, "l2": self.l2,
                  "learning_rate": self.learning_rate}
        params = {"model": "wide_deep", "wide_numbers": "true", "optimizer": str(self.optimizer), "schedule": schedule}
        for name, value in chosen.items():
            default = getattr(defaults, name)
            params[name] = default.decode() if value is None and isinstance(default, bytes) else str(
                default if value is None else value)
        params["weight_mean"] = repr(float(lib.bel_columns_weight_mean(columns.handle)))
        return {**params, **self._label_params(columns)}

    # --- Prediction

    def _table(self, X: Any) -> Table:
        """X of a prediction, checked against the training's."""
        if not hasattr(self, "_model"):
            raise _error_of_sklearn("NotFittedError", FailedPreconditionError)(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first.")
        if is_frame(X) and self._framed:
            return self._cells.table(X)
        if self._framed:
            warnings.warn(f"X does not have valid feature names, but {type(self).__name__} was fitted with feature "
                          "names: columns are taken by position", stacklevel=4)
        matrix = matrix_of(X)
        if matrix.shape[1] != self.n_features_in_:
            raise InvalidArgumentError(f"X has {matrix.shape[1]} features, but {type(self).__name__} is expecting "
                                       f"{self.n_features_in_} features as input")
        return table_of(matrix, self._columns)

    def export(self, folder: str) -> None:
        """Writes the model for other programs into a new folder, as `belfry export` does: ONNX, safetensors and
        signature.json (docs/formats/export.md). `belfry.Predictor(folder)` loads it."""
        with tempfile.TemporaryDirectory(prefix="belfry-") as model_dir:
            _write_files(model_dir, self._model.files)
            checkpoint = Checkpoint(model_dir)
            estimator = checkpoint.estimator()
            try:
                lib.bel_export(estimator, os.fsencode(checkpoint.folder), None, os.fsencode(folder))
            finally:
                lib.bel_estimator_destroy(estimator)

    # --- What the label decides

    def _take_labels(self, y: Any, rows: int, classes: Any) -> Any:
        """y [rows] as the numbers that the model learns: int64 classes, or float64."""
        raise NotImplementedError

    def _add_labels(self, table: Table, name: str, labels: Any) -> None:
        raise NotImplementedError

    def _class_texts(self) -> Sequence[str]:
        return ()

    def _label_params(self, columns: Columns) -> Dict[str, str]:
        raise NotImplementedError


class Classifier(_Learner):
    """Learns the classes of a table's rows, with the interface of scikit-learn's classifiers.

        model = belfry.Classifier().fit(X, y)           # arrays, a pandas frame, a dict of columns
        names = model.predict(X_new)                    # [n], values of y
        probabilities = model.predict_proba(X_new)      # [n, classes] float32, in the order of model.classes_

    X: an array [n, features] of numbers, in which NaN is a missing value, or a frame. Belfry looks at each column of a
    frame, as at those of a file (docs/columns.md): texts and booleans are categories, long texts are words, dates are
    dates, columns that count or name the rows are left out. y [n]: integers, texts, booleans or integral floats.
    sample_weight [n]: from 0 on; a row of weight 0 is left out.

    Parameters, all by name. None is the default that `belfry train_and_evaluate` takes for a table of this size.

    hidden_units: sizes of the hidden layers, [256, 128] or "256,128"; [] for none. dropout: share of their outputs
    left out in training. l2: penalty. optimizer: "adam", "sgd", … (docs/command.md). learning_rate: its rate.
    schedule: "cosine" over the whole training, or "constant". train_batch_size: rows of a step. num_epochs: passes.
    random_state: the seed, an int (None: 1), or numpy's RandomState, which gives one. num_threads: 0: all cores.
    model_dir: folder for checkpoints, curves and report.html; a fit that was interrupted there continues. None: a
    temporary one, which is removed. verbose: show the training's log; warnings are shown anyway.

    The same rows, in any order, give the same bits, with any number of threads. There is no early stopping. Ctrl-C
    ends a fit with KeyboardInterrupt. A process runs one training at a time: fits on other threads wait. A pickle has
    the checkpoint. `partial_fit` learns one batch after another; see there.

    After fit: classes_ [classes], n_features_in_, and feature_names_in_ for a frame whose names are texts.

    Errors: InvalidArgumentError (a ValueError), which names argument, expected and got. FailedPreconditionError:
    model_dir has another training. AbortedError: the loss is not finite.
    """

    _label_kind = lib.BEL_LABEL_CLASSES
    _estimator_type = "classifier"

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "Classifier":
        """Learns the rows in one pass of steps of train_batch_size, with a constant rate.

        classes: all classes that will come; needed in the first call without a fit before, and only read there. That
        call also describes the columns, so its rows should be typical: numbers are scaled by theirs. Later calls train
        on with the same description, in the order of the rows (belfry/learner.h). After a fit, partial_fit continues
        it. Weights are possible if the first call was a partial_fit, or the fit had some.
        """
        if classes is None and not hasattr(self, "_model"):
            raise InvalidArgumentError("classes: expected all classes in the first call of partial_fit, got None")
        self._partial_fit(X, y, classes, sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        """The most probable class of each row [n], as in y."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def predict_proba(self, X: Any) -> Any:
        """Probabilities [n, classes] float32, in the order of classes_."""
        table = self._table(X)
        return self._model.predict(table)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of rows that are predicted right, by their weights."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    def _take_labels(self, y: Any, rows: int, classes: Any) -> Any:
        y = _column_of(y, rows)
        if y.dtype.kind == "f" and np.any(y != np.floor(y)):
            raise InvalidArgumentError("Unknown label type: continuous; y: expected classes, got numbers with "
                                       "fractions; hint: belfry.Regressor")
        found, labels = np.unique(y, return_inverse=True)
        if classes is not None:
            known = np.unique(np.asarray(classes))
            if not np.all(np.isin(found, known)):
                others = ", ".join(str(value) for value in found[~np.isin(found, known)])
                raise InvalidArgumentError(f"y: expected classes of {known}, got {others}")
            found, labels = known, np.searchsorted(known, y)
        if len(found) < 2:
            raise InvalidArgumentError(f"y: expected at least 2 classes, got 1 class: {found[0]}")
        self.classes_ = found
        return labels.astype(np.int64)

    def _add_labels(self, table: Table, name: str, labels: Any) -> None:
        table.add_codes(name, labels, self._class_texts())

    def _class_texts(self) -> Sequence[str]:
        return [str(value) for value in self.classes_]

    def _label_params(self, columns: Columns) -> Dict[str, str]:
        return {"class_count": str(len(columns.classes))}


class Regressor(_Learner):
    """Learns a number of a table's rows, with the interface of scikit-learn's regressors.

        model = belfry.Regressor().fit(X, y)
        numbers = model.predict(X_new)                  # [n] float64

    y [n]: finite numbers in any unit: the model learns them with mean 0 and deviation 1. All else is as with
    Classifier.
    """

    _label_kind = lib.BEL_LABEL_NUMBER
    _estimator_type = "regressor"

    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> "Regressor":
        """As Classifier.partial_fit: the first call also gives the labels' mean and deviation."""
        self._partial_fit(X, y, None, sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        """A number for each row, [n] float64."""
        table = self._table(X)
        return self._model.predict(table).reshape(-1).astype(np.float64)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """R²: 1 - (squared errors) / (squared differences from the mean), by weights."""
        y = np.asarray(y, np.float64).reshape(-1)
        mean = np.average(y, weights=sample_weight)
        wrong = np.average((y - self.predict(X))**2, weights=sample_weight)
        return float(1 - wrong / np.average((y - mean)**2, weights=sample_weight))

    def _take_labels(self, y: Any, rows: int, classes: Any) -> Any:
        y = _column_of(y, rows)
        if y.dtype.kind not in "biuf":
            try:
                y = y.astype(np.float64)
            except (TypeError, ValueError):
                raise InvalidArgumentError(f"y: expected numbers, got {y.dtype}") from None
        if len(y) < 2:
            raise InvalidArgumentError("y: expected at least 2 rows, got n_samples=1")
        return y.astype(np.float64)

    def _add_labels(self, table: Table, name: str, labels: Any) -> None:
        table.add_numbers(name, labels)

    def _label_params(self, columns: Columns) -> Dict[str, str]:
        return {"objective": "regression",
                "label_mean": repr(float(lib.bel_columns_label_mean(columns.handle))),
                "label_deviation": repr(float(lib.bel_columns_label_deviation(columns.handle)))}


# --- Arguments -------------------------------------------------------------------------------------------------------

def _column_of(y: Any, rows: int) -> Any:
    """y as an array [rows] without missing and infinite values."""
    if y is None:
        raise InvalidArgumentError("y: Classifier and Regressor requires y to be passed, but the target y is None")
    y = np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(_error_of_sklearn("DataConversionWarning", UserWarning)(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel()."), stacklevel=4)
        y = y.ravel()
    if y.ndim != 1:
        raise InvalidArgumentError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
    if len(y) != rows:
        raise InvalidArgumentError(f"y: expected {rows} labels, one for each row of X, got {len(y)}")
    if y.dtype.kind == "c":
        raise InvalidArgumentError("y: Complex data not supported: expected real numbers")
    if y.dtype.kind == "O" and any(value is None or value != value for value in y):
        raise InvalidArgumentError("Input y contains NaN: expected a label in each row")
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        what = "NaN" if np.any(np.isnan(y)) else "infinity"
        raise InvalidArgumentError(f"Input y contains {what}: expected a label in each row")
    return y


def _weights_of(sample_weight: Any, rows: int) -> Any:
    """Weights [rows] float64, or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(sample_weight, np.float64)
    if weights.shape != (rows,):
        raise InvalidArgumentError(f"sample_weight: expected shape ({rows},), got {weights.shape}")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or not np.any(weights > 0):
        raise InvalidArgumentError("sample_weight: expected finite numbers of 0 or more, some above it, got "
                                   f"{weights.min()} to {weights.max()}")
    return weights


def _units_of(units: Any) -> Optional[str]:
    if units is None or isinstance(units, str):
        return units
    return ",".join(str(int(unit)) for unit in np.atleast_1d(units))


def _count(name: str, value: Optional[int], default: int) -> int:
    if value is None:
        return int(default)
    if int(value) != value or value < 1:
        raise InvalidArgumentError(f"{name}: expected an integer from 1 on, got {value}")
    return int(value)


def _seed_of(random_state: Any) -> int:
    if random_state is None:
        return 1
    if hasattr(random_state, "randint"):
        return int(random_state.randint(2**31))
    if int(random_state) != random_state or random_state < 0:
        raise InvalidArgumentError(f"random_state: expected None, an integer from 0 on or a RandomState, got "
                                   f"{random_state}")
    return int(random_state)


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _error_of_sklearn(name: str, otherwise: Any) -> Any:
    """A class of sklearn.exceptions, for programs that have imported it."""
    return getattr(sys.modules.get("sklearn.exceptions"), name, otherwise)


# --- A training in this process --------------------------------------------------------------------------------------

@contextlib.contextmanager
def _alone(level: int) -> Iterator[None]:
    """Waits until no other training runs in this process, and shows its log up to a level."""
    with _training:
        before = lib.bel_log_set_level(level)
        try:
            yield
        finally:
            lib.bel_log_set_level(before)


def _run_training(train: Callable[[], None]) -> None:
    """Runs a training on another thread, so that Ctrl-C reaches this one. It ends the training, and is raised when
    the training has ended: not before, as the training uses what the caller then frees."""
    begin, ended = threading.Event(), threading.Event()
    cancelled: List[bool] = []
    errors: List[BaseException] = []

    def run() -> None:
        begin.wait()
        try:
            if not cancelled:
                train()
        except BaseException as error:
            errors.append(error)
        finally:
            ended.set()

    try:
        threading.Thread(target=run, name="belfry training", daemon=True).start()
        begin.set()
        while not ended.wait(0.1):  # a signal just before a wait does not interrupt it
            pass
    except BaseException:
        if not begin.is_set():  # perhaps there is no thread yet; if there is, it ends without training
            cancelled.append(True)
            begin.set()
            raise
        begin.set()  # it may have been interrupted
        if not ended.is_set():  # else the request would end the next training
            lib.bel_request_stop()
        _wait_for(ended)
        raise
    if errors:
        raise errors[0]


def _wait_for(event: threading.Event) -> None:
    """Waits through any further Ctrl-C."""
    while not event.is_set():
        try:
            event.wait()
        except KeyboardInterrupt:
            continue
