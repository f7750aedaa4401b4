"""Whether the field that is to be an event's time can be it: told when a window is planned."""

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.plan.plan import Estimate, Plan, SourceRef
from airflow_provider_streams.model.plan.row_filter import FieldFilter, RowFilter
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.model.schema.event_time_field import checked, column_of, type_of
from airflow_provider_streams.model.schema.types import ArrayOf, Field, Simple, StructOf
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.window.window import Window

NOW = datetime(2026, 11, 20, tzinfo=UTC)
ROW = StructOf(
    (
        Field("id", Simple("long")),
        Field("at", Simple("timestamp")),
        Field("day", Simple("date")),
        Field("note", Simple("string")),
        Field("tags", ArrayOf(Simple("timestamp"))),
        Field("meta", StructOf((Field("at", Simple("timestamp_ntz")), Field("n", Simple("int"))))),
    )
)


def plan(field, unit=None, row=ROW):
    empty = Cut({})
    return Plan(
        reader="r",
        source=SourceRef("pulsar", "c", ("shop/orders/events",)),
        window=Window(NOW, NOW.replace(hour=1)),
        basis="event",
        filter=FieldFilter(field, 0, 1, unit),
        start_cut=empty,
        end_cut=empty,
        ranges=(),
        splits=(),
        estimate=Estimate(0),
        observed_at=NOW,
        head=empty,
        decoding=Decoding(row),
    )


@pytest.mark.parametrize(
    ("field", "unit"), [("at", None), ("day", None), ("meta.at", None), ("id", "ms"), ("meta.n", "s")]
)
def test_times_and_numbers_with_a_unit_can_be_it(field, unit):
    asked = plan(field, unit)
    assert checked(asked) is asked


@pytest.mark.parametrize(
    ("field", "unit", "why"),
    [
        ("created", None, "there is no such field"),
        ("meta.created", None, "there is no such field"),
        ("at.more", None, "there is no such field"),
        ("id", None, r"it is a number \(long\): say in which unit"),
        ("at", "ms", r"it is a time \(timestamp\) already: leave unit out"),
        ("note", None, "string is no time"),
        ("note", "ms", "string is no time"),
        ("tags", None, "array<timestamp> is no time"),
        ("meta", None, "is no time"),
    ],
)
def test_what_cannot_be_it_is_refused_naming_those_that_can(field, unit, why):
    with pytest.raises(InvalidRequest, match=rf"shop/orders/events: event_time='{field}': .*{why}") as caught:
        checked(plan(field, unit))
    assert "Fields that can be: id (with unit), at, day" in str(caught.value)


def test_a_single_value_is_the_field_value():
    assert checked(plan("value", row=Simple("timestamp")))
    with pytest.raises(InvalidRequest, match="Fields that can be: value"):
        checked(plan("at", row=Simple("timestamp")))


def test_other_plans_are_not_looked_at():
    for other in (replace(plan("no"), filter=RowFilter("event_time", 0, 1)), replace(plan("no"), decoding=None)):
        assert checked(other) is other


def test_the_column_to_read_is_the_outermost():
    decoding = Decoding(ROW)
    assert [column_of(decoding, path) for path in ("at", "meta.at")] == ["at", "meta"]
    dotted = StructOf((Field("meta.at", Simple("date")), *ROW.fields))
    assert column_of(Decoding(dotted), "meta.at") == "meta.at"
    assert type_of(dotted, "meta.at") == Simple("date")


def test_ddl_makes_such_fields():
    assert type_of(parse_columns("at timestamp, n long"), "at") == Simple("timestamp")
