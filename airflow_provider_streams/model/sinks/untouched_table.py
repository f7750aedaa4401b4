"""Whether an error left its table unchanged. Then a covered window stays covered by the plan of its rows.

Only certain knowledge counts: after a kill, or without an answer, the table may have changed.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_UNTOUCHED: Final = "_streams_untouched"


def mark_untouched(error: BaseException) -> None:
    """Mark an error whose job had not started to change the table."""
    vars(error)[_UNTOUCHED] = True


def left_untouched(error: BaseException) -> bool:
    """Whether the table is known to be unchanged."""
    return _UNTOUCHED in vars(error)


@contextmanager
def table_untouched() -> Iterator[None]:
    """Mark every error of this block, which changes no table."""
    try:
        yield
    except BaseException as error:
        mark_untouched(error)
        raise
