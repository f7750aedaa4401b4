"""Which columns rows may lack of those that their table has."""

import json

import pytest

from airflow_provider_streams.model.landing import TableMark, TableTerms, missing_columns

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
        ((("id", "int"),), ("id", "note", "rank"), ["id is int instead of bigint"]),
        ((("id", "bigint"), ("note", "binary")), ("note", "rank"), ["note is binary instead of string"]),
        ((("id", "bigint"), ("remark", "string"), ("rank", "int")), ("note",), ["note is missing, it was string"]),
        ((("id", "bigint"), ("Note", "string"), ("rank", "int")), ("note",), ["note is missing, it was string"]),
    ],
)
def test_rows_may_lack_what_their_table_got_later(rows, later, said):
    assert missing_columns(TABLE, rows, later) == said


def test_the_terms_of_a_table_travel_as_json():
    terms = TableTerms(TableMark("a", "b", "c"), TABLE, set_aside=True, later=("rank",))
    assert TableTerms.from_json(json.loads(json.dumps(terms.to_json()))) == terms
