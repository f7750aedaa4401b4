"""From what users write and systems know to what a plan pins."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from airflow_provider_streams.errors import IncompatibleSchemas, InvalidSchema
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.decoding import ANY_NAME, ANY_VERSION, Decoding, WriterSchema
from airflow_provider_streams.model.schema.payload import Auto, Avro, Bytes, Json, Registry, Utf8
from airflow_provider_streams.model.schema.types import Simple, columns


def avro(*fields):
    return WriterSchema("avro", json.dumps({"type": "record", "name": "R", "fields": list(fields)}))


def field(name, type_, **rest):
    return {"name": name, "type": type_, **rest}


def pinned(*versions, name="t"):
    known = {name: {str(number): schema for number, schema in enumerate(versions)}}
    return decoding_of(Auto(), None, known, "message")


def shown(decoding):
    return {one.name: str(one.type) for one in columns(decoding.value)}


ID = field("id", "long")


@pytest.mark.parametrize("known", [{}, {"a": {}, "b": {}}])
def test_a_schema_of_the_users_own_stands_for_all_versions_and_no_framing_is_read(known):
    decoding = decoding_of(Json("id long, at timestamp"), Utf8(), known, "message")
    assert decoding.framing == ""
    assert set(decoding.schemas) == (set(known) or {ANY_NAME})
    assert all(list(versions) == [ANY_VERSION] for versions in decoding.schemas.values())
    assert shown(decoding) == {"id": "long", "at": "timestamp"}
    assert decoding.key == Simple("string")
    assert decoding.key_schema == WriterSchema("utf8")


def test_a_decoding_outlives_json():
    decoding = pinned(avro(ID), avro(ID, field("tags", {"type": "array", "items": "string"}, default=[])))
    assert Decoding.from_json(json.loads(json.dumps(decoding.to_json()))) == decoding


def test_without_a_value_the_bytes_stay():
    decoding = decoding_of(None, Utf8(), {})
    assert decoding.value == Simple("binary")
    assert shown(decoding) == {"value": "binary"}


def test_a_name_without_schemas_holds_bytes():
    decoding = decoding_of(Auto(), None, {"t": {}}, "message")
    assert decoding.value == Simple("binary")
    assert decoding.schemas == {"t": {ANY_VERSION: WriterSchema("bytes")}}


@pytest.mark.parametrize("payload", [Auto(), Registry()])
def test_auto_without_anything_known_is_refused(payload):
    with pytest.raises(InvalidSchema, match="no schema"):
        decoding_of(payload, None, {})


def test_the_newest_version_decides_names_and_order_and_what_it_dropped_is_no_column():
    decoding = pinned(
        avro(field("gone", "string"), ID, field("customer", "string")),
        avro(
            field("name", ["null", "string"], aliases=["customer"]), field("id", "long"), field("k", "int", default=7)
        ),
    )
    assert shown(decoding) == {"name": "string", "id": "long", "k": "int"}


def test_the_last_version_is_the_newest_whatever_its_number():
    """A registry counts encodings: an old schema may get a new one."""
    known = {"t": {"1": avro(ID), "2": avro(ID, field("a", "int"))}}
    assert str(decoding_of(Auto(), None, known).value) == "struct<id: long, a: int>"
    known = {"t": {"2": avro(ID, field("a", "int")), "1": avro(ID)}}
    assert str(decoding_of(Auto(), None, known).value) == "struct<id: long>"


def test_a_field_that_an_older_version_lacks_is_null_or_its_default():
    decoding = pinned(avro(ID), avro(ID, field("a", "int"), field("b", "int", default=5)))
    a, b = columns(decoding.value)[1:]
    assert (a.nullable, a.default) == (True, None)
    assert (b.nullable, b.default) == (False, 5)


@pytest.mark.parametrize(
    ("older", "newest", "both"),
    [
        ("int", "long", "long"),
        ("long", "int", "long"),
        ("int", "float", "double"),
        ("long", "float", "double"),
        ("long", "double", "double"),
        ("float", "double", "double"),
        ("double", "float", "double"),
    ],
)
def test_numbers_are_widened_whichever_version_is_the_wider(older, newest, both):
    assert shown(pinned(avro(field("n", older)), avro(field("n", newest)))) == {"n": both}


def test_decimals_are_widened_on_both_sides_of_the_point():
    def money(precision, scale):
        return field("m", {"type": "bytes", "logicalType": "decimal", "precision": precision, "scale": scale})

    assert shown(pinned(avro(money(10, 2)), avro(money(12, 6)))) == {"m": "decimal(14,6)"}


def test_an_older_version_that_fits_not_the_newest_changes_no_column_and_is_no_error():
    decoding = pinned(avro(field("id", "string")), avro(ID, field("a", "int")))
    assert shown(decoding) == {"id": "long", "a": "int"}
    assert not columns(decoding.value)[1].nullable


def test_names_are_equals_and_a_field_that_any_has_is_a_column():
    known = {"a": {"0": avro(ID, field("x", "int"))}, "b": {"3": avro(field("y", "string"), field("id", "int"))}}
    decoding = decoding_of(Auto(), None, known, "message")
    assert shown(decoding) == {"id": "long", "x": "int", "y": "string"}
    assert [one.nullable for one in columns(decoding.value)] == [False, True, True]


def test_names_that_differ_are_refused_with_every_difference():
    known = {
        "a": {"0": avro(field("id", "string"), field("in", {"type": "map", "values": "int"}))},
        "b": {"0": avro(field("id", "bytes"), field("in", {"type": "map", "values": "string"}))},
    }
    with pytest.raises(IncompatibleSchemas) as raised:
        decoding_of(Auto(), None, known, "message")
    assert raised.value.differences == (
        "id is string and binary (a and b)",
        "in{} is int and string (a and b)",
    )


def test_names_that_differ_by_case_only_are_refused():
    known = {"a": {"0": avro(field("id", "long"))}, "b": {"0": avro(field("ID", "long"))}}
    with pytest.raises(IncompatibleSchemas, match="by case only"):
        decoding_of(Auto(), None, known, "message")


def test_a_topic_of_bytes_and_one_of_records_are_refused():
    with pytest.raises(IncompatibleSchemas, match="binary"):
        decoding_of(Auto(), None, {"a": {"0": avro(ID)}, "b": {}}, "message")


def pair(key, value, **rest):
    return WriterSchema("key_value", parts=(key, value), **rest)


def test_key_and_value_of_key_value_schemas():
    decoding = pinned(pair(WriterSchema("int32"), avro(ID)), pair(WriterSchema("int64"), avro(ID)))
    assert decoding.key == Simple("long")
    assert shown(decoding) == {"id": "long"}
    assert decoding.key_schema is None


def test_a_key_of_the_users_own_goes_before_a_schemas():
    decoding = decoding_of(Auto(), Bytes(), {"t": {"0": pair(WriterSchema("int32"), avro(ID))}}, "message")
    assert decoding.key == Simple("binary")


def test_keys_without_a_schema_stay_as_they_are_and_are_not_guessed():
    assert pinned(avro(ID)).key is None
    with pytest.raises(InvalidSchema, match="nothing of its keys"):
        decoding_of(Auto(), Auto(), {"t": {"0": avro(ID)}}, "message")
    with pytest.raises(InvalidSchema, match="only values"):
        decoding_of(Auto(), Registry(), {"t": {"0": avro(ID)}}, "message")


def test_keys_of_some_names_only_are_refused():
    known = {"a": {"0": pair(WriterSchema("utf8"), avro(ID))}, "b": {"0": avro(ID)}}
    with pytest.raises(IncompatibleSchemas, match="keys have no schema"):
        decoding_of(Auto(), None, known, "message")


def test_a_key_value_schema_without_its_parts_is_refused():
    with pytest.raises(InvalidSchema, match="key_value"):
        pinned(WriterSchema("key_value"))


def test_an_avro_schema_alone_is_its_row_type():
    decoding = decoding_of(Avro({"type": "record", "name": "R", "fields": [ID]}), None, {"t": {}})
    assert shown(decoding) == {"id": "long"}


EMPTY = {"type": "record", "name": "Empty", "fields": []}


@pytest.mark.parametrize(
    ("type_", "where"),
    [
        (EMPTY, "e"),
        (["null", EMPTY], "e"),
        (["null", "int", EMPTY], "e.member_empty"),
        ({"type": "array", "items": {"type": "map", "values": EMPTY}}, "e[]{}"),
        ({"type": "record", "name": "In", "fields": [field("inner", EMPTY)]}, "e.inner"),
    ],
)
def test_a_record_without_fields_is_refused_wherever_it_is(type_, where):
    with pytest.raises(InvalidSchema, match="without fields") as raised:
        pinned(avro(ID, field("e", type_)))
    assert raised.value.what == where
    with pytest.raises(InvalidSchema, match="without fields") as raised:
        pinned(pair(avro(field("e", type_)), avro(ID)))
    assert raised.value.what == f"the key: {where}"


def test_a_value_without_fields_is_refused_but_not_a_version_that_got_some():
    with pytest.raises(InvalidSchema, match="the value: it is a record without fields"):
        pinned(avro())
    assert shown(pinned(avro(), avro(ID))) == {"id": "long"}


def test_planning_loads_neither_arrow_nor_numpy():
    code = (
        "import sys\n"
        "from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of\n"
        "from airflow_provider_streams.formats.json.columns import of_avro_style\n"
        "from airflow_provider_streams.model.schema.payload import Auto, Avro, Json, Utf8\n"
        'schema = \'{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"long",'
        '"logicalType":"timestamp-millis"}}]}\'\n'
        "decoding_of(Avro(schema), Utf8(), {})\n"
        "decoding_of(Json('a int'), Utf8(), {})\n"
        "decoding_of(Auto(), None, {'t': {'0': of_avro_style(schema)}}, 'message')\n"
        "print({'pyarrow', 'numpy', 'google.protobuf', 'fastavro'} & set(sys.modules))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
