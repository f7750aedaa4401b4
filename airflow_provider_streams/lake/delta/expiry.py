"""A Delta table's past: files that no version names which a reader may still have open go, as by vacuum.

Vacuum goes by the table's own list of what was removed, which forgets after a week; here the log of all commits since
the moment is read, so any length of time is kept. The log itself stays: the table's property
`delta.logRetentionDuration` says for how long.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from typing import Any
from urllib.parse import unquote

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.delta.storage import errors_of
from airflow_provider_streams.lake.delta.versions import check_mark, newest
from airflow_provider_streams.lake.delta.writer import storage_of
from airflow_provider_streams.lake.expiry import (
    ATTEMPT_FILE,
    Expired,
    StoredFile,
    files_below,
    is_data_file,
    left_over,
    remove,
)
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.landing import TableMark
from airflow_provider_streams.model.sink import DeltaSink

_LOG = "_delta_log"
_OF_AN_ATTEMPT = re.compile("/".join([*(f"{name}=[^/]+" for name in WINDOW_COLUMNS), ATTEMPT_FILE]))
"""Where attempts put files: whatever else lies in the folder and is in no commit of its log is somebody's."""
_COMMIT = re.compile(r"\d{20}\.json")
_COMMITS_AT_ONCE = 8


class ExpirableDelta:
    """See `lake.expiry.ExpirableTable`."""

    def __init__(self, sink: DeltaSink, mark: TableMark) -> None:
        self._storage, self._mark = storage_of(sink), mark

    def expire(self, before: datetime, *, dry_run: bool = False) -> Expired:
        """See `ExpirableTable`.

        Raises:
            SinkError: also where the log does not reach back to that moment.
        """
        current = self._paths()
        listed = files_below(self._storage)
        now = self._paths()
        log = _commits(self._storage)
        needed = {_name(path) for path in now | _named_since(self._storage, log, before)}
        old = left_over(self._storage, listed, is_data_file, current=current, needed=needed, before=before)
        if not all(map(_is_of_an_attempt, old)):
            named = _named_by(self._storage, log)  # of other engines' files nothing but the log tells
            old = [file for file in old if file.place in named or _is_of_an_attempt(file)]
        if not dry_run:
            remove(self._storage, old)
        return Expired(tuple(old))

    def _paths(self) -> set[str]:
        return set(check_mark(newest(self._storage), self._storage, self._mark).paths())


def _is_of_an_attempt(file: StoredFile) -> bool:
    return _OF_AN_ATTEMPT.fullmatch(file.place) is not None


def _commits(storage: Storage) -> list[StoredFile]:
    return sorted((file for file in files_below(storage, _LOG) if _COMMIT.fullmatch(file.place)), key=_version)


def _named_since(storage: Storage, log: Sequence[StoredFile], before: datetime) -> set[str]:
    """All files that commits since a moment put in or took out: they were the table then, or later."""
    since = [one for one in log if one.written >= before]
    if since and since[0] == log[0] and _version(log[0]) > 0:
        raise SinkError(
            storage.root,
            f"its log does not reach back to {before:%Y-%m-%dT%H:%M:%SZ}: keep it longer "
            "(delta.logRetentionDuration), or expire what is replaced for a shorter time. Nothing is removed",
        )
    return _named_by(storage, since)


def _named_by(storage: Storage, commits: Sequence[StoredFile]) -> set[str]:
    with errors_of(storage), ThreadPoolExecutor(_COMMITS_AT_ONCE) as pool:
        system, _ = storage.open()
        named = pool.map(lambda one: list(_named_in(system, one)), commits)
        return {path for paths in named for path in paths}


def _version(commit: StoredFile) -> int:
    return int(commit.name.removesuffix(".json"))


def _named_in(system: Any, commit: StoredFile) -> Iterator[str]:
    with system.open_input_stream(commit.path) as log:
        lines: Sequence[bytes] = log.read().splitlines()
    for line in lines:
        action = json.loads(line)
        for kind in ("add", "remove", "cdc"):
            if kind in action:
                yield unquote(action[kind]["path"])


def _name(path: str) -> str:
    return path.rpartition("/")[2]
