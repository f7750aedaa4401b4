"""One message of Kafka Connect's JSON converter, in any order of its keys: its schema and its payload."""

from __future__ import annotations

import json
from typing import Any


def split_message(message: bytes) -> tuple[str, bytes]:
    """The text of a schema, empty if there is none, and the payload, every digit as it is.

    A message that is no object of a schema and a payload is a payload itself.
    """
    try:
        text = message.decode()
        found: Any = json.loads(text, object_pairs_hook=_pairs)
    except (ValueError, RecursionError):
        return "", message
    if not isinstance(found, dict) or found.keys() != {"schema", "payload"}:
        return "", message
    schema = found["schema"]
    written = "" if schema is None else json.dumps(schema, separators=(",", ":"))
    return written, _member(text, "payload").encode()


def _member(text: str, wanted: str) -> str:
    """The text of a member of an object that has it."""
    decoder, place = json.JSONDecoder(), text.index("{") + 1
    while True:
        name, place = decoder.raw_decode(text, _after_space(text, place))
        place = _after_space(text, _after_space(text, place) + 1)
        _, end = decoder.raw_decode(text, place)
        if name == wanted:
            return text[place:end]
        place = _after_space(text, end) + 1


def _after_space(text: str, place: int) -> int:
    while text[place] in " \t\r\n":
        place += 1
    return place


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key is there twice")
    return found
