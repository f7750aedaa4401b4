"""Python processes in which Spark runs one task after another."""

from __future__ import annotations

import gc
import sys
from functools import cache

_DAEMON = "pyspark.daemon"
"""The program whose children plan reads, too, which are no tasks."""


def keep_imports() -> None:
    """In a process of Spark's, once all is imported: what is there stays for good, and nobody looks through it again.

    Spark looks for garbage among all objects whenever such a process has answered, which takes longer than many a small
    task itself.
    """
    from pyspark import TaskContext  # noqa: PLC0415 - only where Spark runs

    program = getattr(sys.modules["__main__"], "__spec__", None)
    if TaskContext.get() is not None or (program is not None and program.name == _DAEMON):
        _freeze()


@cache
def _freeze() -> None:
    gc.freeze()  # with what garbage there is: to look for it once takes as long as Spark does
