"""Optimizers: how averaged gradients change parameters (belfry/optimizer.h).

    belfry.Adam(0.001, clip_global_norm=1.0, schedule={"kind": "cosine", "decay_steps": 10000})

Each function makes one kind. Keyword arguments are the fields of bel_optimizer, whose comments have formulas, ranges
and defaults; `schedule` has those of bel_schedule, `lr_mults` and `decay_mults` map patterns of variables to factors.
"""

from typing import Any, Callable, Dict, Optional

from . import structs
from .errors import expect


class Optimizer:
    """An optimizer of a kind, "adam". InvalidArgumentError: no such field, or a value of another type; training checks
    ranges."""

    def __init__(self, kind: str, learning_rate: Optional[float] = None, **fields: Any) -> None:
        self.fields: Dict[str, Any] = {"kind": kind, "learning_rate": learning_rate, **fields}
        self.struct = structs.make("bel_optimizer", self.fields, kind)
        expect(learning_rate is not None, f"{kind}.learning_rate: expected a number, got none")

    def __repr__(self) -> str:
        kind, *rest = self.fields.items()
        return f"Optimizer({kind[1]!r}, {', '.join(f'{name}={value!r}' for name, value in rest)})"


def _kind(kind: str, words: str) -> Callable[..., Optimizer]:
    """A function that makes optimizers of a kind."""
    def make(learning_rate: Optional[float] = None, **fields: Any) -> Optimizer:
        return Optimizer(kind, learning_rate, **fields)
    make.__name__ = make.__qualname__ = kind
    make.__doc__ = f"An optimizer, {words}. fields: others of bel_optimizer."
    return make


SGD = _kind("sgd", "p -= a g")
Momentum = _kind("momentum", "m = mu m + g; p -= a m. momentum [0.9], nesterov [False]")
Adam = _kind("adam", "Kingma & Ba 2015. beta1 [0.9], beta2 [0.999], epsilon [1e-8]")
AdamW = _kind("adamw", "Loshchilov & Hutter 2019: Adam with a weight_decay beside the gradient")
Adagrad = _kind("adagrad", "Duchi et al. 2011. initial_accumulator [0.1], epsilon [1e-8]")
RMSProp = _kind("rmsprop", "Tieleman & Hinton 2012. rmsprop_decay [0.9], rmsprop_momentum, rmsprop_centered")
FTRL = _kind("ftrl", "McMahan et al. 2013. ftrl_l1, ftrl_l2, ftrl_l2_shrinkage, learning_rate_power [-0.5]")
LAMB = _kind("lamb", "You et al. 2020. beta1 [0.9], beta2 [0.999], weight_decay")
LARS = _kind("lars", "You et al. 2017. momentum [0.9], lars_trust, weight_decay")
Adadelta = _kind("adadelta", "Zeiler 2012. adadelta_decay [0.95]")
