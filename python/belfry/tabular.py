"""Classifier and Regressor: models of tables with the interface of scikit-learn, which they do not import.

A table is an array of numbers, a pandas frame or a dict of columns. The model is "wide_deep" with the defaults that
`belfry train_and_evaluate` takes for a table (docs/columns.md).
"""

import ctypes
import inspect
import os
import sys
import tempfile
import warnings
from typing import Any, Dict, List, Optional, Sequence, TypeVar, Union

import numpy as np

from . import structs
from .calls import training
from .checkpoint import Checkpoint
from .config import RunConfig
from .dataset import Dataset
from .errors import CancelledError, FailedPreconditionError, InvalidArgumentError, UnimplementedError, expect
from .estimator import Estimator, EvalSpec, TrainSpec, run_training
from .hooks import Hook, HookContext
from .library import lib
from .predictor import Predictor
from .results import Result, StepReport
from .tables import Cells, Columns, Table, is_frame, is_missing, matrix_of, names_of, table_of, without_mask
from .tensors import tensors_of

_Self = TypeVar("_Self", bound="_Learner")

_BLOCK = 32  # rows of a run, as in `belfry predict`: a row's bits do not depend on the rows beside it


class _Model:
    """A trained model: the files of its newest checkpoint, and what runs it. It pickles as the files."""

    _learner: Any = None

    def __init__(self, checkpoint: Checkpoint, threads: int) -> None:
        self._threads, self._learner = threads or os.cpu_count() or 1, None
        self._load(checkpoint)

    def _load(self, checkpoint: Checkpoint) -> None:
        self.files = {}
        for name in sorted(os.listdir(checkpoint.folder)):
            with open(os.path.join(checkpoint.folder, name), "rb") as file:
                self.files[name] = file.read()
        assert checkpoint.columns is not None
        self._name, self.columns = os.path.basename(checkpoint.folder), checkpoint.columns
        self._batch_size = int(checkpoint.settings["train_batch_size"])
        self._predictor = Predictor(checkpoint.folder, threads=self._threads)

    def write(self, model_dir: str) -> Checkpoint:
        """Writes the files into a folder."""
        os.mkdir(os.path.join(model_dir, self._name))
        for name, content in self.files.items():
            with open(os.path.join(model_dir, self._name, name), "wb") as file:
                file.write(content)
        return Checkpoint(model_dir)

    def __getstate__(self) -> Dict[str, Any]:
        return {"files": self.files, "_name": self._name, "_threads": self._threads}

    def __setstate__(self, state: Dict[str, Any]) -> None:
        vars(self).update(state)
        with _temporary_folder() as folder:
            self.__init__(self.write(folder), self._threads)  # type: ignore[misc]

    def __del__(self) -> None:
        lib.bel_learner_destroy(self._learner)

    def predict(self, table: Table) -> Any:
        """The model's output for all rows, [n, classes] or [n]."""
        arrays, results = self._predictor.features_of(table), []
        blocks = [np.zeros((_BLOCK,) + array.shape[1:], array.dtype) for array in arrays]
        for first in range(0, table.row_count, _BLOCK):
            count = min(_BLOCK, table.row_count - first)
            for array, block in zip(arrays, blocks):
                block[:count] = array[first:first + count]
            results.append(self._predictor(*blocks)[:count])
        return np.concatenate(results)

    def learn(self, table: Table, labels: Any, weights: Any, learning_rate: float) -> None:
        """Trains on all rows once, in their order, with a constant rate. The steps are those of a learner
        (belfry/learner.h) that continues the training."""
        with _temporary_folder() as folder:
            if not self._learner:
                self._load_learner(folder, learning_rate)
            names = [lib.bel_learner_input_port(self._learner, place).name.decode()
                     for place in range(lib.bel_learner_input_count(self._learner))]
            expect(weights is None or "weight" in names, "sample_weight: expected None, as the training began without "
                   "weights")
            values = self.columns.features(table)
            values["weight"] = np.ones(table.row_count, np.float32) if weights is None else weights.astype(np.float32)
            for first in range(0, table.row_count, self._batch_size):
                rows = slice(first, first + self._batch_size)
                lib.bel_learner_step(self._learner, tensors_of([values[name][rows] for name in names], "X"),
                                     tensors_of([labels[rows]], "y"), None)
            lib.bel_learner_save(self._learner, os.fsencode(os.path.join(folder, "saved")), None)
            self._load(Checkpoint(os.path.join(folder, "saved")))

    def _load_learner(self, folder: str, learning_rate: float) -> None:
        export = os.path.join(folder, "training")
        with training("error"):  # a warning says that the schedule has ended; the learner has a rate
            self.write(folder).estimator().export(export, training=True)
        options = {"threads": self._threads, "keep_checkpoint_max": 1, "learning_rate": learning_rate}
        self._learner = lib.make("bel_learner_load", os.fsencode(export),
                                 ctypes.byref(structs.make("bel_learner_options", options)))


def _temporary_folder() -> "tempfile.TemporaryDirectory[str]":
    return tempfile.TemporaryDirectory(prefix="belfry-")


def _dataset(table: Table, columns: Columns) -> Dataset:
    """The rows of a table as records with the features of its columns."""
    struct = table.struct()
    return Dataset(lambda _call: lib.bel_dataset_from_memory_table(ctypes.byref(struct), columns.handle, False))


class _Curve(Hook):
    """The numbers of a fit, once a pass."""

    def __init__(self, every_steps: int, score: str) -> None:
        self.every_steps, self._score = every_steps, score
        self.losses: List[float] = []
        self.scores: List[float] = []

    def after_step(self, context: HookContext, report: StepReport) -> None:
        self.losses.append(report.loss)

    def after_evaluation(self, context: HookContext, name: str, result: Result) -> None:
        self.scores.append(result[self._score])


class _Learner:
    """What Classifier and Regressor have in common; their comments say what a user must know."""

    _label_kind, _score = "none", ""  # bel_label_kind, and the metric of evaluations
    _estimator_type = ""
    _model: _Model  # after the first training, as are the next three
    _cells: Cells
    _framed: bool
    _rate: float

    def __init__(self, *, hidden_units: Union[None, str, Sequence[int]] = None, dropout: Optional[float] = None,
                 l2: Optional[float] = None, optimizer: str = "adam", learning_rate: Optional[float] = None,
                 schedule: str = "cosine", train_batch_size: Optional[int] = None, num_epochs: Optional[int] = None,
                 early_stopping: bool = False, validation_fraction: float = 0.1, n_iter_no_change: int = 10,
                 tol: float = 1e-4, random_state: Any = None, num_threads: int = 0, model_dir: Optional[str] = None,
                 verbose: bool = False) -> None:
        self.hidden_units, self.dropout, self.l2 = hidden_units, dropout, l2
        self.optimizer, self.learning_rate, self.schedule = optimizer, learning_rate, schedule
        self.train_batch_size, self.num_epochs, self.random_state = train_batch_size, num_epochs, random_state
        self.early_stopping, self.validation_fraction = early_stopping, validation_fraction
        self.n_iter_no_change, self.tol = n_iter_no_change, tol
        self.num_threads, self.model_dir, self.verbose = num_threads, model_dir, verbose

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
                raise structs.refuse(name, self._names(), type(self).__name__)
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
        held = 0
        if self.early_stopping:
            rows, share = table.struct().row_count, self.validation_fraction
            held = max(1, round(rows * share)) if 0 < share < 1 else 0
            expect(0 < held < rows, f"validation_fraction: expected a share of the {rows} rows, between 0 and 1 and "
                   f"some for the training, got {share}")
            expect(self.tol >= 0, f"tol: expected a number from 0 on, got {self.tol}")
        self._train(table, labels, weights, self.schedule, self.num_epochs, held)
        return self

    def _partial_fit(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> None:
        expect(not self.early_stopping, "partial_fit: expected early_stopping=False, as it makes one pass, got True")
        begins = not hasattr(self, "_model")
        table = self._take_table(X) if begins else self._table(X)
        labels = self._take_labels(y, table.row_count, classes if begins else getattr(self, "classes_", None))
        weights = _weights_of(sample_weight, table.row_count)
        if begins:
            weights = np.ones(table.row_count) if weights is None else weights  # later calls may have some
            self._train(table, labels, weights, "constant", 1, 0)
        else:
            self._model.learn(table, labels, weights, self._rate)

    def _take_table(self, X: Any) -> Table:
        """The table to train on. Sets what says how X must look from now on."""
        self._framed = is_frame(X)
        X = X if self._framed else matrix_of(X)
        table = table_of(X)
        self._numbers = None if self._framed or X.dtype.kind in "OU" else ["x*"]  # guess, or all are numbers
        self.n_features_in_ = len(table.names)
        self._columns = list(table.names)
        vars(self).pop("feature_names_in_", None)
        if self._framed and all(isinstance(name, str) for name in X):
            self.feature_names_in_ = np.array(names_of(X), object)
        return table

    def _train(self, table: Table, labels: Any, weights: Any, schedule: str, num_epochs: Optional[int],
               held: int) -> None:
        """held: rows to evaluate on after each pass, instead of training on them."""
        label, weight = _free_name("y", table.names), None if weights is None else _free_name("weight", table.names)
        classes = [str(name) for name in getattr(self, "classes_", ())]
        if classes:
            table.add_codes(label, labels, classes)
        else:
            table.add_numbers(label, labels)
        if weight is not None:
            table.add_numbers(weight, weights)
        table.sort_by_cells()
        others = table.split(held) if held > 0 else None
        columns = Columns.infer(table, label=label, label_kind=self._label_kind, weight=weight, numbers=self._numbers,
                                classes=classes, num_threads=self.num_threads)
        with _temporary_folder() as folder:
            folder = folder if self.model_dir is None else os.fspath(self.model_dir)
            self._run(table, others, columns, folder, schedule, num_epochs)
            self._model = _Model(Checkpoint(folder, best=held > 0), self.num_threads)
        self._cells = Cells(self._columns, booleans=columns.booleans)

    def _run(self, table: Table, held: Optional[Table], columns: Columns, folder: str, schedule: str,
             num_epochs: Optional[int]) -> None:
        defaults, row_count = lib.bel_columns_defaults(columns.handle), table.struct().row_count
        epochs = _count("num_epochs", num_epochs, defaults.epochs)
        batch_size = _count("train_batch_size", self.train_batch_size, defaults.batch_size)
        seed, keeps, passes = _seed_of(self.random_state), self.model_dir is not None, max(1, row_count // batch_size)
        params = self._params(columns, defaults, schedule)
        if schedule != "constant":
            params["decay_steps"] = -(-epochs * row_count // batch_size)
        self._rate = float(params["learning_rate"])
        data = _dataset(table, columns).shuffle(seed=seed).repeat(epochs).batch(batch_size)
        curve, evals = _Curve(passes, self._score), []
        ends: Dict[str, Any] = {}
        if held is not None:
            rated = _dataset(held, columns).batch(batch_size)
            evals = [EvalSpec(lambda: rated, every_steps=passes)]
            ends = {"keep_best": {"metric": self._score}, "early_stopping": {
                "patience": _count("n_iter_no_change", self.n_iter_no_change, 10), "metric": self._score,
                "min_delta": self.tol}}
        config = RunConfig(seed=seed, num_threads=self.num_threads, report=keeps, save_summary_steps=100 * keeps)
        with Estimator("wide_deep", folder, config, params) as estimator:
            result = run_training(estimator, TrainSpec(lambda: data, hooks=[curve], **ends), evals,
                                  "info" if self.verbose else "warn")
        assert result is not None  # this process represents the training
        if result.interrupted:
            raise CancelledError(f"the training was stopped at step {result.global_step}")
        self.loss_curve_, self.n_iter_ = curve.losses, round(result.global_step * batch_size / row_count)
        for name in ("validation_scores_", "best_validation_score_"):
            vars(self).pop(name, None)
        if held is not None:
            self.validation_scores_, self.best_validation_score_ = curve.scores, max(curve.scores)

    def _params(self, columns: Columns, defaults: Any, schedule: str) -> Dict[str, Any]:
        """Parameters of the model: those of the constructor, else the table's."""
        params = {"wide_numbers": True, "optimizer": self.optimizer, "schedule": schedule,
                  "weight_mean": lib.bel_columns_weight_mean(columns.handle)}
        for name in ("hidden_units", "dropout", "l2", "learning_rate"):
            given, default = getattr(self, name), getattr(defaults, name)
            params[name] = given if given is not None else default.decode() if isinstance(default, bytes) else default
        if self._label_kind == "classes":
            return {**params, "class_count": len(columns.classes)}
        return {**params, "objective": "regression", "label_mean": lib.bel_columns_label_mean(columns.handle),
                "label_deviation": lib.bel_columns_label_deviation(columns.handle)}

    # --- Prediction

    def _table(self, X: Any) -> Table:
        """X of a prediction, checked against the training's."""
        columns = self._fitted().columns
        if is_frame(X) and self._framed:
            return self._cells.table(X)
        if self._framed:
            warnings.warn(f"X does not have valid feature names, but {type(self).__name__} was fitted with feature "
                          "names: columns are taken by position", stacklevel=4)
        matrix = matrix_of(X)
        expect(matrix.shape[1] == self.n_features_in_, f"X has {matrix.shape[1]} features, but {type(self).__name__} "
               f"is expecting {self.n_features_in_} features as input")
        return table_of(matrix, self._columns, columns.booleans)

    def _fitted(self) -> _Model:
        if not hasattr(self, "_model"):
            raise _error_of_sklearn("NotFittedError", FailedPreconditionError)(
                f"This {type(self).__name__} instance is not fitted yet. Call 'fit' first.")
        return self._model

    def export(self, folder: str) -> None:
        """Writes the model for other programs into a new folder, as `belfry export` does: ONNX, safetensors and
        signature.json (docs/formats/export.md). `belfry.Predictor(folder)` loads it.

        UnimplementedError: columns of hashed texts, lists or words, named: no export makes features of their cells.
        """
        hashed = self._fitted().columns.hashed
        if hashed:
            folder = "fit with model_dir=…, as no checkpoint is kept without it, and load that folder with "
            way = folder + "belfry.Predictor" if self.model_dir is None else (
                f"load the checkpoint, belfry.Predictor({os.fspath(self.model_dir)!r})")
            raise UnimplementedError(f"export: columns {', '.join(hashed)} need Belfry's hash, which an export lacks; "
                                     f"hint: {way}, or pickle this object")
        with _temporary_folder() as model_dir:
            self._model.write(model_dir).estimator().export(folder)

    # --- What the label decides

    def _take_labels(self, y: Any, rows: int, classes: Any) -> Any:
        """y [rows] as the numbers that the model learns: int64 classes, or float64."""
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
    schedule: "cosine" over the whole training, or "constant". train_batch_size: rows of a step. num_epochs: passes;
    large tables have few: raise it if accuracy matters more than time. early_stopping: hold out validation_fraction of
    the rows, evaluate on them after each pass (accuracy; R² of a Regressor), stop when n_iter_no_change passes were not
    better by tol, and keep the best pass. random_state: the seed, an int (None: 1), or numpy's RandomState, which gives
    one. num_threads: 0: all cores. model_dir: folder for
    checkpoints, curves and report.html, where a fit that was interrupted continues. None: a temporary one. verbose:
    show the training's log up to belfry.set_log_level, not only warnings.

    The same rows, in any order, give the same bits, with any number of threads. A process runs one training at a time:
    fits on other threads wait. Ctrl-C is as for train_and_evaluate.

    After fit: classes_ [classes], n_features_in_, and feature_names_in_ for a frame whose names are texts. n_iter_:
    passes; loss_curve_: after each pass of this call the loss of its last step; with early_stopping validation_scores_
    and best_validation_score_.

    Errors: InvalidArgumentError (a ValueError), which names argument, expected and got. FailedPreconditionError:
    model_dir has another training. AbortedError: the loss is not finite.
    """

    _label_kind, _score = "classes", "accuracy"
    _estimator_type = "classifier"

    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> "Classifier":
        """Learns the rows in one pass of steps of train_batch_size, with a constant rate.

        classes: all classes that will come; needed in the first call without a fit before, and only read there. That
        call also describes the columns, so its rows should be typical: numbers are scaled by theirs. Later calls train
        on with the same description, in the order of the rows (belfry/learner.h). After a fit, partial_fit continues
        it. Weights are possible if the first call was a partial_fit, or the fit had some.
        """
        expect(classes is not None or hasattr(self, "_model"), "classes: expected all classes in the first call of "
               "partial_fit, got None")
        self._partial_fit(X, y, classes, sample_weight)
        return self

    def predict(self, X: Any) -> Any:
        """The most probable class of each row [n], as in y."""
        probabilities = self.predict_proba(X)
        return self.classes_[np.argmax(probabilities, axis=1)]

    def predict_proba(self, X: Any) -> Any:
        """Probabilities [n, classes] float32, in the order of classes_."""
        table = self._table(X)  # it also refuses a model that is not fitted
        return self._model.predict(table)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Accuracy: the share of rows that are predicted right, by their weights."""
        return float(np.average(self.predict(X) == np.asarray(y), weights=sample_weight))

    def _take_labels(self, y: Any, rows: int, classes: Any) -> Any:
        y = _column_of(y, rows)
        expect(y.dtype.kind != "f" or not np.any(y != np.floor(y)), "Unknown label type: continuous; y: expected "
               "classes, got numbers with fractions; hint: belfry.Regressor")
        found, labels = np.unique(y, return_inverse=True)
        if classes is not None:
            known = np.unique(np.asarray(classes))
            if not np.all(np.isin(found, known)):
                others = ", ".join(str(value) for value in found[~np.isin(found, known)])
                raise InvalidArgumentError(f"y: expected classes of {known}, got {others}")
            found, labels = known, np.searchsorted(known, y)
        expect(len(found) >= 2, f"y: expected at least 2 classes, got 1 class: {found[0]}")
        self.classes_ = found
        return labels.astype(np.int64)


class Regressor(_Learner):
    """Learns a number of a table's rows, with the interface of scikit-learn's regressors.

        model = belfry.Regressor().fit(X, y)
        numbers = model.predict(X_new)                  # [n] float64

    y [n]: finite numbers in any unit: the model learns them with mean 0 and deviation 1. All else is as with
    Classifier.
    """

    _label_kind, _score = "number", "r2"
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
        expect(len(y) >= 2, "y: expected at least 2 rows, got n_samples=1")
        try:
            return y.astype(np.float64)
        except (TypeError, ValueError):
            raise InvalidArgumentError(f"y: expected numbers, got {y.dtype}") from None


# --- Arguments -------------------------------------------------------------------------------------------------------

def _column_of(y: Any, rows: int) -> Any:
    """y as an array [rows] without missing and infinite values."""
    expect(y is not None, "y: Classifier and Regressor requires y to be passed, but the target y is None")
    y = np.asarray(without_mask(y))
    if y.ndim == 2 and y.shape[1] == 1:
        warnings.warn(_error_of_sklearn("DataConversionWarning", UserWarning)(
            "A column-vector y was passed when a 1d array was expected. Please change the shape of y to (n_samples,), "
            "for example using ravel()."), stacklevel=4)
        y = y.ravel()
    expect(y.ndim == 1, f"y should be a 1d array, got an array of shape {y.shape} instead.")
    expect(len(y) == rows, f"y: expected {rows} labels, one for each row of X, got {len(y)}")
    expect(y.dtype.kind != "c", "y: Complex data not supported: expected real numbers")
    expect(y.dtype.kind != "O" or not any(map(is_missing, y)), "Input y contains NaN: expected a label in each row")
    if y.dtype.kind == "f" and not np.all(np.isfinite(y)):
        what = "NaN" if np.any(np.isnan(y)) else "infinity"
        raise InvalidArgumentError(f"Input y contains {what}: expected a label in each row")
    return y


def _weights_of(sample_weight: Any, rows: int) -> Any:
    """Weights [rows] float64, or None."""
    if sample_weight is None:
        return None
    weights = np.asarray(without_mask(sample_weight), np.float64)
    expect(weights.shape == (rows,), f"sample_weight: expected shape ({rows},), got {weights.shape}")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0) or not np.any(weights > 0):
        raise InvalidArgumentError("sample_weight: expected finite numbers of 0 or more, some above it, got "
                                   f"{weights.min()} to {weights.max()}")
    return weights


def _count(name: str, value: Optional[int], default: int) -> int:
    if value is None:
        return int(default)
    expect(int(value) == value and value >= 1, f"{name}: expected an integer from 1 on, got {value}")
    return int(value)


def _seed_of(random_state: Any) -> int:
    if random_state is None:
        return 1
    if hasattr(random_state, "randint"):
        return int(random_state.randint(2**31))
    expect(int(random_state) == random_state and random_state >= 0, "random_state: expected None, an integer from 0 "
           f"on or a RandomState, got {random_state}")
    return int(random_state)


def _free_name(name: str, taken: Sequence[str]) -> str:
    while name in taken:
        name += "_"
    return name


def _error_of_sklearn(name: str, otherwise: Any) -> Any:
    """A class of sklearn.exceptions, for programs that have imported it."""
    return getattr(sys.modules.get("sklearn.exceptions"), name, otherwise)
