"""Ends a server whose starter died: `python guard.py <starter pid> <server process group> [<directory to remove>]`.

A program of its own, on the standard library alone. It needs no thread, pipe or signal of the starter, so a
starter killed with SIGKILL, or one that forked children which live on, leaves no server running.
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import time
from collections.abc import Sequence

_EVERY_SECONDS = 0.5


def _alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True


def main(arguments: Sequence[str]) -> None:
    """Watch until the starter or the server's group is gone; in the first case end the group."""
    starter, group, *directories = arguments
    while _alive(int(group)):
        if os.getppid() != int(starter):
            os.killpg(int(group), signal.SIGKILL)
            for directory in directories:
                shutil.rmtree(directory, ignore_errors=True)
            return
        time.sleep(_EVERY_SECONDS)


if __name__ == "__main__":
    main(sys.argv[1:])
