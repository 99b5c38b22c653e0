"""Settings of a run: bel_run_config as an object (belfry/run.h)."""

import ctypes
import os
from typing import Any, List, Mapping, Sequence

from . import structs
from .library import lib


class RunConfig:
    """Settings of a run: the fields of bel_run_config, with their defaults, as keyword arguments and attributes.

        config = belfry.RunConfig(num_gpus=2, save_checkpoints_steps=500, mode="async")
        config.seed = 7

    An estimator copies it. InvalidArgumentError: no such field, which names similar ones, or a value of another type;
    the estimator checks ranges.
    """

    def __init__(self, **fields: Any) -> None:
        vars(self).update(struct=structs.make("bel_run_config", {}), _keep=[])
        self._set(fields)

    def _set(self, fields: Mapping[str, Any]) -> None:
        structs.make("bel_run_config", fields, "RunConfig", self.struct)
        towers = fields.get("towers_of")
        if towers is not None:  # the library reads one for each worker
            self._set({"num_workers": len(towers)})

    def __setattr__(self, name: str, value: Any) -> None:
        self._set({name: value})

    def __getattr__(self, name: str) -> Any:
        settings = structs.settings_of("bel_run_config")
        if name not in settings:
            raise AttributeError(str(structs.refuse(name, settings, "RunConfig")))
        return setting(self.struct, name)

    def flags(self, arguments: Sequence[str]) -> List[str]:
        """Applies the flags of a run, such as --num_workers 2, and returns the other arguments.

        arguments: those of the program, without its name and without flags that it knows itself
        (argparse's parse_known_args). InvalidArgumentError: an unknown flag; the message names the nearest.
        """
        given = (ctypes.c_char_p * (len(arguments) + 2))(b"python3", *(os.fsencode(word) for word in arguments))
        count = ctypes.c_int(len(arguments) + 1)
        self._keep.append(given)  # texts are borrowed
        lib.bel_run_config_flags(ctypes.byref(self.struct), ctypes.byref(count), given)
        lib.bel_refuse_flags(count, given)
        return [os.fsdecode(word) for word in given[1:count.value] if word is not None]

    def __repr__(self) -> str:
        default = RunConfig()
        changed = ((name, getattr(self, name)) for name in structs.settings_of("bel_run_config"))
        return f"RunConfig({', '.join(f'{n}={v!r}' for n, v in changed if v != getattr(default, n))})"


def setting(struct: Any, name: str) -> Any:
    """A field of bel_run_config as a value of Python."""
    value, words = getattr(struct, name), lib.fields("bel_run_config")[name]
    if name == "towers_of":
        return value[:struct.num_workers] if value else None
    kind = words.split()[0]
    if kind in lib.enums:
        return structs.enumerator(kind, value)
    return os.fsdecode(value) if isinstance(value, bytes) else value
