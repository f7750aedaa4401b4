"""A Delta table as its log says, read by hand: no library of Delta has a part in it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any
from urllib.parse import unquote

import pyarrow.fs as pafs
import pyarrow.parquet as pq

from airflow_provider_streams.lake.storage import Storage
from airflow_provider_streams.model.window.window import Window, utc_moment

Rows = list[dict[str, Any]]


def commits(storage: Storage) -> Iterator[list[dict[str, Any]]]:
    """The actions of each commit, from the first one on."""
    system, root = storage.open()
    found = system.get_file_info(pafs.FileSelector(f"{root}/_delta_log"))
    for log in sorted(one.path for one in found if one.path.endswith(".json")):
        with system.open_input_stream(log) as stream:
            yield [json.loads(line) for line in stream.read().splitlines()]


def adds(storage: Storage) -> dict[str, dict[str, Any]]:
    """The files that are the table now, by path, with what the log says of each."""
    files: dict[str, dict[str, Any]] = {}
    for actions in commits(storage):
        for removed in [action["remove"] for action in actions if "remove" in action]:
            files.pop(removed["path"])  # KeyError: a file that was not there is removed
        for added in [action["add"] for action in actions if "add" in action]:
            assert added["path"] not in files
            files[added["path"]] = added
    return files


def windows(storage: Storage) -> dict[Window, Rows]:
    """The rows of each window; what the log says of the files' rows and sizes is so."""
    system, root = storage.open()
    held: dict[Window, Rows] = {}
    for path, added in adds(storage).items():
        with system.open_input_file(f"{root}/{unquote(path)}") as file:
            assert file.size() == added["size"]
            rows = pq.read_table(file).to_pylist()
        assert json.loads(added["stats"])["numRecords"] == len(rows)
        edges = added["partitionValues"]
        window = Window(*(_moment(edges[name]) for name in ("window_start", "window_end")))
        held.setdefault(window, []).extend(rows)
    return held


def _moment(text: str) -> datetime:
    """As we write it; or as delta-rs does where it compacts, in UTC without saying so."""
    return utc_moment(text if text.endswith("Z") else f"{text}Z")
