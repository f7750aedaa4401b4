"""Memory of the Python processes in which Spark runs one task after another."""

from __future__ import annotations

import gc
import sys
from functools import cache

_DAEMON = "pyspark.daemon"
"""Its child processes also plan reads, and these are no tasks."""


def keep_imports() -> None:
    """After all imports in a process of Spark's, exclude the present objects from garbage collection.

    Spark collects garbage after each answer of such a process. With all imported objects, that takes longer than a
    small task itself.
    """
    from pyspark import TaskContext  # noqa: PLC0415 - only where Spark runs

    program = getattr(sys.modules["__main__"], "__spec__", None)
    if TaskContext.get() is not None or (program is not None and program.name == _DAEMON):
        _freeze()


@cache
def _freeze() -> None:
    gc.freeze()  # with the present garbage: one collection takes as long as Spark's
