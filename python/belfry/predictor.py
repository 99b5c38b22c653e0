"""A trained model inside the program: an export of Belfry, an ONNX file or a checkpoint (belfry/predictor.h)."""

import ctypes
import json
import os
import threading
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple

import numpy as np

from . import structs
from .calls import Owner
from .checkpoint import Checkpoint
from .errors import InvalidArgumentError, expect
from .estimator import Estimator
from .library import lib
from .tables import Cells, Columns, Table, is_frame
from .structs import Path
from .tensors import array_of, numpy_dtype, shape_of, tensor_of, view_of


class Port(NamedTuple):
    """An input or output of a model. `shape`: None for an open dimension; the first one is usually the batch."""
    name: str
    dtype: Any
    shape: Sequence[Optional[int]]


class Predictor(Owner):
    """A model that is ready to run.

        model = belfry.Predictor("export/best/1200")
        probabilities = model(images)                      # one input, one output
        outputs = model.run({"x": images, "mask": mask})   # by name

    A model of a table takes its cells: a pandas frame, or a dict of columns, with texts, dates and missing values, its
    columns in any order. Cells are read as those of a file (docs/columns.md):

        model = belfry.Predictor("runs/penguins")
        names = model.predict(frame)                       # [n] classes; numbers for a regression
        probabilities = model(frame)                       # [n, classes], in the order of model.classes

    path: the folder of an export (`belfry export`, `--export`), an ONNX file, or a checkpoint (its folder, or a
    model_dir, of which the newest one counts) of a model that comes with Belfry. threads: threads that run it; 0: only
    the calling one. stage_memory: limit for the bytes of weights in memory; 0: no limit. seed: for random operations.
    Files of an export stay mapped as long as the object lives. Threads that share it take turns; the GIL is free while
    it computes.

    Errors: NotFoundError, DataLossError (a malformed file), UnimplementedError (an operator that Belfry lacks, named),
    FailedPreconditionError (also: a checkpoint of another model), InvalidArgumentError.
    """

    _free = "bel_predictor_destroy"

    def __init__(self, path: Path, *, threads: int = 0, stage_memory: int = 0, seed: int = 0) -> None:
        self._estimator: Optional[Estimator] = None
        self._turn = threading.Lock()
        self._columns: Optional[Columns] = None  # of a table
        self._threshold = 0.5  # from which probability on the second of two classes, or a label, is predicted
        self._exported = False  # whether it is an export of a table: an input for each column
        self._scales: Sequence[float] = ()  # of a checkpoint: factors of its inputs
        options = {"threads": threads, "stage_memory": stage_memory, "seed": seed}
        struct = ctypes.byref(structs.make("bel_predictor_options", options, "Predictor"))
        if os.path.isdir(path) and not os.path.exists(os.path.join(path, "model.onnx")):
            self._load_checkpoint(path, threads, stage_memory)
        else:
            self._handle = lib.make("bel_predictor_load", os.fsencode(path), struct)
            self._step = int(lib.bel_predictor_step(self._handle))
            self._read_signature(os.path.join(path, "signature.json"))
        columns: Optional[Columns] = self._columns
        self._cells = None if columns is None else Cells(columns.feature_names, columns.labels, columns.booleans)
        self.inputs, self.outputs = self._ports("input"), self._ports("output")
        self._bound: List[Any] = [None] * len(self.inputs)  # what the library reads
        self._tensors: List[Any] = [None] * len(self.inputs)
        self._views: List[Any] = [None] * len(self.outputs)

    def _load_checkpoint(self, path: Path, threads: int, stage_memory: int) -> None:
        expect(threads >= 0, f"threads: expected 0 or more, got {threads}")
        checkpoint = Checkpoint(os.fspath(path))
        self._estimator = checkpoint.estimator(num_threads=max(threads, 1), stage_memory=stage_memory)
        self._handle = checkpoint.predictor(self._estimator)
        self._columns, self._step = checkpoint.columns, checkpoint.step
        self._threshold = float(checkpoint.params.get("threshold", 0.5))
        self._scales = [feature.get("scale", 1) for feature in checkpoint.features()]

    def _read_signature(self, name: str) -> None:
        """What signature.json of an export says of a table (docs/formats/export.md)."""
        if not os.path.isfile(name):
            return
        with open(name, encoding="utf-8") as file:
            signature = json.load(file)
        if "table" in signature:
            self._columns = Columns.parse(signature["table"], name)
            self._threshold = float(signature.get("threshold", 0.5))
            self._exported = True

    def _ports(self, kind: str) -> Tuple[Port, ...]:
        """The inputs or the outputs."""
        count, port = getattr(lib, f"bel_predictor_{kind}_count"), getattr(lib, f"bel_predictor_{kind}_port")
        found = [port(self._handle, index) for index in range(count(self._handle))]
        return tuple(Port(item.name.decode(), numpy_dtype(item.dtype), shape_of(item.shape)) for item in found)

    @property
    def step(self) -> int:
        """The step of the model's checkpoint; -1: the file does not record it."""
        self.handle
        return self._step

    @property
    def classes(self) -> Tuple[str, ...]:
        """Names of the classes of a table's label, in the order of the probabilities; () for another model."""
        return () if self._columns is None else self._columns.classes

    def predict(self, table: Any) -> Any:
        """Predictions for the rows of a table, a frame or a dict of columns: names of classes [n]; numbers [n] in the
        label's unit; for several labels [n, labels] bool, in the order of their columns. InvalidArgumentError: the
        model is of no table, or as for a call."""
        columns = self._columns
        if columns is None:
            raise InvalidArgumentError("predict: expected a model of a table, got one of arrays; hint: call the model")
        with self._turn:
            output = self._run(enumerate(self._take_cells(table)))[0]
        if columns.label_kind == "number":
            return output.reshape(-1)
        if columns.label_kind == "several":
            return output > self._threshold
        names = np.array(columns.classes)
        if len(names) == 2:
            return names[(output[:, 1] > self._threshold).astype(int)]
        return names[np.argmax(output, axis=1)]

    def __call__(self, *inputs: Any) -> Any:
        """Runs the model on its inputs in their order.

        inputs: arrays, one for each input, of the port's shape with any size in its open dimensions. An array of the
        port's type in C order is read in place; any other is converted. A model of a table also takes one frame or dict
        of columns. Returns the output as an array that the caller owns, or a tuple of the outputs if there are several.
        """
        if self._cells is not None and len(inputs) == 1 and is_frame(inputs[0]):
            inputs = tuple(self._take_cells(inputs[0]))
        if len(inputs) != len(self.inputs):
            raise InvalidArgumentError(f"expected {self._list(self.inputs)}, got {len(inputs)} inputs")
        with self._turn:
            results = self._run(enumerate(inputs))
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Dict[str, Any]) -> Dict[str, Any]:
        """Runs the model on inputs by name; an array, as for a call, or a pandas frame whose columns are the features
        of an input in their order. For a model of a table: on its cells by column. Returns the outputs by name."""
        if self._cells is not None:
            results = self(inputs)
            results = results if isinstance(results, tuple) else (results,)
            return {port.name: result for port, result in zip(self.outputs, results)}
        places = {port.name: index for index, port in enumerate(self.inputs)}
        expect(set(places) == set(inputs), f"expected {self._list(self.inputs)}, got "
               f"{', '.join(sorted(inputs)) or 'no input'}")
        with self._turn:
            results = self._run((places[name], value) for name, value in inputs.items())
        return {port.name: result for port, result in zip(self.outputs, results)}

    def close(self) -> None:
        """Frees the model; every later call is an error. A second close does nothing."""
        with self._turn:
            self._bound, self._views = [], []
            super().close()
            self._estimator = None  # after the predictor

    @staticmethod
    def _list(ports: Tuple[Port, ...]) -> str:
        words = ", ".join(port.name for port in ports)
        return f"{len(ports)} input{'' if len(ports) == 1 else 's'} ({words})"

    def _take_cells(self, value: Any) -> List[Any]:
        """Arrays for the inputs, made of the cells of a table."""
        assert self._columns is not None and self._cells is not None
        columns, table = self._columns, self._cells.table(value)
        expect(not columns.tokenized, f"column {', '.join(columns.tokenized)}: Python makes no tokens of texts; hint: "
               "pass tokens and their length, or use belfry predict")
        if not self._exported:
            return self.features_of(table)
        expect(not columns.hashed, f"columns {', '.join(columns.hashed)}: an export takes places of ids here, which "
               "only Belfry's hash gives; hint: load the checkpoint instead")
        return [columns.input(table, port.name, (port.shape[1] or 1) if len(port.shape) > 1 else 1)
                .reshape((-1,) + tuple(port.shape[1:])).astype(port.dtype) for port in self.inputs]

    def features_of(self, table: Table) -> List[Any]:
        """Arrays for the inputs of a checkpoint, made of all rows of a table."""
        assert self._columns is not None
        features = self._columns.features(table)
        return [features[port.name] for port in self.inputs]

    def _run(self, inputs: Iterable[Tuple[int, Any]]) -> List[Any]:
        handle = self.handle
        for index, value in inputs:
            self._bind(index, value)
        lib.bel_predictor_run(handle)
        return [self._output(index) for index in range(len(self.outputs))]

    def _bind(self, index: int, value: Any) -> None:
        """Binds an input. An array that is bound already needs no call, one of the same shape only its address."""
        if value is self._bound[index]:
            return
        port = self.inputs[index]
        if type(value) is not np.ndarray:
            value = value.to_numpy() if hasattr(value, "to_numpy") else value
            value = np.asarray(value) if isinstance(value, (list, tuple, int, float)) else array_of(value, port.name)
        scale = self._scales[index] if self._scales else 1
        if scale != 1:
            value = (_converted(value, port._replace(dtype=np.float64)) * scale).astype(port.dtype)
        elif value.dtype != port.dtype:
            value = _converted(value, port)
        if not value.flags.c_contiguous:
            value = np.ascontiguousarray(value)
        bound = self._bound[index]
        if bound is not None and bound.shape == value.shape:
            tensor = self._tensors[index]
            tensor.data = value.__array_interface__["data"][0]
        else:
            tensor = tensor_of(value, f"input {port.name}")
        lib.bel_predictor_bind(self._handle, index, ctypes.byref(tensor))
        self._bound[index], self._tensors[index] = value, tensor

    def _output(self, index: int) -> Any:
        """A copy of an output. Runs of one shape write to one place, of which a view is kept."""
        tensor = lib.bel_predictor_output(self._handle, index)
        kept = self._views[index]
        shape = tuple(tensor.shape.dims[:tensor.shape.rank])
        if kept is None or kept[0] != tensor.data or kept[1].shape != shape:
            kept = self._views[index] = (tensor.data, view_of(tensor))
        return kept[1].copy()


def _converted(value: Any, port: Port) -> Any:
    """`value` with the type of a port. InvalidArgumentError: texts, complex numbers, or a fraction for an integer."""
    if value.dtype.kind not in "biuf":
        hint = "; hint: pass a table as a frame or a dict of columns"
        raise InvalidArgumentError(f"input {port.name}: expected numbers for {port.dtype}, got {value.dtype}"
                                   f"{hint if value.dtype.kind in 'OSU' else ''}")
    if np.dtype(port.dtype).kind in "iu" and value.dtype.kind == "f":
        wrong = value[~(np.isfinite(value) & (value == np.floor(value)) & (np.abs(value) < 2.0**63))]
        if wrong.size > 0:
            raise InvalidArgumentError(f"input {port.name}: expected integers for {port.dtype}, got {wrong.flat[0]}")
    return value.astype(port.dtype)
