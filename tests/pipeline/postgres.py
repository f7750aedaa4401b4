"""A Postgres database with random transactions that wait for each other, and the settings of its connector."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from typing import Any
from urllib.parse import urlsplit

import psycopg

from stream_servers import PostgresServer

LOGICAL = {"wal_level": "logical", "max_replication_slots": "8", "max_wal_senders": "8"}
TABLES = {"orders": ("id",), "items": ("o", "l")}
"""The columns of each table's key."""
DECLARED = {
    "orders": "amount decimal(12, 2), doc string, at timestamp, d date, b binary, arr array<int>, f double",
    "items": "",
}
"""The columns whose types JSON without schemas does not tell."""
_MADE = """
CREATE TABLE orders (
    id int PRIMARY KEY, name text, amount numeric(12, 2), doc jsonb, big text, at timestamptz, d date, arr int[],
    b bytea, ok boolean, f double precision
);
CREATE TABLE items (o int, l int, qty bigint, note text, PRIMARY KEY (o, l));
"""
_WRITERS = 3
_FIRST = 10
LAST = 1000
"""The key of the row that is written last, in both tables."""


@dataclass
class Database:
    """The tables, and their writers."""

    server: PostgresServer
    seed: int
    _ended: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        """As psycopg takes it."""
        return self.server.url.replace("+psycopg", "")

    def make(self, *, whole_rows: bool) -> None:
        """The tables and their first rows; `whole_rows` lets the log hold all of an old row."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(_MADE)
            if whole_rows:
                connection.execute("ALTER TABLE orders REPLICA IDENTITY FULL")
            for key in range(_FIRST):
                connection.execute("INSERT INTO orders (id, name, big) VALUES (%s, 'first', %s)", (key, "y" * 9000))

    @contextmanager
    def written(self) -> Iterator[None]:
        """While transactions run; at the end, a last row of each table."""
        writers = [threading.Thread(target=self._write, args=(number,)) for number in range(_WRITERS)]
        for one in writers:
            one.start()
        try:
            yield
        finally:
            self._ended.set()
            for one in writers:
                one.join()
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute("INSERT INTO orders (id, name) VALUES (%s, 'last')", (LAST,))
            connection.execute("INSERT INTO items VALUES (%s, 1, 1, 'last')", (LAST,))

    def rows(self, table: str) -> list[dict[str, Any]]:
        """`SELECT *`, by key."""
        with psycopg.connect(self.url) as connection:
            found = connection.execute(f"SELECT * FROM {table} ORDER BY {', '.join(TABLES[table])}")  # type: ignore[arg-type]  # noqa: S608
            names = [one.name for one in found.description or ()]
            return [dict(zip(names, row, strict=True)) for row in found]

    def connector(self, *, with_schemas: bool) -> dict[str, str]:
        """The settings of the source in Debezium."""
        address = urlsplit(self.url)
        return {
            "debezium.source.connector.class": "io.debezium.connector.postgresql.PostgresConnector",
            "debezium.source.plugin.name": "pgoutput",
            "debezium.source.database.hostname": str(address.hostname),
            "debezium.source.database.port": str(address.port),
            "debezium.source.database.user": str(address.username),
            "debezium.source.database.password": str(address.password),
            "debezium.source.database.dbname": "postgres",
            "debezium.source.topic.prefix": "dbz",
            "debezium.source.schema.include.list": "public",
            "debezium.source.skipped.operations": "none",
            "debezium.source.provide.transaction.metadata": "true",
            "debezium.source.decimal.handling.mode": "precise" if with_schemas else "string",
            "debezium.format.value.schemas.enable": str(with_schemas).lower(),
        }

    def _write(self, number: int) -> None:
        chance = random.Random(self.seed * _WRITERS + number)
        with psycopg.connect(self.url) as connection:
            while not self._ended.is_set():
                # deadlocks among them, and transactions that are taken back
                with suppress(psycopg.Error), connection.transaction(force_rollback=chance.random() < 0.1):
                    for _ in range(chance.randrange(1, 4)):
                        connection.execute(*_statement(chance))
                time.sleep(chance.random() * 0.02)


def _statement(chance: random.Random) -> tuple[Any, Sequence[Any]]:  # noqa: PLR0911 - one for each kind
    key, name = chance.randrange(30), f"name {chance.randrange(9999)}"
    match chance.choices(range(7), (35, 20, 15, 6, 14, 8, 1))[0]:
        case 0:
            text = (
                "INSERT INTO orders VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s) ON CONFLICT (id) DO UPDATE SET "
            )
            return f"{text} name = excluded.name, amount = excluded.amount", (key, name, *_values(chance))
        case 1:  # the large column is not in the log then
            return "UPDATE orders SET name = %s, ok = %s WHERE id = %s", (name, chance.choice([True, None]), key)
        case 2:
            return "DELETE FROM orders WHERE id = %s", (key,)
        case 3:
            new = chance.randrange(30)
            text = "UPDATE orders SET id = %s WHERE id = %s AND NOT EXISTS (SELECT 1 FROM orders WHERE id = %s)"
            return text, (new, key, new)
        case 4:
            text = "INSERT INTO items VALUES (%s, %s, %s, %s) ON CONFLICT (o, l) DO UPDATE SET qty = excluded.qty"
            return text, (key % 6, chance.randrange(4), chance.randrange(-(2**62), 2**62), chance.choice([None, "n"]))
        case 5:
            return "DELETE FROM items WHERE o = %s", (key % 6,)
        case _:
            return "TRUNCATE items", ()


def _values(chance: random.Random) -> list[Any]:
    return [
        chance.choice([None, chance.randrange(-(10**11), 10**11) / 100]),
        json.dumps({"a": chance.randrange(99), "x": "\u00e9"}),
        "z" * chance.choice([3, 9000]) + str(chance.random()),
        datetime.fromtimestamp(chance.randrange(2**31), UTC),
        date(2000, 1, 1) + timedelta(days=chance.randrange(9999)),
        [chance.randrange(9), None],
        chance.randbytes(5),
        chance.choice([True, False, None]),
        chance.choice([1.5, -0.0, 1e300, None]),
    ]
