"""Messages from outside: whatever they hold, each is a row or has a cause, and the others do not notice."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import UnplannedColumns
from airflow_provider_streams.formats.change_data.decoder import ChangeDecoder, Changes
from airflow_provider_streams.model.schema.change_rows import ENVELOPES, ChangeFormat
from airflow_provider_streams.model.schema.ddl import parse_columns
from tests.seeds import examples
from tests.unit.formats.change_data.debezium_messages import (
    SOURCE,
    change,
    decimal_field,
    field,
    key_of,
    messages_of,
    raw,
    schema_of,
    with_schema,
)
from tests.unit.formats.change_data.test_mysql_json import CANAL, MAXWELL

COLUMNS = "id long, name string, v decimal(12, 2), at timestamp_ntz(us), day date, tags array<string>"
ROW = [
    field("id", "int64"), field("name", "string"), decimal_field("v", 2, 12),
    field("at", "int64", "io.debezium.time.MicroTimestamp"), field("day", "int32", "io.debezium.time.Date"),
    field("tags", "array", items={"type": "string", "optional": True}),
]  # fmt: skip
GOOD = {"id": 1, "name": "a", "v": "ASw=", "at": 5, "day": 3, "tags": ["x", None]}
SEEDS: list[Any] = [
    change("c", GOOD), change("u", GOOD, GOOD), change("d", None, GOOD), change("t"), {"ts_ms": 1}, GOOD,
    with_schema(change("c", GOOD), schema_of(ROW)), MAXWELL, CANAL, b"", None, {"id": 1, "__op": "d"},
]  # fmt: skip
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=5), st.sampled_from("cud")),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.sampled_from(["id", "op", "after", "before", "source", "schema", "payload", "fields", "type",
                                         "data", "old", "v", "__op"]), inner, max_size=4),
    ),
    max_leaves=12,
)  # fmt: skip


@st.composite
def spoiled(draw: st.DrawFn) -> bytes | None:
    """A message with a part replaced, or some bytes changed."""
    message = draw(st.sampled_from(SEEDS))
    if isinstance(message, dict) and draw(st.booleans()):
        message = json.loads(json.dumps(message))
        place: Any = message
        for _ in range(draw(st.integers(0, 3))):
            inner = [name for name, value in place.items() if isinstance(value, dict) and value]
            if not inner:
                break
            place = place[draw(st.sampled_from(inner))]
        place[draw(st.sampled_from(sorted(place)))] = draw(JSON)
    found = raw(message)
    if found and draw(st.booleans()):
        at = draw(st.integers(0, len(found) - 1))
        found = found[:at] + draw(st.binary(max_size=3)) + found[at + draw(st.integers(0, 3)) :]
    return found


def decode(messages: list[bytes | None], envelope: Any) -> Changes | None:
    """None: the plan lacks a column."""
    change_format = ChangeFormat(parse_columns(COLUMNS), envelope, ("id",), decimal_text="base64")
    keys: list[bytes | None] = [key_of(id=1)] * len(messages)
    try:
        return ChangeDecoder(change_format).decode(messages_of(messages, keys))
    except UnplannedColumns:
        return None


@settings(max_examples=examples(30), suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(spoiled(), min_size=1, max_size=4), st.sampled_from(ENVELOPES))
@example([raw(change("c", GOOD)), raw(change("t")).replace(b'"schema"', b'"chema"')], "debezium")
@example([raw(change("c", GOOD, source=SOURCE | {"connector": {}})), raw(change("c", GOOD))], "debezium")
@example([raw(change("c", GOOD)), raw(change("c", GOOD, source=SOURCE | {"connector": {}}))], "debezium")
@example([raw(change("c", GOOD, source=SOURCE | {"ts_ms": 0.5})), raw(change("c", GOOD))], "debezium")
@example([raw(change("c", "")), raw(change("c", GOOD))], "debezium")
@example([raw(change("c", GOOD)), raw(change("c", {"id": 1, "ame": "a"}, ""))], "debezium")
def test_each_message_is_read_as_if_it_were_alone(messages: list[bytes | None], envelope: str) -> None:
    together = decode(messages, envelope)
    alone = [decode([one], envelope) for one in messages]
    if together is None:
        assert None in alone
        return
    for row, one in enumerate(alone):
        if one is None:
            continue
        assert together.kinds[row] == one.kinds[0]
        assert (together.causes[row].as_py() is None) == (one.causes[0].as_py() is None)
        own = [
            {name: value for name, value in made.items() if name != "_position"} if made else None
            for made, owner in zip(together.rows.to_pylist(), together.messages.tolist(), strict=True)
            if owner == row
        ]
        expected = [
            {name: value for name, value in made.items() if name != "_position"} if made else None
            for made in one.rows.to_pylist()
        ]
        assert own == expected


def test_a_schema_in_each_message_takes_bounded_time_and_memory() -> None:
    messages = [with_schema(change("c", {"id": n}), schema_of([field("id", "int64", doc=str(n))])) for n in range(90)]
    decoder = ChangeDecoder(ChangeFormat(parse_columns("id long")))
    found = decoder.decode(messages_of(messages))
    assert found.causes.null_count == 90
    assert [one["id"] for one in found.rows.to_pylist()] == list(range(90))
    assert len(decoder._reader._readers) <= 64


@pytest.mark.parametrize(
    "message", [b'{"schema":' * 5000, b"[" * 100_000, b'{"schema":{"type":"struct","fields":' + b"[" * 9000]
)
def test_deep_messages_are_named(message: bytes) -> None:
    found = decode([raw(change("c", GOOD)), message], "debezium")
    assert found is not None
    assert found.causes.null_count == 1


def test_many_messages_that_no_layout_fits_take_bounded_time() -> None:
    messages = [raw(change("c", {**GOOD, "id": str(n)}, **{f"f{n}": n})) for n in range(300)]
    found = decode([raw(change("c", GOOD)), *messages], "debezium")
    assert found is not None
    assert found.causes.null_count == 1


def test_good_messages_are_read_behind_many_bad_ones() -> None:
    bad = [b"{", b"[]", b"\xff", raw(change("c", {**GOOD, "id": "x"}))] * 300
    found = decode([*bad, raw(change("c", GOOD))], "debezium")
    assert found is not None
    assert found.causes.null_count == 1
    assert found.rows[len(bad)].as_py()["id"] == 1
    assert found.rows.null_count == len(bad)
