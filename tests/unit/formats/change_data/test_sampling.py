"""A plan learns columns, keys and shapes from a few messages, and from the former window."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import pytest

from airflow_provider_streams.errors import InvalidSchema, UnplannedColumns
from airflow_provider_streams.formats.change_data.decoder import ChangeDecoder
from airflow_provider_streams.formats.change_data.sampling import Sample, planned_format, with_columns
from airflow_provider_streams.model.schema.change_payload import Canal, Debezium, Maxwell
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.spark.error_transport import rebuild
from tests.unit.formats.change_data.debezium_messages import (
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


def samples(*values: Any, key: bytes | None = None) -> list[Sample]:
    return [Sample(raw(one), key) for one in values]


def test_a_schema_tells_columns_and_the_keys_schema_the_key() -> None:
    row = [
        field("id", "int64"),
        decimal_field("amount", 2, 12),
        field("at", "int64", "io.debezium.time.MicroTimestamp"),
    ]
    message = with_schema(change("c", {"id": 1, "amount": None, "at": None}), schema_of(row))
    found = planned_format(Debezium(), samples(message, key=key_of(id=1)))
    assert found.row == parse_columns("id long, amount decimal(12, 2), at timestamp_ntz")
    assert (found.keys, found.envelope, found.inferred) == (("id",), "debezium", ())


def test_schemas_of_several_messages_are_united() -> None:
    first = schema_of([field("id", "int32"), decimal_field("v", 2, 6)])
    last = schema_of([field("id", "int64"), decimal_field("v", 4, 8), field("new", "string")])
    found = planned_format(
        Debezium(), samples(with_schema(change("c", {}), first), b"", {"ts_ms": 1}, with_schema(change("c", {}), last))
    )
    assert found.row == parse_columns("id long, v decimal(8, 4), new string")


def test_json_shows_types_as_far_as_it_can() -> None:
    message = change("u", {"id": 1, "v": 1.5, "on": True, "name": None, "tags": ["a"], "at": None}, {"at": 5})
    found = planned_format(Debezium(), samples(message))
    assert str(found.row) == str(
        parse_columns("at long, id long, v double, on boolean, tags array<string>, name string")
    )
    assert set(found.inferred) == {"id", "v", "on", "tags", "at", "name"}


def test_declared_columns_come_first_and_decide() -> None:
    found = planned_format(Debezium("v decimal(12, 2)"), samples(change("u", {"id": 1, "v": "ASw="})))
    assert found.row == parse_columns("v decimal(12, 2), id long")
    assert (found.inferred, found.decimal_text) == (("id",), "base64")
    assert planned_format(Debezium("v decimal(12, 2)"), samples(change("u", {"v": "1.50"}))).decimal_text == "digits"
    both = samples(change("u", {"v": "1.50"}), change("u", {"v": "ASw="}))
    assert planned_format(Debezium("v decimal(12, 2)"), both).decimal_text == ""


def test_base64_without_a_scale_is_refused_and_the_setting_named() -> None:
    with pytest.raises(InvalidSchema, match=r"decimal\.handling\.mode"):
        planned_format(Debezium(), samples(change("c", {"id": 1, "amount": "ASw="})))


def test_a_former_windows_columns_stay() -> None:
    former = ChangeFormat(parse_columns("id long, gone string"), keys=("id",), decimal_text="digits")
    found = planned_format(Debezium(), samples(change("c", {"id": 1, "new": "x"})), former)
    assert found.row == parse_columns("id long, gone string, new string")
    assert (found.keys, found.decimal_text) == (("id",), "digits")
    assert planned_format(Debezium(), [], former).row == former.row


def test_a_window_without_changes_needs_columns_from_elsewhere() -> None:
    with pytest.raises(InvalidSchema, match="Declare them"):
        planned_format(Debezium(), samples({"ts_ms": 1}, b""))
    assert planned_format(Debezium("id long"), []).row == parse_columns("id long")


def test_a_column_of_two_types_is_refused() -> None:
    with pytest.raises(InvalidSchema, match="Declare the column"):
        planned_format(Debezium(), samples(change("c", {"v": 1}), change("c", {"v": "x"})))


def test_flattened_rows_are_known_by_their_shape() -> None:
    found = planned_format(Debezium(), samples({"id": 1, "__op": "c", "__deleted": "false"}, key=raw({"id": 1})))
    assert (found.envelope, found.row, found.keys) == ("flat", parse_columns("id long"), ("id",))
    with pytest.raises(InvalidSchema, match="ExtractNewRecordState"):
        planned_format(Debezium(), samples({"id": 1}, change("c", {"id": 1})))


def test_the_literal_key_default_is_no_key() -> None:
    assert planned_format(Debezium(), samples(change("c", {"id": 1}), key=b"default")).keys == ()


def test_documents_have_an_id_and_their_text() -> None:
    message = change("c", '{"_id": 1}', source={"connector": "mongodb", "name": "dbz"})
    found = planned_format(Debezium(), samples(message, key=raw({"id": "1"})))
    assert [one.name for one in found.row.fields] == ["_id", "document"]


def test_maxwell_and_canal_tell_their_keys() -> None:
    found = planned_format(Maxwell(), samples(MAXWELL))
    assert (str(found.row), found.keys) == (str(parse_columns("id long, m double, c string, comment string")), ("id",))
    found = planned_format(Canal(), samples(CANAL))
    assert found.row == parse_columns(
        "id int, name string, weight decimal(5, 2), at timestamp_ntz, raw binary, on byte"
    )
    assert found.keys == ("id",)


def test_a_read_that_met_a_new_column_is_planned_again_with_it() -> None:
    messages = [change("c", {"id": 1}), change("c", {"id": 2, "name": "a"}), change("c", {"id": 3, "name": "b"})]
    planned = planned_format(Debezium(), samples(messages[0]))
    with pytest.raises(UnplannedColumns) as error:
        ChangeDecoder(planned).decode(messages_of(messages))
    handed_on = rebuild("UnplannedColumns", str(error.value))
    assert isinstance(handed_on, UnplannedColumns)
    columns = parse_columns(handed_on.columns)
    again = ChangeDecoder(with_columns(planned, columns)).decode(messages_of(messages))
    assert [one["name"] for one in again.rows.to_pylist()] == [None, "a", "b"]


def test_a_format_is_the_same_after_json() -> None:
    found = ChangeFormat(parse_columns("id long, at timestamp_ntz(us)"), "flat", ("id",), "?", "digits", ("id",))
    assert ChangeFormat.from_json(found.to_json()) == found
    with pytest.raises(InvalidSchema, match="Rename it in the connector"):
        ChangeFormat(parse_columns("id long, _op string"))
    with pytest.raises(InvalidSchema, match="no column"):
        ChangeFormat(parse_columns("id long"), keys=("other",))


def test_declarations_check_themselves() -> None:
    assert Debezium({"id": "long"}).columns == "id long"
    for arguments in ({"columns": "id nothing"}, {"values": "avro"}, {"placeholder": ""}):
        with pytest.raises(InvalidSchema):
            Debezium(**arguments)  # type: ignore[arg-type]


def test_planning_loads_neither_arrow_nor_numpy() -> None:
    code = (
        "import sys, airflow_provider_streams.formats.change_data.sampling\n"
        "sys.exit(str([one for one in ('numpy', 'pyarrow') if one in sys.modules]) if "
        "{'numpy', 'pyarrow'} & set(sys.modules) else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("values", [([1], [], [None], None), (None, [None], [], [None, 1]), ([], [[]], None, [1])])
def test_lists_without_elements_show_no_type(values) -> None:
    found = planned_format(Debezium(), samples(*(change("c", {"id": 1, "v": one}) for one in values)))
    assert found.row == parse_columns("id long, v array<long>")


def test_lists_that_are_empty_everywhere_hold_text() -> None:
    found = planned_format(Debezium(), samples(change("c", {"v": None}), change("c", {"v": []})))
    assert found.row == parse_columns("v array<string>")


def test_all_elements_of_a_list_show_its_type() -> None:
    found = planned_format(Debezium(), samples(change("c", {"v": [{"a": 1}, None, {"b": ["x"]}]})))
    assert found.row == parse_columns("v array<struct<a long, b array<string>>>")


@pytest.mark.parametrize("pair", [([1], ["x"]), ({"a": {"b": 1}}, {"a": {"b": "x"}})])
def test_the_remedy_names_the_column_that_can_be_declared(pair) -> None:
    with pytest.raises(InvalidSchema, match=r"value=Debezium\('v <type>'\)"):
        planned_format(Debezium(), samples(*(change("c", {"v": one}) for one in pair)))


@pytest.mark.parametrize("name", ["_op", "_Position"])
def test_a_table_s_own_column_with_the_name_of_ours_is_refused(name) -> None:
    with pytest.raises(InvalidSchema, match=rf"{name}: .*Rename it in the connector"):
        planned_format(Debezium(), samples(change("c", {"id": 1, name: 2})))
