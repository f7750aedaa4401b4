from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import Text
from sqlalchemy.dialects import mysql, postgresql, sqlite
from sqlalchemy.schema import CreateIndex, CreateTable

from airflow_provider_streams.journal.tables import Json, Moment, digest, metadata

DIALECTS = [sqlite.dialect(), postgresql.dialect(), mysql.dialect()]


@given(st.datetimes(timezones=st.just(UTC)))
def test_a_moment_comes_back_to_the_microsecond(moment):
    stored = Moment().process_bind_param(moment, DIALECTS[0])
    assert isinstance(stored, int)
    assert Moment().process_result_value(stored, DIALECTS[0]) == moment


@given(st.datetimes(timezones=st.just(UTC)), st.datetimes(timezones=st.just(UTC)))
def test_stored_moments_are_ordered_like_moments(first, second):
    stored = [Moment().process_bind_param(moment, DIALECTS[0]) for moment in (first, second)]
    assert (stored[0] < stored[1]) == (first < second)


def test_a_moment_of_another_zone_is_the_same_moment():
    utc = datetime(2026, 11, 20, 10, tzinfo=UTC)
    there = utc.astimezone(timezone(timedelta(hours=5, minutes=30)))
    assert Moment().process_bind_param(there, DIALECTS[0]) == Moment().process_bind_param(utc, DIALECTS[0])


def test_a_naive_moment_cannot_be_stored():
    with pytest.raises(TypeError):
        Moment().process_bind_param(datetime(2026, 11, 20), DIALECTS[0])  # noqa: DTZ001


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_every_table_can_be_written_in_every_dialect(dialect):
    for table in metadata.sorted_tables:
        assert str(CreateTable(table).compile(dialect=dialect))
        for index in table.indexes:
            assert str(CreateIndex(index).compile(dialect=dialect))


def test_mysql_stores_plans_of_megabytes_in_transactional_tables():
    statement = str(CreateTable(metadata.tables["streams_pins"]).compile(dialect=mysql.dialect()))
    assert "plan LONGTEXT NOT NULL" in statement
    assert "ENGINE=InnoDB" in statement
    assert "CHARSET=utf8mb4" in statement


def test_no_index_holds_a_text_of_unbounded_length():
    for table in metadata.tables.values():
        constraints = [table.primary_key, *table.constraints, *table.indexes]
        for column in (column for constraint in constraints for column in constraint.columns):
            bounded = not isinstance(column.type, Text | Json) and (getattr(column.type, "length", 0) or 0) <= 64
            assert bounded, f"{table.name}.{column.name}"


def test_tables_stand_aside_from_others_in_a_shared_database():
    assert all(name.startswith("streams_") for name in metadata.tables)


def test_names_that_differ_only_by_case_have_other_digests():
    assert digest("a") != digest("A")
    assert len(digest("x" * 100_000)) == 64
