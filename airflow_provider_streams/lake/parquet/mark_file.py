"""`_table.json`: whose a table is, and how long its windows are at most.

The names of the first folders tell when windows begin, and not when they end. Without the length, a window from any
time before might reach into the one that is landed, and each landing would look into the folders of all windows.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Final

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.parquet.atomic_rename import flush_folder
from airflow_provider_streams.model.sinks.landing import TableMark

MARK: Final = "_table.json"
DRAFT: Final = f"{MARK}.draft"
_LONGEST: Final = "longest_window_seconds"


@dataclass(frozen=True, slots=True)
class Marked:
    """What the file says."""

    mark: TableMark
    longest: timedelta | None = timedelta(0)
    """At least the length of each window that ever landed here, also of those that were set aside; None: not noted."""

    def holding(self, length: timedelta) -> Marked:
        """The same with a window of a length; the lengths of the others are known."""
        return replace(self, longest=max(length, self.longest or length))


def read_mark(root: Path) -> Marked | None:
    """What a table's file says; None: there is none. `SinkError`: it cannot be read."""
    try:
        found = json.loads((root / MARK).read_text())
        seconds = found.pop(_LONGEST, None)
        return Marked(TableMark.from_json(found), None if seconds is None else timedelta(seconds=seconds))
    except FileNotFoundError:
        return None
    except NotADirectoryError as error:
        raise SinkError(str(root), "it is a file, or below one: a table is a folder") from error
    except (OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise SinkError(str(root), f"its {MARK} cannot be read: {error}") from error


def write_mark(root: Path, marked: Marked) -> None:
    """Put the file in the place of the one before, in one step. `OSError`: nothing changed."""
    draft = root / DRAFT
    longest = {} if marked.longest is None else {_LONGEST: marked.longest.total_seconds()}
    with draft.open("w") as file:
        json.dump({**marked.mark.to_json(), **longest}, file)
        file.flush()
        os.fsync(file.fileno())
    draft.rename(root / MARK)
    flush_folder(root)
