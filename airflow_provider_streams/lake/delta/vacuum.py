"""Removes the files of a Delta table that no version names which a reader may still have open, as vacuum does.

Vacuum goes by the table's list of removed files, which forgets after a week. Here the log of all commits since the
moment is read, so any time can be kept. The log itself stays as long as the table's property
`delta.logRetentionDuration` says.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import unquote

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.columns import WINDOW_COLUMNS
from airflow_provider_streams.lake.delta.storage import LOG, errors_of, storage_of
from airflow_provider_streams.lake.delta.table_settings import RETENTION, interval_of
from airflow_provider_streams.lake.delta.transaction_log import versions
from airflow_provider_streams.lake.snapshot_expiry import (
    AT_ONCE,
    ATTEMPT_FILE,
    Expired,
    StoredFile,
    files_below,
    is_data_file,
    left_over,
    name_of,
    remove,
)
from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.sinks.landing import TableMark
from airflow_provider_streams.model.sinks.sink import DeltaSink

_OF_AN_ATTEMPT = re.compile(f"({'/'.join(f'{name}=[^/]+' for name in WINDOW_COLUMNS)}/)?{ATTEMPT_FILE}")
"""Where attempts put files: in a window's folder, or in the table's own if they apply changes.

Other files that no commit in the log names belong to others.
"""
_COMMIT = re.compile(r"\d{20}\.json")


def expire(sink: DeltaSink, mark: TableMark, before: datetime, *, dry_run: bool = False) -> Expired:
    """See `SinkWriter.expire`; what the table wants to keep for longer stays.

    Raises:
        SinkError: also if the log does not reach back to that moment.
    """
    storage = storage_of(sink)
    version = next(versions(storage, mark=mark))
    if why := version.expiry_hindrance:
        raise SinkError(storage.root, f"{why}. Nothing is removed")
    if (kept := _retention(storage, version.properties)) is not None:
        before = min(before, datetime.now(UTC) - kept)
    current = version.paths()
    listed = files_below(storage)
    now = next(versions(storage, mark=mark))
    log = sorted((file for file in files_below(storage, LOG) if _COMMIT.fullmatch(file.place)), key=_version)
    _check_reach(storage, log, before, now.number)
    since = [one for one in log if one.written >= before]
    # what they added or removed was the table's at that moment, or later
    needed = {name_of(path) for path in now.paths() | _named_by(storage, since)}
    old = left_over(storage, listed, is_data_file, current=current, needed=needed, before=before)
    if not all(map(_is_of_an_attempt, old)):
        named = _named_by(storage, log)  # only the log tells of other engines' files
        old = [file for file in old if file.place in named or _is_of_an_attempt(file)]
    if not dry_run:
        remove(storage, old)
    return Expired(tuple(old))


def _retention(storage: Storage, properties: Mapping[str, str]) -> timedelta | None:
    """How long the table wants to keep removed files; None: it does not say."""
    text = properties.get(RETENTION)
    try:
        return None if text is None else interval_of(text)
    except ValueError:
        raise SinkError(
            storage.root,
            f"its property {RETENTION} = {text} is no interval like 'interval 7 days': correct it. Nothing is removed",
        ) from None


def _is_of_an_attempt(file: StoredFile) -> bool:
    return _OF_AN_ATTEMPT.fullmatch(file.place) is not None


def _version(commit: StoredFile) -> int:
    return int(commit.name.removesuffix(".json"))


def _check_reach(storage: Storage, log: Sequence[StoredFile], before: datetime, newest: int) -> None:
    """Check that the log has each commit since a moment; a table can also be read by a checkpoint without commits."""
    earlier = [_version(one) for one in log if one.written < before]
    wanted = range(max(earlier, default=-1) + 1, newest + 1)
    if not {_version(one) for one in log}.issuperset(wanted):
        raise SinkError(
            storage.root,
            f"its log does not reach back to {before:%Y-%m-%dT%H:%M:%SZ}: keep it longer "
            "(delta.logRetentionDuration), or expire what is replaced for a shorter time. Nothing is removed",
        )


def _named_by(storage: Storage, commits: Sequence[StoredFile]) -> set[str]:
    with errors_of(storage), ThreadPoolExecutor(AT_ONCE) as pool:
        system, _ = storage.open()
        named = pool.map(lambda one: list(_named_in(system, one)), commits)
        return {path for paths in named for path in paths}


def _named_in(system: Any, commit: StoredFile) -> Iterator[str]:
    with system.open_input_stream(commit.path) as log:
        lines: Sequence[bytes] = log.read().splitlines()
    for line in lines:
        action = json.loads(line)
        for kind in ("add", "remove", "cdc"):
            if kind in action:
                yield unquote(action[kind]["path"])
