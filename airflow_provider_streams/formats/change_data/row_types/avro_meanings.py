"""Avro schemas that Kafka Connect's converters made, as Connect's schemas: `connect.name` has the semantic types.

No Arrow, no numpy: planning uses it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.schema.type_table import MOST_DEPTH

_WHAT: Final = "the schema of changes"


def connect_schema(avro: str) -> dict[str, Any]:
    """The schema of a record as Kafka Connect has it.

    Args:
        avro: Avro's JSON.

    Raises:
        InvalidSchema: it is no schema of a record.
    """
    try:
        found = _Reader().read(json.loads(avro), 0)
    except (ValueError, RecursionError) as error:
        raise InvalidSchema(_WHAT, f"it is not JSON ({error})") from None
    if found.get("type") != "struct":
        raise InvalidSchema(_WHAT, "it describes no record")
    return found


class _Reader:
    """Reads one schema, whose records may be named again by later fields."""

    def __init__(self) -> None:
        self._named: dict[str, dict[str, Any]] = {}

    def read(self, node: Any, depth: int) -> dict[str, Any]:
        if depth > MOST_DEPTH:
            raise InvalidSchema(_WHAT, f"types are nested deeper than {MOST_DEPTH} levels")
        match node:
            case list():
                branches = [one for one in node if one != "null"]
                if len(branches) != 1:
                    raise InvalidSchema(_WHAT, "a union has several types")
                return self.read(branches[0], depth)
            case str() if node in _PLAIN:
                return {"type": _PLAIN[node]}
            case str() if node.rpartition(".")[2] in self._named:
                return self._named[node.rpartition(".")[2]]
            case Mapping():
                return self._read_object(node, depth)
        raise InvalidSchema(_WHAT, f"no type {str(node)[:40]!r} is known")

    def _read_object(self, node: Mapping[str, Any], depth: int) -> dict[str, Any]:  # noqa: PLR0911  # one for each type
        kind = node.get("type")
        named = {"name": node["connect.name"]} if isinstance(node.get("connect.name"), str) else {}
        told = {"parameters": node["connect.parameters"]} if "connect.parameters" in node else {}
        match kind:
            case "record" | "error":
                return self._record(node, depth) | named | told
            case "array":
                return {"type": "array", "items": self.read(node.get("items"), depth + 1), **named}
            case "map":
                values = self.read(node.get("values"), depth + 1)
                return {"type": "map", "keys": {"type": "string"}, "values": values, **named}
            case "enum":
                return {"type": "string", **named}
            case "fixed":
                return {"type": "bytes", **named}
        found = self.read(kind, depth + 1)
        if node.get("logicalType") == "decimal" and found["type"] == "bytes":
            scale = {"scale": node.get("scale", 0)}
            digits = {"connect.decimal.precision": node["precision"]} if "precision" in node else {}
            return {"type": "bytes", "name": _DECIMAL, "parameters": {**scale, **digits}}
        return found | named | told

    def _record(self, node: Mapping[str, Any], depth: int) -> dict[str, Any]:
        fields: list[dict[str, Any]] = []
        made: dict[str, Any] = {"type": "struct", "fields": fields}
        self._named[str(node.get("name", "")).rpartition(".")[2]] = made
        given = node.get("fields")
        for one in given if isinstance(given, list) else []:
            if not isinstance(one, Mapping) or not isinstance(one.get("name"), str):
                raise InvalidSchema(_WHAT, "its fields have no names")
            fields.append({**self.read(one.get("type"), depth + 1), "field": one["name"]})
        return made


_DECIMAL: Final = "org.apache.kafka.connect.data.Decimal"
_PLAIN: Final = {
    "boolean": "boolean", "int": "int32", "long": "int64", "float": "float32", "double": "float64",
    "string": "string", "bytes": "bytes", "null": "string",
}  # fmt: skip
