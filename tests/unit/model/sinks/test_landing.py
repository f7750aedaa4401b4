"""Which columns rows may lack of those that their table has."""

import json

import pytest

from airflow_provider_streams.model.sinks.landing import TableMark, TableTerms, grown, missing_columns

TABLE = (("id", "bigint"), ("note", "string"), ("rank", "int"))


@pytest.mark.parametrize(
    ("rows", "later", "said"),
    [
        (TABLE, (), []),
        ((*TABLE, ("more", "string")), (), []),
        ((("id", "bigint"),), (), ["note is missing, it was string", "rank is missing, it was int"]),
        ((("id", "bigint"),), ("note", "rank"), []),
        ((("id", "bigint"),), ("rank",), ["note is missing, it was string"]),
        ((("note", "string"),), ("note", "rank"), ["id is missing, it was bigint"]),
        # of another type, or under another name: however old the plan is
        ((("id", "double"),), ("id", "note", "rank"), ["id is double instead of bigint"]),
        ((("id", "bigint"), ("note", "binary")), ("note", "rank"), ["note is binary instead of string"]),
        ((("id", "bigint"), ("remark", "string"), ("rank", "int")), ("note",), ["note is missing, it was string"]),
        ((("id", "bigint"), ("Note", "string"), ("rank", "int")), ("note",), ["note is missing, it was string"]),
    ],
)
def test_rows_may_lack_what_their_table_got_later(rows, later, said):
    assert missing_columns(TABLE, rows, later) == said


NUMBERS = (("x", "int"), ("y", "struct<a:array<float>,b:map<string,decimal(9,2)>>"))


@pytest.mark.parametrize(
    ("rows", "held", "widened"),
    [
        ((("x", "bigint"), NUMBERS[1]), False, True),
        ((("x", "smallint"), NUMBERS[1]), True, True),
        ((NUMBERS[0], ("y", "struct<a:array<double>,b:map<string,decimal(12,2)>>")), False, True),
        ((NUMBERS[0], ("y", "struct<a:array<float>,b:map<string,decimal(4,2)>>")), True, True),
        ((NUMBERS[0], ("y", "struct<a:array<float>,b:map<string,decimal(12,3)>>")), False, False),
        ((("x", "double"), NUMBERS[1]), False, False),
        ((("x", "float"), NUMBERS[1]), False, False),
        ((("x", "string"), NUMBERS[1]), False, False),
    ],
)
def test_a_table_holds_narrower_numbers_and_wider_ones_where_it_may(rows, held, widened):
    assert [not missing_columns(NUMBERS, rows, widen=widen) for widen in (False, True)] == [held, widened]


def test_a_grown_table_has_the_wider_number_of_both():
    assert grown(NUMBERS, (("x", "bigint"), ("y", "struct<a:array<double>>"))) == (
        ("x", "bigint"),
        ("y", "struct<a:array<double>,b:map<string,decimal(9,2)>>"),
    )
    assert grown((("x", "bigint"),), (("x", "int"),)) == (("x", "bigint"),)


NESTED = (
    ("id", "bigint"),
    ("address", "struct<city:string,zip:string>"),
    ("lines", "array<struct<sku:string,count:int>>"),
    ("tags", "map<string,struct<by:string>>"),
)
NO_ZIP = "address.zip is missing, it was string"


def nested(**changed):
    return tuple((name, changed.get(name, kind)) for name, kind in NESTED)


@pytest.mark.parametrize(
    ("rows", "later", "said"),
    [
        (nested(address="struct<city:string,country:string,zip:string>"), (), []),
        (nested(address="struct<zip:string,city:string>"), (), []),
        (nested(lines="array<struct<sku:string,count:int,cents:bigint>>"), (), []),
        (nested(tags="map<string,struct<by:string,at:timestamp>>"), (), []),
        (nested(address="struct<city:string>"), (), [NO_ZIP]),
        (nested(lines="array<struct<sku:string>>"), (), ["lines.element.count is missing, it was int"]),
        (nested(tags="map<string,struct<>>"), (), ["tags.value.by is missing, it was string"]),
        (nested(address="struct<city:int,zip:string>"), (), ["address.city is int instead of string"]),
        (nested(tags="map<int,string>"), (), [f"tags is map<int,string> instead of {NESTED[3][1]}"]),
        (nested(address="string"), ("address",), [f"address is string instead of {NESTED[1][1]}"]),
        # of a plan from before: those fields, no others, and none under another name
        (nested(address="struct<city:string>"), ("address.zip",), []),
        (nested(address="struct<city:string>"), ("address",), []),
        (nested(address="struct<zip:string>"), ("address.zip",), ["address.city is missing, it was string"]),
        (nested(address="struct<city:string,plz:string>"), ("address.zip",), [NO_ZIP]),
        ((*nested(address="struct<city:string>"), ("plz", "int")), ("address.zip",), [NO_ZIP]),
        (nested(address="struct<city:int>"), ("address.zip",), ["address.city is int instead of string"]),
    ],
)  # fmt: skip
def test_structs_may_grow_and_rows_may_lack_what_theirs_got_later(rows, later, said):
    assert missing_columns(NESTED, rows, later) == said


def test_the_terms_of_a_table_travel_as_json():
    terms = TableTerms(TableMark("a", "b", "c"), TABLE, set_aside=True, earlier=("b",), later=("rank",))
    assert TableTerms.from_json(json.loads(json.dumps(terms.to_json()))) == terms
