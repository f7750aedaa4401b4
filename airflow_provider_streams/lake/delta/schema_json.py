"""Types in the JSON of a Delta log, which has what Arrow has no place for: the metadata of fields in structs. Pure."""

from __future__ import annotations

from typing import Any


def grown(own: Any, new: Any) -> Any:
    """A type with the fields and the wider numbers of another one; its own fields keep their metadata."""
    match own, new:
        case {"type": "struct"}, {"type": "struct"}:
            return {**own, "fields": _grown_fields(own["fields"], new["fields"])}
        case {"type": "array"}, {"type": "array"}:
            return {**own, "elementType": grown(own["elementType"], new["elementType"])}
        case {"type": "map"}, {"type": "map"}:
            return {**own, "valueType": grown(own["valueType"], new["valueType"])}
    return new


def _grown_fields(own: list[Any], new: list[Any]) -> list[Any]:
    left = {one["name"]: one for one in new}
    kept = [
        {**one, "type": grown(one["type"], left.pop(one["name"])["type"])} if one["name"] in left else one
        for one in own
    ]
    return [*kept, *left.values()]
