"""Optimizers: how averaged gradients change parameters (belfry/optimizer.h).

    belfry.Adam(0.001, clip_global_norm=1.0, schedule={"kind": "cosine", "decay_steps": 10000})
    belfry.FTRL(0.05, ftrl_l1=0.001)

Each function makes one kind. The keyword arguments are the fields of bel_optimizer, whose comments have formulas,
ranges and defaults. `schedule` has the fields of bel_schedule, `lr_mults` and `decay_mults` map patterns of variables
to factors. The field `kind` is in `Optimizer(kind, learning_rate, **fields)`.
"""

from typing import Any, Dict, List

from . import structs


class Optimizer:
    """An optimizer of a kind, "adam". InvalidArgumentError: no such field, or a value of another type; training checks
    ranges."""

    def __init__(self, kind: str, learning_rate: float, **fields: Any) -> None:
        self.fields: Dict[str, Any] = {"kind": kind, "learning_rate": learning_rate, **fields}
        keep: List[Any] = []
        self.struct = structs.make("bel_optimizer", self.fields, keep, kind)

    def __repr__(self) -> str:
        kind, *rest = self.fields.items()
        return f"Optimizer({kind[1]!r}, {', '.join(f'{name}={value!r}' for name, value in rest)})"


def SGD(learning_rate: float, **fields: Any) -> Optimizer:
    """p -= a g"""
    return Optimizer("sgd", learning_rate, **fields)


def Momentum(learning_rate: float, **fields: Any) -> Optimizer:
    """m = mu m + g; p -= a m, or with nesterov=True p -= a (g + mu m). momentum: mu [0.9]."""
    return Optimizer("momentum", learning_rate, **fields)


def Adam(learning_rate: float, **fields: Any) -> Optimizer:
    """Kingma & Ba 2015. beta1 [0.9], beta2 [0.999], epsilon [1e-8]."""
    return Optimizer("adam", learning_rate, **fields)


def AdamW(learning_rate: float, **fields: Any) -> Optimizer:
    """Loshchilov & Hutter 2019: Adam, whose weight_decay does not enter the gradient."""
    return Optimizer("adamw", learning_rate, **fields)


def Adagrad(learning_rate: float, **fields: Any) -> Optimizer:
    """Duchi et al. 2011. initial_accumulator [0.1], epsilon [1e-8]."""
    return Optimizer("adagrad", learning_rate, **fields)


def RMSProp(learning_rate: float, **fields: Any) -> Optimizer:
    """Tieleman & Hinton 2012. rmsprop_decay [0.9], rmsprop_momentum [off], rmsprop_centered."""
    return Optimizer("rmsprop", learning_rate, **fields)


def FTRL(learning_rate: float, **fields: Any) -> Optimizer:
    """McMahan et al. 2013. ftrl_l1, ftrl_l2, ftrl_l2_shrinkage, learning_rate_power [-0.5]."""
    return Optimizer("ftrl", learning_rate, **fields)


def LAMB(learning_rate: float, **fields: Any) -> Optimizer:
    """You et al. 2020."""
    return Optimizer("lamb", learning_rate, **fields)


def LARS(learning_rate: float, **fields: Any) -> Optimizer:
    """You et al. 2017. momentum [0.9], lars_trust."""
    return Optimizer("lars", learning_rate, **fields)


def Adadelta(learning_rate: float, **fields: Any) -> Optimizer:
    """Zeiler 2012. adadelta_decay [0.95]."""
    return Optimizer("adadelta", learning_rate, **fields)
