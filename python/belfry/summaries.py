"""Summaries of training, for TensorBoard and report.html, by their names in belfry/model.h without the prefix
bel_summary_. Call them in a model function: summaries.scalar("gradient_norm", norm).
"""

from typing import Any, Callable, List

from .graph import building
from .library import lib
from .ops import derive

_PREFIX = "bel_summary_"


def __dir__() -> List[str]:
    return sorted(name[len(_PREFIX):] for name in lib.headers["belfry/model.h"] if name.startswith(_PREFIX))


def __getattr__(name: str) -> Callable[..., None]:
    if name not in __dir__():
        raise AttributeError(f"belfry.summaries has {', '.join(__dir__())}, and no {name}")

    def use(converted: List[Any], _arguments: Any) -> None:
        at = building()
        at.keep.append(converted)  # the library does not copy names
        getattr(lib, _PREFIX + name)(at.context, at.spec, *converted)
        lib.bel_graph_check(at.graph)
    return derive(name, _PREFIX + name, 2, use)
