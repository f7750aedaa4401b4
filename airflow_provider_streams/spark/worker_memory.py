"""Python processes in which Spark runs one task after another."""

from __future__ import annotations

import gc
from functools import cache


def keep_imports() -> None:
    """In a task, once all is imported: what is there stays for good, and nobody looks for garbage in it again.

    Spark looks through all objects after every task of a process that it uses again, which takes longer than many a
    small task itself.
    """
    from pyspark import TaskContext  # noqa: PLC0415 - only where Spark runs

    if TaskContext.get() is not None:
        _freeze()


@cache
def _freeze() -> None:
    gc.collect()
    gc.freeze()
