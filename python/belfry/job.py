"""The end of a process of a job by an exception: its supervisor gets the message and Belfry's exit code.

The traceback of an exception of the program is shown once: by the process that represents the job, while the others
write it to their log files. It has the frames of the program. An error of the library is only its message.
"""

import json
import os
import sys
import time
import traceback
from typing import Any

from .errors import Error
from .library import lib

_PACKAGE = os.path.dirname(os.path.abspath(__file__)) + os.sep


def in_job() -> bool:
    """Whether a supervisor of Belfry started this process."""
    return "BELFRY_TASK" in os.environ


def report_at_end(error: BaseException, shown: bool) -> None:
    """If this exception ends the process, reports it as the command does. shown: with its traceback for users."""
    before = sys.excepthook

    def report(kind: Any, value: BaseException, trace: Any) -> None:
        if value is not error:
            before(kind, value, trace)
            return
        failed = error.__cause__ if isinstance(error.__cause__, Error) else error  # it says in which function
        for line in _traceback(error) if failed is not error or not isinstance(error, Error) else []:
            print(line if shown else json.dumps({"time": round(time.time(), 3), "level": "info", "message": line}),
                  file=sys.stderr)
        sys.stderr.flush()
        code = failed.code if isinstance(failed, Error) else lib.BEL_UNKNOWN
        text = failed.message if isinstance(failed, Error) else f"{type(error).__name__}: {error}"
        status = lib.bel_status_create(code, b"python", 0, b"%s", text.encode(errors="replace"))
        raise SystemExit(lib.bel_status_report(status))

    sys.excepthook = report


def _traceback(error: BaseException) -> Any:
    """The lines of an exception's traceback."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__)
              if not os.path.abspath(frame.filename).startswith(_PACKAGE)]
    lines = [*traceback.format_list(frames), *traceback.format_exception_only(type(error), error)]
    return ["Traceback (most recent call last):", *"".join(lines).splitlines()]
