"""Layers, which make variables: those of belfry/ops.h and graph.h, without the prefix bel_.

    hidden = layers.dense(x, 64, "hidden", activation="relu")
    outputs, last = layers.lstm(x, 128, "encoder", lengths=lengths)

A layer makes its variables in a scope of its name: "hidden/kernel", "hidden/bias". A second layer of the same name
shares them. Names, initial values and shapes are those of the headers, so a model in C has the same bits.
"""

from typing import Any, Callable, Optional, Tuple, Union

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
    return _activated(ops.layer("dense")(x, units, name), activation)


def conv_2d(x: Value, filters: int, size: int, name: str, stride: int = 1, bias: bool = True,
            activation: Activation = None) -> Value:
    """x [n, c, h, w] -> [n, filters, h / stride, w / stride] (rounded up), with windows of size × size, SAME padding,
    "name/kernel" [filters, c, size, size] (Glorot uniform) and, with bias, "name/bias" [filters] (0)."""
    return _activated(ops.layer("conv_2d")(x, filters, size, stride, bias, name), activation)


def batch_norm(x: Value, name: str, training: Optional[bool] = None, **options: Any) -> Value:
    """Batch normalization of x [n, c, …], with "name/scale", "name/bias" and the moving "name/mean", "name/variance".

    training: normalize by the batch and update the moving statistics; None: in mode "train". options: fields of
    bel_batch_norm_options: momentum [0.9], epsilon [1e-5], statistics ("local", "merged", "sync": whose statistics if
    several replicas train), sum_formula.
    """
    if training is None:
        training = building().mode == "train"
    made: Value = ops.layer("batch_norm")(x, name=name, training=training, **options)
    return made


def layer_norm(x: Value, name: str) -> Value:
    """Layer normalization over the last dimension of x [..., c], with "name/scale" and "name/bias" [c]."""
    made: Value = ops.layer("layer_norm")(x, name)
    return made


def group_norm(x: Value, groups: int, name: str) -> Value:
    """Group normalization of x [n, c, ...] in `groups` equal groups of channels, with "name/scale", "name/bias" [c]."""
    made: Value = ops.layer("group_norm")(x, groups, name)
    return made


def _recurrent(kind: str, x: Value, units: int, name: str, lengths: Optional[Value]) -> Tuple[Value, Value]:
    outputs, last = ops.layer(kind)(x, lengths=lengths, units=units, name=name)
    return outputs, last


def gru(x: Value, units: int, name: str, lengths: Optional[Value] = None) -> Tuple[Value, Value]:
    """Gated recurrent unit over x [n, t, in] with lengths [n] (int64; None: all have t steps). Returns the outputs
    [n, t, units], zeros after a length, and the last valid state [n, units]."""
    return _recurrent("gru", x, units, name, lengths)


def lstm(x: Value, units: int, name: str, lengths: Optional[Value] = None) -> Tuple[Value, Value]:
    """Long short-term memory; arguments and results as of `gru`."""
    return _recurrent("lstm", x, units, name, lengths)


def multi_head_attention(query: Value, heads: int, name: str, context: Optional[Value] = None,
                         lengths: Optional[Value] = None, causal: bool = False) -> Value:
    """query [n, t, width] attends to context [n, s, in] (None: to itself) with lengths [n] of the context
    -> [n, t, width]."""
    made: Value = ops.layer("multi_head_attention")(query, context, lengths, heads=heads, causal=causal, name=name)
    return made


def embedding(ids: Value, width: int, name: str, initializer: Any) -> Value:
    """Rows of the table `name` for ids, an unmodified feature of int64 (docs/tables.md): the shape of ids followed by
    width. initializer: "zeros", ("uniform", x) or ("normal", x)."""
    made: Value = ops.layer("embedding")(name, ids, width, initializer)
    return made


def embedding_bag(ids: Value, width: int, name: str, initializer: Any, weights: Optional[Value] = None,
                  combiner: str = "mean") -> Value:
    """The rows of each list of ids [a…, n], padded with -1, combined by "sum", "mean" or "sqrtn" -> [a…, width]."""
    made: Value = ops.layer("embedding_bag")(name, ids, weights, width=width, initializer=initializer,
                                             combiner=combiner)
    return made
