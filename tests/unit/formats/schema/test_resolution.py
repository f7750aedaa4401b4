"""Older versions in the newest one's words: aliases, names that are used again, enums, numbers."""

from __future__ import annotations

import io
import json
import struct

import fastavro
import pyarrow as pa
import pytest

from airflow_provider_streams.errors import IncompatibleSchemas
from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.formats.json.columns import of_avro_style
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.decoding import Decoding, WriterSchema
from airflow_provider_streams.model.schema.payload import Auto

NULLABLE = ["null", "string"]


def field(name, type_="string", *aliases, **rest):
    return {"name": name, "type": type_, **({"aliases": list(aliases)} if aliases else {}), **rest}


def record(*fields, name="R", **rest):
    return {"type": "record", "name": name, "fields": list(fields), **rest}


def enum(*symbols, name="E", **rest):
    return {"type": "enum", "name": name, "symbols": list(symbols), **rest}


def avro(schema):
    return WriterSchema("avro", json.dumps(schema))


def written(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def pinned(**topics):
    known = {name: {str(at): one for at, one in enumerate(versions)} for name, versions in topics.items()}
    return Decoding.from_json(json.loads(json.dumps(decoding_of(Auto(), None, known, "message").to_json())))


def decoded(decoding, payload, version=0, topic="t"):
    """The row of one payload and its cause."""
    named = pa.array([struct.pack(">q", version)])
    found = Decoder(decoding, topic).decode(Payloads(pa.array([payload], pa.binary()), None, named))
    return found.value.to_pylist()[0], found.causes.to_pylist()[0]


def landed(value, *versions, number=0):
    """The row of a value of one of the versions."""
    row, cause = decoded(pinned(t=[*map(avro, versions)]), written(versions[number], value), number)
    assert cause is None
    return row


STATUS = record(field("status"))
STATE = record(field("state", "string", "status"))
BOTH = record(field("state", "string", "status"), field("status", NULLABLE, default=None))
MORE = record(*BOTH["fields"], field("more", "int", default=5))


@pytest.mark.parametrize(
    ("versions", "number", "value", "want"),
    [
        ((STATUS, STATE, BOTH), 0, {"status": "paid"}, {"state": "paid", "status": None}),
        ((STATUS, BOTH), 0, {"status": "paid"}, {"state": "paid", "status": None}),
        ((STATUS, STATE, BOTH), 1, {"state": "paid"}, {"state": "paid", "status": None}),
        # the version still has the field that the old name became: it has two fields, as the newest one
        (
            (STATUS, STATE, BOTH, MORE),
            2,
            {"state": "paid", "status": "new"},
            {"state": "paid", "status": "new", "more": 5},
        ),
        ((STATUS, STATE, BOTH, MORE), 0, {"status": "paid"}, {"state": "paid", "status": None, "more": 5}),
    ],
)
def test_a_new_field_of_an_old_name_does_not_get_the_values_of_the_renamed_one(versions, number, value, want):
    assert landed(value, *versions, number=number) == want


@pytest.mark.parametrize(
    ("versions", "value", "want"),
    [
        # aliases of the writer count for nothing
        ((record(field("b", "int", "a")), record(field("a", "int", default=7))), {"b": 1}, {"a": 7}),
        # nor those of versions between
        (
            (record(field("a", "int")), record(field("b", "int", "a")), record(field("c", "int", "b", default=7))),
            {"a": 1},
            {"c": 7},
        ),
        # of swapped names, each keeps its own value, as in Java
        (
            (record(field("a", "int"), field("b", "int")), record(field("a", "int", "b"), field("b", "int", "a"))),
            {"a": 1, "b": 2},
            {"a": 1, "b": 2},
        ),
        (
            (record(field("a", "int"), field("b", "int")), record(field("b", "int", "a"), field("c", "int", "b"))),
            {"a": 1, "b": 2},
            {"b": 1, "c": 2},
        ),
        # aliases of a record's fields count where the record is the same, by its name or an alias
        (
            (
                record(field("r", record(field("a", "int"), name="Old"))),
                record(
                    field(
                        "r",
                        record(field("b", "int", "a"), field("a", "int", default=9), name="New", aliases=["Old"]),
                    )
                ),
            ),
            {"r": {"a": 1}},
            {"r": {"b": 1, "a": 9}},
        ),
        (
            (
                record(field("r", record(field("a", "int"), name="Old"))),
                record(field("r", record(field("b", "int", "a", default=8), field("a", "int", default=9), name="New"))),
            ),
            {"r": {"a": 1}},
            {"r": {"b": 8, "a": 1}},
        ),
        (
            (
                record(field("r", {"type": "array", "items": {"type": "map", "values": STATUS | {"name": "S"}}})),
                record(field("r", {"type": "array", "items": {"type": "map", "values": BOTH | {"name": "S"}}})),
            ),
            {"r": [{"k": {"status": "paid"}}]},
            {"r": [[("k", {"state": "paid", "status": None})]]},
        ),
    ],
)  # fmt: skip
def test_only_the_newest_versions_aliases_rename_and_each_field_is_used_once(versions, value, want):
    assert landed(value, *versions) == want


def test_a_type_whose_old_name_is_used_again_is_found_by_its_alias():
    def union(*branches):
        return record(field("v", ["null", "int", *branches]))

    one, two = record(field("x", "int"), name="One"), record(field("x", "int"), name="Two", aliases=["One"])
    found = landed({"v": ("One", {"x": 1})}, union(one), union(one, two))
    assert found == {"v": {"member_int": None, "member_one": None, "member_two": {"x": 1}}}


def test_fields_that_would_become_one_make_their_version_unfit():
    versions = record(field("p"), field("q")), record(field("r", NULLABLE, "p", "q", default=None))
    row, cause = decoded(pinned(t=[*map(avro, versions)]), written(versions[0], {"p": "1", "q": "2"}))
    assert row is None
    assert cause == "its schema version 0 does not fit the plan's columns: p and q would both be r"


@pytest.mark.parametrize(
    ("newest", "want"),
    [
        (enum("A", "C", default="A"), ["A", "A", "C"]),
        (enum("A", "C", name="F", aliases=["E"], default="C"), ["A", "C", "C"]),
        (["null", "int", enum("A", "C", default="A")], ["A", "A", "C"]),
        # without a default nothing replaces it
        (enum("A", "C"), ["A", "B", "C"]),
        (enum("C", "B", "A", default="C"), ["A", "B", "C"]),
    ],
)
def test_a_symbol_that_the_newest_version_lacks_is_its_default(newest, want):
    older, newest = record(field("e", enum("A", "B", "C"))), record(field("e", newest))
    rows = [landed({"e": symbol}, older, newest)["e"] for symbol in "ABC"]
    assert [one if isinstance(one, str) else one["member_e"] for one in rows] == want


@pytest.mark.parametrize("older", ["double", "float"])
def test_a_long_of_the_newest_version_is_not_rounded_for_older_floats(older):
    versions = [record(field("n", older)), record(field("n", "long"))]
    decoding = pinned(t=[*map(avro, versions)])
    most = (1 << 63) - 1
    assert decoded(decoding, written(versions[1], {"n": most}), 1) == ({"n": most}, None)
    row, cause = decoded(decoding, written(versions[0], {"n": 0.5}))
    assert row is None
    assert cause == f"its schema version 0 does not fit the plan's columns: n is long and {older}"


def test_topics_whose_numbers_no_type_holds_exactly_are_refused():
    topics = {name: [avro(record(field("n", type_)))] for name, type_ in (("a", "long"), ("b", "double"))}
    with pytest.raises(IncompatibleSchemas, match="n is long and double"):
        pinned(**topics)


def test_fields_of_several_topics_are_one_by_their_names_alone():
    """Each topic's versions are renamed as its own newest one says."""
    renamed, other = [avro(STATUS), avro(STATE)], [avro(STATUS)]
    for topics in ({"t": renamed, "u": other}, {"u": other, "t": renamed}):
        decoding = pinned(**topics)
        paid = written(STATUS, {"status": "paid"})
        assert decoded(decoding, paid, topic="t") == ({"state": "paid", "status": None}, None)
        assert decoded(decoding, paid, topic="u") == ({"state": None, "status": "paid"}, None)


def test_json_fields_are_renamed_by_the_newest_versions_aliases():
    nested = [record(field("r", one | {"name": "S"})) for one in (STATUS, BOTH)]
    decoding = pinned(t=[of_avro_style(json.dumps(one)) for one in nested])
    want = {"r": {"state": "paid", "status": None}}
    assert decoded(decoding, b'{"r":{"status":"paid"}}') == (want, None)
    assert decoded(decoding, b'{"r":{"state":"paid","status":null}}', 1) == (want, None)


def test_keys_and_values_of_one_schema_are_renamed_each_by_its_own():
    versions = [
        WriterSchema("key_value", parts=(avro(key), avro(value)))
        for key, value in ((STATUS, record(field("a", "int"))), (BOTH, record(field("b", "int", "a"))))
    ]
    decoder = Decoder(pinned(t=versions), "t")
    key = pa.array([written(STATUS, {"status": "paid"})], pa.binary())
    found = decoder.decode(Payloads(pa.array([b"\2"], pa.binary()), key, pa.array([struct.pack(">q", 0)])))
    assert found.value.to_pylist() == [{"b": 1}]
    assert found.key.to_pylist() == [{"state": "paid", "status": None}]


def test_a_renamed_field_keeps_its_values_where_the_record_was_renamed_without_an_alias():
    older = record(field("cents", "int"), name="v1.Order")
    newest = record(field("total", "int", "cents", default=0), name="v2.Order")
    assert landed({"cents": 111}, older, newest) == {"total": 111}


def fixed(size, name="F", **rest):
    return {"type": "fixed", "name": name, "size": size, **rest}


def bad(value, older, newest):
    """Why a value of the older version does not land."""
    row, cause = decoded(pinned(t=[avro(older), avro(newest)]), written(older, value))
    assert row is None
    return cause


UNLIKE = "{}: does not fit the plan's columns: it is {}, and in the newest version {}"


@pytest.mark.parametrize(
    ("older", "newest", "value", "is_and_was"),
    [
        ("string", enum("A"), "A", ("string", "the enum E")),
        ("string", ["null", enum("A")], "A", ("string", "the enum E")),
        ("string", ["int", enum("A")], "A", ("string", "the enum E")),
        (["null", "string"], ["null", enum("A")], "A", ("string", "the enum E")),
        ("bytes", fixed(2), b"ab", ("bytes", "the fixed F of 2 bytes")),
        (fixed(2), "bytes", b"ab", ("the fixed F of 2 bytes", "bytes")),
        (fixed(2), fixed(3), b"ab", ("the fixed F of 2 bytes", "the fixed F of 3 bytes")),
        (fixed(2), fixed(2, "G"), b"ab", ("the fixed F of 2 bytes", "the fixed G of 2 bytes")),
        (enum("A"), enum("A", name="G"), "A", ("the enum E", "the enum G")),
    ],
)
def test_what_avro_does_not_promote_is_bad_though_it_is_one_column(older, newest, value, is_and_was):
    older, newest = (record(field("v", one), field("n", "int")) for one in (older, newest))
    assert bad({"v": value, "n": 1}, older, newest) == UNLIKE.format("v", *is_and_was)


def test_only_values_that_are_there_are_unlike_in_arrays_long_and_short_and_in_maps():
    for many in (1, 100):
        older, newest = (
            record(field("v", {"type": "array", "items": ["null", {"type": "map", "values": one}]}))
            for one in ("string", enum("A"))
        )
        decoder = Decoder(pinned(t=[avro(older), avro(newest)]), "t")
        values = [[], [None, {}], [{"k": "A"}], [None]] * many
        rows = pa.array([written(older, {"v": one}) for one in values], pa.binary())
        found = decoder.decode(Payloads(rows, None, pa.array([bytes(8)] * len(rows), pa.binary())))
        assert [row and row["v"] for row in found.value.to_pylist()] == [[], [None, []], None, [None]] * many
        assert [cause is None for cause in found.causes.to_pylist()] == [True, True, False, True] * many


@pytest.mark.parametrize(
    ("older", "newest", "value", "want"),
    [
        (fixed(2, "a.F"), fixed(2, "b.F"), b"ab", b"ab"),
        (fixed(2, "F"), fixed(2, "G", aliases=["F"]), b"ab", b"ab"),
        (enum("A", "B", name="a.E"), enum("A", name="b.E", default="A"), "B", "A"),
        (enum("A"), "string", "A", "A"),
        (enum("A"), ["null", "string"], "A", "A"),
    ],
)
def test_what_is_alike_lands(older, newest, value, want):
    """Names count without their namespace, as the specification says; a symbol is text."""
    assert landed({"v": value}, record(field("v", older)), record(field("v", newest))) == {"v": want}


@pytest.mark.parametrize(("older", "newest"), [("string", enum("A")), (fixed(2), fixed(3)), ("bytes", fixed(3))])
def test_as_text_takes_what_avro_does_not_promote(older, newest):
    schemas = {str(at): avro(record(field("v", one))) for at, one in enumerate((older, newest))}
    value = "é" if older == "string" else b"ab"
    decoding = decoding_of(Auto(as_text=True), None, {"t": schemas}, "message")
    assert decoded(decoding, written(record(field("v", older)), {"v": value})) == ({"v": value}, None)


def address(name, *fields):
    return record(field("to", ["null", record(*fields, name=name)]))


def test_a_record_that_moved_to_another_namespace_keeps_the_values_of_its_renamed_fields():
    """By the specification both are the same: unqualified names count. Java drops the value for the default."""
    older = address("a.Address", field("street"))
    newest = address("b.Address", field("road", "string", "street", default=""))
    assert landed({"to": {"street": "x"}}, older, newest) == {"to": {"road": "x"}}


def test_a_record_of_another_name_whose_value_would_be_dropped_is_bad():
    older = address("Address", field("street"))
    newest = address("Place", field("road", "string", "street", default=""))
    cause = bad({"to": {"street": "x"}}, older, newest)
    assert cause == (
        "to: does not fit the plan's columns: it is the record Address, of which Place has no alias: "
        "street would not become road"
    )
    assert landed({"to": None}, older, newest) == {"to": None}
    renamed = address("Place", field("street"), field("road", "string", "way", default=""))
    assert landed({"to": {"street": "x"}}, older, renamed) == {"to": {"street": "x", "road": ""}}


def test_of_two_records_of_one_unqualified_name_a_value_is_of_its_own():
    def union(*fields):
        names = ("a.R", "b.R")
        return record(
            field("v", ["int", *(record(field("x", one), name=name) for name, one in zip(names, fields, strict=True))])
        )

    older, newest = union("int", "string"), union("int", enum("A"))
    assert landed({"v": ("a.R", {"x": 1})}, older, newest)["v"]["member_a_r"] == {"x": 1}
    assert bad({"v": ("b.R", {"x": "A"})}, older, newest) == UNLIKE.format("v.x", "string", "the enum E")
