"""Views of arrays for the C library, without copies: numpy arrays, and objects with DLPack (torch tensors)."""

import ctypes
from typing import Any, Dict, Optional, Sequence

import numpy as np

from .errors import InvalidArgumentError, expect
from .library import lib

_DTYPES: Dict[Any, int] = {
    np.dtype(np.float32): lib.BEL_DTYPE_F32, np.dtype(np.float64): lib.BEL_DTYPE_F64,
    np.dtype(np.int32): lib.BEL_DTYPE_I32, np.dtype(np.int64): lib.BEL_DTYPE_I64,
    np.dtype(np.uint8): lib.BEL_DTYPE_U8, np.dtype(np.bool_): lib.BEL_DTYPE_BOOL,
    np.dtype(np.float16): lib.BEL_DTYPE_F16,
}
_NUMPY = {number: dtype for dtype, number in _DTYPES.items()}


def numpy_dtype(number: int) -> Any:
    """numpy's type of a bel_dtype. It has none for bf16: uint16, the bits."""
    return _NUMPY.get(number, np.dtype(np.uint16))


def dtype_number(dtype: Any, what: str) -> int:
    """The bel_dtype of a type of numpy, or of its name."""
    try:
        return _DTYPES[np.dtype(dtype)]
    except (KeyError, TypeError):
        names = ", ".join(str(known) for known in _DTYPES)
        raise InvalidArgumentError(f"{what}: expected one of {names}, got {dtype!r}") from None


def array_of(value: Any, what: str) -> Any:
    """`value` as a numpy array, which shares its memory: an array, or an object with DLPack on the CPU."""
    expect(not isinstance(value, np.ma.MaskedArray), f"{what}: expected an array without a mask, got one; hint: "
           "x.filled(…)")
    if isinstance(value, np.ndarray):
        return value
    if hasattr(value, "detach"):  # a torch tensor that is part of a graph refuses DLPack
        value = value.detach()
    if hasattr(value, "__dlpack__"):
        try:
            return _from_dlpack(value)
        except (BufferError, RuntimeError, TypeError, ValueError) as error:
            raise InvalidArgumentError(f"{what}: expected an array in the processor's memory: {error}") from None
    raise InvalidArgumentError(f"{what}: expected a numpy array or an object with DLPack, got {type(value).__name__}")


def _from_dlpack(value: Any) -> Any:
    """numpy makes arrays of DLPack read-only; the memory is the owner's, who asked for it to be written."""
    array = np.from_dlpack(value)
    if array.flags.writeable or array.size == 0 or not array.flags.c_contiguous:
        return array
    buffer: Any = (ctypes.c_char * array.nbytes).from_address(array.ctypes.data)
    buffer.owner = array  # lives as long as a view of the buffer
    return np.frombuffer(buffer, dtype=array.dtype).reshape(array.shape)


def tensors_of(arrays: Sequence[Any], what: str) -> Any:
    """A list of bel_tensor over arrays, as for tensor_of; at least one element long."""
    tensors = [tensor_of(array, f"{what}, array {index}") for index, array in enumerate(arrays)]
    return (lib.bel_tensor * max(len(tensors), 1))(*tensors)


def tensor_of(array: Any, what: str) -> Any:
    """bel_tensor over the memory of an array in C order, which the caller keeps alive."""
    dtype = _DTYPES.get(array.dtype)
    if dtype is None or not array.dtype.isnative:
        names = ", ".join(str(known) for known in _DTYPES)
        raise InvalidArgumentError(f"{what}: expected elements of {names}, got {array.dtype}")
    expect(array.ndim <= lib.BEL_MAX_RANK, f"{what}: expected at most {lib.BEL_MAX_RANK} dimensions, got {array.ndim}")
    tensor = lib.bel_tensor(dtype=dtype, data=array.ctypes.data)
    tensor.shape.rank = array.ndim
    tensor.shape.dims[:array.ndim] = array.shape
    return tensor


def shape_of(shape: Any) -> Sequence[Optional[int]]:
    """A bel_shape as a tuple, with None for an open dimension."""
    return tuple(dim if dim >= 0 else None for dim in shape.dims[:shape.rank])


def pointer_to(array: Any) -> Any:
    """The address of an array's elements as a pointer to their type, such as int64_t *. The caller keeps it alive."""
    return array.ctypes.data_as(ctypes.POINTER(np.ctypeslib.as_ctypes_type(array.dtype)))


def view_of(tensor: Any) -> Any:
    """A numpy array over the elements of a bel_tensor, which the caller keeps alive."""
    dtype, shape = numpy_dtype(tensor.dtype), tuple(tensor.shape.dims[:tensor.shape.rank])
    elements = int(np.prod(shape, dtype=np.int64))
    if elements == 0:
        return np.empty(shape, dtype)
    memory: Any = (ctypes.c_char * (elements * dtype.itemsize)).from_address(tensor.data)
    return np.frombuffer(memory, dtype).reshape(shape)
