"""Journals as earlier releases have written them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from alembic import command
from alembic.config import Config
from sqlalchemy import Connection, column, insert, table, text

from airflow_provider_streams.journal import migrate


def rows_of(revision: str) -> dict[str, Any]:
    """What the release of a revision wrote (`rows`), and what it said of that."""
    written: dict[str, Any] = json.loads((Path(__file__).parent / "data" / f"revision_{revision}.json").read_text())
    return written


def write_as(connection: Connection, written: dict[str, Any]) -> None:
    """An empty database gets the tables of an earlier revision, and its rows."""
    config = Config()
    config.set_main_option("script_location", str(Path(migrate.__file__).parent / "migrations"))
    config.attributes["connection"] = connection
    command.upgrade(config, written["revision"])
    for name, rows in written["rows"].items():
        connection.execute(insert(table(name, *map(column, rows[0]))), rows)
        if connection.dialect.name == "postgresql":  # the rows came with their numbers: the next ones follow
            last = f"SELECT setval(pg_get_serial_sequence('{name}', 'id'), (SELECT max(id) FROM {name}))"  # noqa: S608 - our tables
            connection.execute(text(last))
