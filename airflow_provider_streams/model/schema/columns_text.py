"""Columns as users write them: as text, or their types by name."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final, TypeAlias

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.ddl import parse_columns
from airflow_provider_streams.model.schema.types import quoted
from airflow_provider_streams.model.sinks.templates import is_template

Columns: TypeAlias = str | Mapping[str, Any]
"""Columns as text, or their types by name. The type of a struct may be such a mapping."""


def columns_text(given: Columns) -> str:
    """Columns as text. A mapping may be JSON text, as on a command line.

    Raises:
        InvalidSchema: they are no columns.
    """
    found: Any = given
    if isinstance(given, str) and given.lstrip().startswith("{"):
        try:
            found = json.loads(given, object_pairs_hook=_each_once)
        except ValueError as error:
            reason = _UNRENDERED if is_template(given) else "it begins like JSON, and is none"
            raise InvalidSchema(f"{given:.80}", reason, _EXAMPLE) from error
    text = _listed(found, " ") if isinstance(found, Mapping) else found
    if not isinstance(text, str):
        raise InvalidSchema(f"{text!r:.80}", "it names no columns", _EXAMPLE)
    try:
        parse_columns(text)
    except InvalidSchema as error:
        reason = _UNRENDERED if is_template(text) else error.reason
        raise InvalidSchema(error.what, reason, _EXAMPLE) from error
    return text


def _each_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise InvalidSchema(", ".join(name for name, _ in pairs)[:80], "a name comes twice", _EXAMPLE)
    return found


def _listed(given: Mapping[str, Any], mark: str) -> str:
    for one in given.values():
        if not isinstance(one, str | Mapping):
            raise InvalidSchema(f"{one!r:.80}", "it is no type of a column", _EXAMPLE)
    types = {name: one if isinstance(one, str) else f"struct<{_listed(one, ': ')}>" for name, one in given.items()}
    return ", ".join(f"{quoted(str(name))}{mark}{one}" for name, one in types.items())


_UNRENDERED: Final = "the columns or fields of a payload are not rendered, so they take no template"
_EXAMPLE: Final = """Write "id long, tags array<string>", or {"id": "long", "tags": "array<string>"}."""
