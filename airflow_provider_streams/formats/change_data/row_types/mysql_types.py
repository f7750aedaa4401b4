"""MySQL's types, as Canal tells them of each column, as columns of a table."""

from __future__ import annotations

import re
from typing import Final

from airflow_provider_streams.model.schema.type_table import MOST_DIGITS
from airflow_provider_streams.model.schema.types import Decimal, Simple, Type


def mysql_type(text: str) -> Type:
    """The column of a type as MySQL writes it: `int(11) unsigned`, `decimal(10,2)`; text if it is not known."""
    found = _SHAPE.match(text.lower())
    if found is None:
        return Simple("string")
    word = found["word"]
    if word in ("decimal", "numeric"):
        digits, scale = int(found["digits"] or 10), int(found["scale"] or 0)
        return Decimal(digits, scale) if 1 <= digits <= MOST_DIGITS and scale <= digits else Simple("string")
    if "unsigned" in text.lower() and word in _UNSIGNED:
        return _UNSIGNED[word]
    return Simple(_WORDS.get(word, "string"))


_SHAPE: Final = re.compile(r"(?P<word>[a-z]+)(?:\((?P<digits>\d{1,4})(?:,\s*(?P<scale>\d{1,4}))?\))?")
_WORDS: Final = {
    "tinyint": "byte", "smallint": "short", "mediumint": "int", "int": "int", "integer": "int", "bigint": "long",
    "float": "float", "double": "double", "date": "date", "datetime": "timestamp_ntz", "timestamp": "timestamp_ntz",
    "time": "time", "year": "int", "binary": "binary", "varbinary": "binary", "blob": "binary", "tinyblob": "binary",
    "mediumblob": "binary", "longblob": "binary",
}  # fmt: skip
_UNSIGNED: Final[dict[str, Type]] = {
    "tinyint": Simple("short"), "smallint": Simple("int"), "mediumint": Simple("int"), "int": Simple("long"),
    "integer": Simple("long"), "bigint": Decimal(20, 0),
}  # fmt: skip
