"""Layers, which make variables: those of belfry/ops.h and graph.h, without the prefix bel_.

    outputs, last = layers.lstm(x, lengths, units=128, name="encoder")

A layer makes its variables in a scope of its name: "encoder/kernel". A second layer of the same name shares them.
Names, initial values and shapes are those of the headers. Layers that are not written here are made from their
declarations, like belfry.ops: after an optional parameter the required ones are keywords.
"""

from typing import Any, Callable, List, Optional, Union

from . import ops
from .graph import Value, building

Activation = Union[str, Callable[[Value], Value], None]


def _activated(value: Value, activation: Activation) -> Value:
    if activation is None:
        return value
    made: Value = (getattr(ops, activation) if isinstance(activation, str) else activation)(value)
    return made


def dense(x: Value, units: int, name: str, activation: Activation = None) -> Value:
    """x [n, in] · kernel + bias -> [n, units], with "name/kernel" [in, units] (Glorot uniform) and "name/bias" [units]
    (0). activation: the name of an operation, such as "relu", or a function of a value."""
    return _activated(ops.derived("dense")(x, units, name), activation)


def conv_2d(x: Value, filters: int, size: int, stride: int, bias: bool, name: str,
            activation: Activation = None) -> Value:
    """x [n, c, h, w] -> [n, filters, h / stride, w / stride] (rounded up), with windows of size × size, SAME padding,
    "name/kernel" [filters, c, size, size] (Glorot uniform) and, with bias, "name/bias" [filters] (0)."""
    return _activated(ops.derived("conv_2d")(x, filters, size, stride, bias, name), activation)


def batch_norm(x: Value, name: str, training: Optional[bool] = None, **options: Any) -> Value:
    """Batch normalization of x [n, c, …], with "name/scale", "name/bias" and the moving "name/mean", "name/variance".

    training: normalize by the batch and update the moving statistics; None: in mode "train". options: fields of
    bel_batch_norm_options: momentum [0.9], epsilon [1e-5], statistics ("local", "merged", "sync": whose statistics if
    several replicas train), sum_formula.
    """
    training = building().mode == "train" if training is None else training
    made: Value = ops.derived("batch_norm")(x, name=name, training=training, **options)
    return made


def __dir__() -> List[str]:
    return sorted(ops.LAYERS | {"batch_norm"})


def __getattr__(name: str) -> Callable[..., Any]:
    if name not in ops.LAYERS:
        raise AttributeError(f"belfry.layers has {', '.join(__dir__())}, and no {name}")
    return ops.derived(name)
