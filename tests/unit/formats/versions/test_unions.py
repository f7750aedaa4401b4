"""Unions of one schema version as those of another: each value lands in a branch that takes it, or its row is bad."""

from __future__ import annotations

import io
import json
import random
import struct

import fastavro
import pyarrow as pa
import pytest
from fastavro.read import SchemaResolutionError
from hypothesis import given, settings
from hypothesis import strategies as st

from airflow_provider_streams.errors import IncompatibleSchemas
from airflow_provider_streams.formats.decoder import Decoder, Payloads
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.decoding import Decoding, WriterSchema
from airflow_provider_streams.model.schema.payload import Auto
from tests.seeds import examples

EXAMPLES = examples(150)


def holding(type_):
    return {"type": "record", "name": "Row", "fields": [{"name": "v", "type": type_}]}


def record(name, *fields, **rest):
    return {"type": "record", "name": name, "fields": [{"name": one, "type": "int"} for one in fields], **rest}


def enum(name, *symbols, **rest):
    return {"type": "enum", "name": name, "symbols": list(symbols), **rest}


def written(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), {"v": value})
    return out.getvalue()


def pinned(**topics):
    """The decoding of topics, each of several versions, as a plan keeps it."""
    known = {
        name: {str(number): WriterSchema("avro", json.dumps(holding(one))) for number, one in enumerate(versions)}
        for name, versions in topics.items()
    }
    return Decoding.from_json(json.loads(json.dumps(decoding_of(Auto(), None, known, "message").to_json())))


def landed(older, newest, *values):
    """What values of the older version become as the newest's column, and the causes."""
    return decoded(pinned(t=[older, newest]), older, values)


def decoded(decoding, older, values):
    """The column and causes of values of the first version of the topic t."""
    rows = pa.array([written(holding(older), value) for value in values], pa.binary())
    found = Decoder(decoding, "t").decode(Payloads(rows, None, pa.array([struct.pack(">q", 0)] * len(values))))
    return [one and one["v"] for one in found.value.to_pylist()], found.causes.to_pylist()


LOST = "v: the plan's columns have no branch for its {} (schema version 0)"


@pytest.mark.parametrize(
    ("older", "newest", "value", "want"),
    [
        (["null", "string", "long"], ["null", "string", "double"], 5, {"member_string": None, "member_double": 5.0}),
        (["int", "string"], ["string", "long"], 5, {"member_string": None, "member_long": 5}),
        (["int", "string"], ["string", "float"], 5, {"member_string": None, "member_float": 5.0}),
        # a float would round it: the column is wide enough, as outside unions
        (["int", "string"], ["string", "float"], 16_777_217, {"member_string": None, "member_float": 16_777_217.0}),
        # the same branch goes before a wider one
        (["long", "string"], ["double", "long"], 1 << 60, {"member_double": None, "member_long": 1 << 60}),
        (["string", "int"], "double", 5, 5.0),
        ("int", ["string", "long"], 5, {"member_string": None, "member_long": 5}),
        ("string", ["null", "int", "string"], "x", {"member_int": None, "member_string": "x"}),
        ([record("R1", "x"), "int"], [record("R2", "x", aliases=["R1"]), "int"], {"x": 5},
         {"member_r2": {"x": 5}, "member_int": None}),
        ([record("a.R1", "x"), "int"], [record("b.R2", "x", aliases=["a.R1"]), "int"], {"x": 5},
         {"member_r2": {"x": 5}, "member_int": None}),
        (["int", enum("E1", "A")], ["int", enum("E2", "A", aliases=["E1"])], "A",
         {"member_int": None, "member_e2": "A"}),
        ([record("R1", "x"), record("R2", "y")], record("R1", "x"), ("R1", {"x": 5}), {"x": 5}),
        (record("R1", "x"), [record("R2", "y"), record("R1", "x")], {"x": 5},
         {"member_r2": None, "member_r1": {"x": 5}}),
        ([record("R1", "x"), record("R2", "x"), "int"], ["int", record("R3", "x", aliases=["R1", "R2"])],
         ("R2", {"x": 5}), {"member_int": None, "member_r3": {"x": 5}}),
    ],
)  # fmt: skip
def test_a_value_lands_in_the_branch_that_takes_it(older, newest, value, want):
    assert landed(older, newest, value) == ([want], [None])


@pytest.mark.parametrize(
    ("older", "newest", "value", "branch"),
    [
        (["null", "string", "long"], ["null", "string"], 5, "long"),
        (["null", "string", "long"], ["null", "string", "boolean"], 5, "long"),
        (["string", "double"], ["string", "float"], 1.5, "double"),
        (["string", "long"], ["string", "int"], 5, "long"),
        (["string", "bytes"], ["string", "int"], b"x", "bytes"),
        ([record("R1", "x"), record("R2", "y")], record("R1", "x"), ("R2", {"y": 5}), "r2"),
        (["string", {"type": "int", "logicalType": "date"}], ["string", "int"], 5, "int"),
    ],
)
def test_a_value_of_a_branch_that_went_makes_its_row_bad_and_no_other(older, newest, value, branch):
    other = ("R1", {"x": 1}) if branch == "r2" else "kept"
    values, causes = landed(older, newest, other, value, other)
    assert causes == [None, LOST.format(branch), None]
    assert values[1] is None
    assert None not in (values[0], values[2])


UNFIT = "its schema version 0 does not fit the plan's columns: {}"
TO_TEXT = [record("R", "x") | {"fields": [{"name": "x", "type": ["null", type_]}]} for type_ in ("int", "string")]


@pytest.mark.parametrize(
    ("older", "newest", "good", "bad", "cause"),
    [
        (["null", "boolean"], ["null", "long", "string"], None, True, LOST.format("boolean")),
        (["null", "boolean"], ["null", "long"], None, True, UNFIT.format("v is long and boolean")),
        ({"type": "array", "items": "boolean"}, {"type": "array", "items": "long"}, [], [True],
         UNFIT.format("v[] is long and boolean")),
        ({"type": "map", "values": "boolean"}, {"type": "map", "values": "long"}, {}, {"k": True},
         UNFIT.format("v{} is long and boolean")),
        (*TO_TEXT, {"x": None}, {"x": 1}, UNFIT.format("v.x is string and int")),
        ([TO_TEXT[0], "int"], ["int", TO_TEXT[1]], ("R", {"x": None}), ("R", {"x": 1}),
         UNFIT.format("v.x is string and int")),
        ([TO_TEXT[0], "int"], TO_TEXT[1], ("R", {"x": None}), ("R", {"x": 1}), UNFIT.format("v.x is string and int")),
    ],
)  # fmt: skip
def test_only_events_whose_value_does_not_resolve_are_bad(older, newest, good, bad, cause):
    """As Avro resolves: each value as it comes, not a version as a whole."""
    values, causes = landed(older, newest, good, bad, good)
    assert causes == [None, cause, None]
    assert values[1] is None
    want = listed(good[1] if isinstance(good, tuple) else good)
    assert [plain(values[0]), plain(values[2])] == [[] if want == {} else want] * 2


def two_fields(v, n):
    return {"type": "record", "name": "Row", "fields": [{"name": "v", "type": v}, {"name": "n", "type": n}]}


def test_a_column_is_wide_enough_for_events_of_a_version_that_fits_in_part():
    older, newest = two_fields(["null", "boolean"], "long"), two_fields(["null", "string"], "int")
    schemas = {str(at): WriterSchema("avro", json.dumps(one)) for at, one in enumerate((older, newest))}
    decoding = decoding_of(Auto(), None, {"t": schemas}, "message")
    rows = [bare(older, {"v": value, "n": 1 << 40}) for value in (None, True)]
    found = Decoder(decoding, "t").decode(Payloads(pa.array(rows), None, pa.array([struct.pack(">q", 0)] * 2)))
    assert found.value.to_pylist() == [{"v": None, "n": 1 << 40}, None]


def test_a_version_whose_events_are_all_bad_widens_no_column():
    versions = two_fields("boolean", "long"), two_fields("string", "int")
    schemas = {str(at): WriterSchema("avro", json.dumps(one)) for at, one in enumerate(versions)}
    assert str(decoding_of(Auto(), None, {"t": schemas}, "message").value) == "struct<v: string, n: int>"


def test_an_enum_of_another_name_is_another_branch():
    values, causes = landed(["int", enum("E1", "A")], ["int", enum("E2", "A")], 7, "A")
    assert values == [{"member_int": 7, "member_e2": None}, None]
    assert causes == [
        None,
        "v: does not fit the plan's columns: it is the enum E1, and in the newest version the enum E2",
    ]


def test_an_enum_outside_a_union_goes_to_its_own_branch_before_text():
    found = landed(enum("E", "A"), ["string", enum("E", "A")], "A")
    assert found == ([{"member_string": None, "member_e": "A"}], [None])


def test_values_within_arrays_and_maps_are_found_and_land():
    older = {"type": "array", "items": {"type": "map", "values": ["null", "int", "string", "boolean"]}}
    newest = {"type": "array", "items": {"type": "map", "values": ["null", "string", "double"]}}
    values, causes = landed(older, newest, [], [{"a": 5}, {"b": "x", "c": None}], [{}, {"a": "x", "b": True}], [{}])
    assert values[1] == [
        [("a", {"member_string": None, "member_double": 5.0})],
        [("b", {"member_string": "x", "member_double": None}), ("c", None)],
    ]
    lost = LOST.format("boolean").replace("v:", "v[]{}:")
    assert causes == [None, None, lost, None]


def test_null_stays_null_and_many_rows_keep_their_places():
    values, causes = landed(["null", "string", "long"], ["null", "string", "double"], *[None, 1, "x"] * 50)
    one = [None, {"member_string": None, "member_double": 1.0}, {"member_string": "x", "member_double": None}]
    assert values == one * 50
    assert causes == [None] * 150


class Made:
    """Random pairs of schemas that share names, so that many branches find one and many do not."""

    def __init__(self, dice):
        self.dice = dice

    def pair(self):
        """An older and a newest type: unions, alike deep in arrays and maps; or one of both is a branch alone."""
        older, newest = self.union(newest=False), self.union(newest=True)
        if self.dice.random() < 0.3:
            older, newest = older[1:], newest[1:]
            alone = self.branch(self.dice.choice(["boolean", "int", "long", "double", "R"]), newest=True)
            return (older, alone) if self.dice.random() < 0.5 else (self.without_aliases(alone), newest)
        while self.dice.random() < 0.4:
            kind, inner = self.dice.choice((("array", "items"), ("map", "values")))
            older, newest = ({"type": kind, inner: one} for one in (older, newest))
        return older, newest

    @staticmethod
    def without_aliases(type_):
        return type_ if isinstance(type_, str) else {key: one for key, one in type_.items() if key != "aliases"}

    def union(self, *, newest):
        kinds = ["boolean", "int", "long", "float", "double", "string", "R", "E"]
        chosen = self.dice.sample(kinds, self.dice.randint(2, 4))
        if set(chosen) in ({"int", "long"}, {"float", "double"}):
            chosen.append("string")
        return ["null", *(self.branch(one, newest=newest) for one in chosen)]

    def branch(self, kind, *, newest):
        if kind not in ("R", "E"):
            return kind
        number = self.dice.randint(1, 3)
        rest = {"aliases": [f"{kind}{number % 3 + 1}"]} if newest and self.dice.random() < 0.4 else {}
        if kind == "E":
            return enum(f"E{number}", "A", "B", **rest)
        field = {"name": "x", "type": self.dice.choice(("int", "string")), "default": 0}
        if field["type"] == "string":
            field["default"] = ""
        return {**record(f"R{number}", **rest), "fields": [field]}

    def value(self, of):
        if isinstance(of, list):
            one = self.dice.choice(of)
            return (one["name"], self.value(one)) if isinstance(one, dict) else self.value(one)
        match of if isinstance(of, str) else of["type"]:
            case "array":
                return [self.value(of["items"]) for _ in range(self.dice.randint(0, 3))]
            case "map":
                return {f"k{place}": self.value(of["values"]) for place in range(self.dice.randint(0, 3))}
            case "record":
                return {"x": self.value(of["fields"][0]["type"])}
            case "enum":
                return self.dice.choice(of["symbols"])
        return {"null": None, "boolean": True, "int": 7, "long": 1 << 40, "float": 1.5, "double": 2.5, "string": "s"}[
            of if isinstance(of, str) else of["type"]
        ]


def plain(value):
    """A landed value without the names of branches."""
    if isinstance(value, list):
        return [(one[0], plain(one[1])) if isinstance(one, tuple) else plain(one) for one in value]
    if isinstance(value, dict) and all(name.startswith("member_") for name in value):
        (one,) = (one for one in value.values() if one is not None)
        return plain(one)
    return value


def listed(value):
    """What fastavro reads, with maps as Arrow lists them; a record has the one field x."""
    if isinstance(value, dict) and "x" not in value:
        return [(key, listed(one)) for key, one in value.items()]
    return [*map(listed, value)] if isinstance(value, list) else value


def resolved(older, newest, value):
    """What fastavro makes of it by both schemas; None: it refuses."""
    data = io.BytesIO(written(holding(older), value))
    schemas = [fastavro.parse_schema(holding(one)) for one in (older, newest)]
    try:
        return fastavro.schemaless_reader(data, *schemas)
    except SchemaResolutionError:
        return None


@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=EXAMPLES, deadline=None)
def test_random_unions_are_resolved_as_fastavro_resolves_them(seed):
    made = Made(random.Random(seed))  # noqa: S311
    older, newest = made.pair()
    values = [made.value(older) for _ in range(8)]
    found, causes = landed(older, newest, *values)
    for value, here, cause in zip(values, found, causes, strict=True):
        want = resolved(older, newest, value)
        assert (cause is not None) == (want is None), (value, cause, want)
        if want is not None:
            assert plain(here) == listed(want["v"])


@given(seed=st.integers(0, 1 << 40))
@settings(max_examples=EXAMPLES, deadline=None)
def test_no_value_is_lost_with_more_versions_and_other_topics(seed):
    """A row is bad, or it has the value that was written."""
    made = Made(random.Random(seed))  # noqa: S311
    oldest, *others = [made.union(newest=newest) for newest in (False, False, True)]
    topics = {"t": [oldest, *others]}
    if made.dice.random() < 0.5:
        topics["u"] = [made.union(newest=True)]
    values = [made.value(oldest) for _ in range(8)]
    try:
        decoding = pinned(**topics)
    except IncompatibleSchemas:
        return
    found, causes = decoded(decoding, oldest, values)
    for value, here, cause in zip(values, found, causes, strict=True):
        written_value = value[1] if isinstance(value, tuple) else value
        assert cause is not None or plain(here) == written_value


def bare(schema, value):
    out = io.BytesIO()
    fastavro.schemaless_writer(out, fastavro.parse_schema(schema), value)
    return out.getvalue()


def test_causes_distinguish_a_value_that_is_a_union_and_a_key():
    versions = [
        WriterSchema(
            "key_value", parts=(WriterSchema("avro", json.dumps(key)), WriterSchema("avro", json.dumps(value)))
        )
        for key, value in (
            (["string", "long"], ["string", "int", "boolean"]),
            (["string", "boolean"], ["string", "long"]),
        )
    ]
    decoding = decoding_of(Auto(), None, {"t": {str(number): one for number, one in enumerate(versions)}}, "message")
    pairs = [("k", 5), (5, "v"), ("k", True)]
    keys = pa.array([bare(["string", "long"], key) for key, _ in pairs], pa.binary())
    values = pa.array([bare(["string", "int", "boolean"], value) for _, value in pairs], pa.binary())
    found = Decoder(decoding, "t").decode(Payloads(values, keys, pa.array([struct.pack(">q", 0)] * 3)))
    assert found.value.to_pylist() == [{"member_string": None, "member_long": 5}, None, None]
    assert found.causes.to_pylist() == [
        None,
        "the key: the value: the plan's columns have no branch for its long (schema version 0)",
        "the value: the plan's columns have no branch for its boolean (schema version 0)",
    ]
