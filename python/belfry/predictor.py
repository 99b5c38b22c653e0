"""A trained model inside the program: an export of Belfry, or an ONNX file (belfry/predictor.h)."""

import ctypes
import os
import threading
from typing import Any, Dict, Iterable, List, NamedTuple, Optional, Sequence, Tuple, Union

import numpy as np

from .errors import InvalidArgumentError
from .library import lib
from .tensors import array_of, numpy_dtype, shape_of, tensor_of


class Port(NamedTuple):
    """An input or output of a model. `shape`: None for an open dimension; the first one is usually the batch."""
    name: str
    dtype: Any
    shape: Sequence[Optional[int]]


class Predictor:
    """A model that is ready to run.

        model = belfry.Predictor("export/best/1200")
        probabilities = model(images)                      # one input, one output
        outputs = model.run({"x": images, "mask": mask})   # by name

    path: the folder of an export (`belfry export`, `--export`), or an ONNX file. threads: threads that run it; 0: only
    the calling one. stage_memory: limit for the bytes of weights in memory; 0: no limit. seed: for random operations.
    Files stay mapped as long as the object lives. Threads that share it take turns; the GIL is free while it computes.

    Errors: NotFoundError, DataLossError (a malformed file), UnimplementedError (an operator that Belfry lacks, named),
    FailedPreconditionError, InvalidArgumentError.
    """

    def __init__(self, path: Union[str, "os.PathLike[str]"], *, threads: int = 0, stage_memory: int = 0,
                 seed: int = 0) -> None:
        self._handle = ctypes.c_void_p()
        self._turn = threading.Lock()
        options = lib.bel_predictor_options(size=ctypes.sizeof(lib.bel_predictor_options), threads=threads,
                                            stage_memory=stage_memory, seed=seed)
        lib.bel_predictor_load(os.fsencode(path), ctypes.byref(options), ctypes.byref(self._handle))
        handle = self._handle
        self.inputs: Tuple[Port, ...] = tuple(
            _port(lib.bel_predictor_input_port(handle, i)) for i in range(lib.bel_predictor_input_count(handle)))
        self.outputs: Tuple[Port, ...] = tuple(
            _port(lib.bel_predictor_output_port(handle, i)) for i in range(lib.bel_predictor_output_count(handle)))
        self._bound: List[Any] = [None] * len(self.inputs)  # what the library reads
        self._tensors: List[Any] = [None] * len(self.inputs)
        self._views: List[Any] = [None] * len(self.outputs)

    @property
    def step(self) -> int:
        """The step of the exported checkpoint; -1: the file does not record it."""
        return int(lib.bel_predictor_step(self._live()))

    def __call__(self, *inputs: Any) -> Any:
        """Runs the model on its inputs in their order.

        inputs: arrays, one for each input, of the port's shape with any size in its open dimensions. An array of the
        port's type in C order is read in place; any other is converted. Returns the output as an array that the caller
        owns, or a tuple of the outputs if there are several.
        """
        if len(inputs) != len(self.inputs):
            raise InvalidArgumentError(f"expected {self._list(self.inputs)}, got {len(inputs)} inputs")
        with self._turn:
            results = self._run(enumerate(inputs))
        return results[0] if len(results) == 1 else tuple(results)

    def run(self, inputs: Dict[str, Any]) -> Dict[str, Any]:
        """Runs the model on inputs by name; an array, as for a call, or a pandas frame whose columns are the features
        of an input in their order. Returns the outputs by name."""
        places = {port.name: index for index, port in enumerate(self.inputs)}
        if set(places) != set(inputs):
            raise InvalidArgumentError(f"expected {self._list(self.inputs)}, got "
                                       f"{', '.join(sorted(inputs)) or 'no input'}")
        with self._turn:
            results = self._run((places[name], value) for name, value in inputs.items())
        return {port.name: result for port, result in zip(self.outputs, results)}

    def close(self) -> None:
        """Frees the model; every later call is an error. A second close does nothing."""
        with self._turn:
            taken, self._handle = self._handle, ctypes.c_void_p()
            self._bound, self._views = [None] * len(self._bound), []
            lib.bel_predictor_destroy(taken)

    def __enter__(self) -> "Predictor":
        return self

    def __exit__(self, *_: Any) -> None:
        self.close()

    def __del__(self) -> None:
        if getattr(self, "_handle", None):
            self.close()

    @staticmethod
    def _list(ports: Tuple[Port, ...]) -> str:
        words = ", ".join(port.name for port in ports)
        return f"{len(ports)} input{'' if len(ports) == 1 else 's'} ({words})"

    def _live(self) -> Any:
        if not self._handle:
            raise InvalidArgumentError("the predictor is closed")
        return self._handle

    def _run(self, inputs: Iterable[Tuple[int, Any]]) -> List[Any]:
        for index, value in inputs:
            self._bind(index, value)
        lib.bel_predictor_run(self._live())
        return [self._output(index) for index in range(len(self.outputs))]

    def _bind(self, index: int, value: Any) -> None:
        """Binds an input. An array that is bound already needs no call, one of the same shape only its address."""
        if value is self._bound[index]:
            return
        port, handle = self.inputs[index], self._live()
        if type(value) is not np.ndarray:
            value = value.to_numpy() if hasattr(value, "to_numpy") else value
            value = np.asarray(value) if isinstance(value, (list, tuple, int, float)) else array_of(value, port.name)
        if value.dtype != port.dtype:
            value = _converted(value, port)
        if not value.flags.c_contiguous:
            value = np.ascontiguousarray(value)
        bound = self._bound[index]
        if bound is not None and bound.shape == value.shape:
            tensor = self._tensors[index]
            tensor.data = value.__array_interface__["data"][0]
        else:
            tensor = tensor_of(value, f"input {port.name}")
        lib.bel_predictor_bind(handle, index, ctypes.byref(tensor))
        self._bound[index], self._tensors[index] = value, tensor

    def _output(self, index: int) -> Any:
        """A copy of an output. Runs of one shape write to one place, of which a view is kept."""
        tensor = lib.bel_predictor_output(self._handle, index)
        kept = self._views[index]
        shape = tuple(tensor.shape.dims[:tensor.shape.rank])
        if kept is None or kept[0] != tensor.data or kept[1].shape != shape:
            dtype = numpy_dtype(tensor.dtype)
            elements = int(np.prod(shape))
            if elements == 0:
                return np.empty(shape, dtype)
            memory: Any = (ctypes.c_char * (elements * dtype.itemsize)).from_address(tensor.data)
            kept = self._views[index] = (tensor.data, np.frombuffer(memory, dtype).reshape(shape))
        return kept[1].copy()


def _converted(value: Any, port: Port) -> Any:
    """`value` with the type of a port. InvalidArgumentError: texts, complex numbers, or a fraction for an integer."""
    if value.dtype.kind not in "biuf":
        hint = "; an export of a table takes positions of texts, in the order of `values` in its signature.json"
        raise InvalidArgumentError(f"input {port.name}: expected numbers for {port.dtype}, got {value.dtype}"
                                   f"{hint if value.dtype.kind in 'OSU' else ''}")
    if np.dtype(port.dtype).kind in "iu" and value.dtype.kind == "f":
        wrong = value[~(np.isfinite(value) & (value == np.floor(value)) & (np.abs(value) < 2.0**63))]
        if wrong.size > 0:
            raise InvalidArgumentError(f"input {port.name}: expected integers for {port.dtype}, got {wrong.flat[0]}")
    return value.astype(port.dtype)


def _port(port: Any) -> Port:
    return Port(port.name.decode(), numpy_dtype(port.dtype), shape_of(port.shape))
