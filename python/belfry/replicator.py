"""Loops of steps that a program runs itself (belfry/replica.h; an example is in docs/python.md).

Every step is computed by all replicas of the job; the loop itself runs only in the process that represents it, on a
thread. When training returns to a checkpoint, the loop begins again: it must keep what determines its next step in
`state`, or derive it from `replicator.step`.
"""

import ctypes
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Mapping, Optional, Tuple, Union

from . import structs
from .calls import Call, Handle, reads
from .errors import expect
from .hooks import memory_of
from .library import lib
from .model import ModelFunction
from .results import StepResult

if TYPE_CHECKING:
    from .estimator import Estimator

StepFunction = Union[ModelFunction, Tuple[ModelFunction, str]]


class Replicator(Handle):
    """What a loop gets. Valid while it runs, on its thread."""

    step: int = reads("bel_replicator_step", "The version on which the next step is made.")

    def __init__(self, handle: int, numbers: Dict[str, int], estimator: "Estimator") -> None:
        super().__init__(handle)
        self._numbers = numbers
        self.estimator = estimator

    def run(self, function: str, wait: bool = True) -> Optional[StepResult]:
        """Runs a step of a function.

        Returns its result; with wait=False None, at once, so the loop can request the next step meanwhile. The loop
        must not catch its errors: OutOfRangeError (training ends here), CancelledError (a stop was requested, or
        training returns to a checkpoint).
        """
        if function not in self._numbers:
            raise structs.refuse(function, self._numbers, "Replicator.run")
        result = ctypes.POINTER(lib.bel_step_result)()
        lib.bel_replicator_run(self.handle, self._numbers[function], ctypes.byref(result) if wait else None)
        return StepResult(result.contents) if wait else None


class Loop:
    """Step functions and the loop that runs them, for TrainSpec.

    functions: by name; each a model function that sets loss, optimizer and `returns`, or a pair of one and the patterns
    of variables that it may update, "generator/*,shared/*". run: called as run(replicator); training ends when it
    returns. state: an array that checkpoints keep and `run` reads and writes; None: none.
    """

    def __init__(self, functions: Mapping[str, StepFunction], run: Callable[[Replicator], None],
                 state: Optional[Any] = None) -> None:
        self._functions, self._run, self._state = dict(functions), run, state
        expect(self._functions and len(self._functions) <= lib.BEL_MAX_LOOP_FUNCTIONS, "Loop: expected 1 to "
               f"{lib.BEL_MAX_LOOP_FUNCTIONS} functions, got {len(self._functions)}")

    def make(self, estimator: "Estimator", call: Call) -> Any:
        """bel_loop, valid until the call ends."""
        functions: List[Any] = []
        for name, item in self._functions.items():
            function, variables = item if isinstance(item, tuple) else (item, None)
            functions.append({"name": name, "fn": estimator.function(function), "variables": variables})
        numbers = {name: number for number, name in enumerate(self._functions)}
        struct = structs.make("bel_loop", {"functions": functions}, "Loop")
        struct.run = call.status(lib.bel_loop_fn, lambda _user, handle: Replicator(
            handle, numbers, estimator).lend(self._run))
        if self._state is not None:
            struct.state, struct.state_bytes = memory_of(self._state, "Loop.state", call)
        return struct
