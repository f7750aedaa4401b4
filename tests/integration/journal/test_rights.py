"""A Postgres journal whose user may not write it: the reader fails for good, and an inspection says so before."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from sqlalchemy import NullPool, create_engine, insert, make_url, text

from airflow_provider_streams.errors import JournalError
from airflow_provider_streams.journal.database import Database
from airflow_provider_streams.journal.inspection import inspect_journal
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.journal.tables import digest, sources

_RIGHTS = {
    "read-only": "GRANT ALL ON ALL TABLES IN SCHEMA public TO reader; ALTER ROLE reader "
    "SET default_transaction_read_only = on",
    "no right to INSERT": "GRANT SELECT ON ALL TABLES IN SCHEMA public TO reader",
}


@pytest.fixture
def url(postgres_url) -> Iterator[str]:
    server = create_engine(postgres_url, poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with server.connect() as connection:
        connection.execute(text("CREATE DATABASE journal_rights"))
    yield server.url.set(database="journal_rights").render_as_string(hide_password=False)
    with server.connect() as connection:
        connection.execute(text("DROP DATABASE journal_rights WITH (FORCE)"))


@pytest.mark.parametrize("reason", list(_RIGHTS))
@pytest.mark.postgres
def test_a_user_who_may_not_write_is_refused_for_good_and_this_is_foreseen(url, reason):
    Journal.open(url).close()
    admin = create_engine(make_url(url), poolclass=NullPool, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        for statement in ("CREATE ROLE reader LOGIN PASSWORD 'hunter2'", *_RIGHTS[reason].split("; ")):
            connection.execute(text(statement))
    theirs = make_url(url).set(username="reader", password="hunter2").render_as_string(hide_password=False)
    try:
        with pytest.raises(JournalError, match=reason) as foreseen:
            inspect_journal(theirs, datetime.now(UTC))
        with pytest.raises(JournalError, match=r"(Let|Grant) this user") as caught:
            Database(theirs).insert_once(insert(sources).values(digest=digest("one"), source_key="one"))
    finally:
        with admin.connect() as connection:
            connection.execute(text("DROP OWNED BY reader"))
            connection.execute(text("DROP ROLE reader"))
    assert not caught.value.retryable
    assert "hunter2" not in f"{foreseen.value}{caught.value}"
