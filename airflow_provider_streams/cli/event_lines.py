"""Events as lines for people: one each, as wide as the terminal, and nothing that could steer it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

from rich.cells import cell_len, set_cell_size

from airflow_provider_streams.windows.tail.event import Event, plain

_DIM, _RED, _PLAIN = "\x1b[2m", "\x1b[31m", "\x1b[0m"
_ELLIPSIS: Final = "…"


@dataclass(frozen=True, slots=True)
class EventLines:
    """How lines look.

    Args:
        width: of the terminal, in cells; None: there is no terminal, so nothing is cut off or colored.
        has_color: whether the terminal shows colors.
    """

    width: int | None
    has_color: bool = True

    def line(self, event: Event) -> str:
        """One event."""
        where = f"{_time(event)}{_place(event)}  "
        what = _key_text(event) + _value_text(event)
        if self.width is None:
            return where + what
        where, what = self._fitting(where, what)
        if not self.has_color:
            return where + what
        return f"{_DIM}{where}{_PLAIN}{_RED if event.cause else ''}{what}{_PLAIN if event.cause else ''}"

    def _fitting(self, where: str, what: str) -> tuple[str, str]:
        width = max(self.width or 0, 1)
        if cell_len(where + what) <= width:
            return where, what
        if cell_len(where) >= width:
            return set_cell_size(where, width - 1) + _ELLIPSIS, ""
        return where, set_cell_size(what, width - cell_len(where) - 1).rstrip() + _ELLIPSIS


def printable(text: str) -> str:
    """A text without characters that are not shown as themselves: control characters, and marks of direction."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _time(event: Event) -> str:
    if event.moment is None:
        return ""
    return event.moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{event.moment.microsecond // 1000:03d}Z  "


def _place(event: Event) -> str:
    shard, position = event.place
    return f"{printable(shard.rpartition('://')[2])}  {':'.join(map(str, position))}"


def _key_text(event: Event) -> str:
    return "" if event.key is None else f"{_text(event.key)}  "


def _value_text(event: Event) -> str:
    if event.cause:
        stored = "" if event.payload is None else f": {_text(event.payload)}"
        return f"cannot be decoded: {printable(event.cause)}{stored}"
    text = _text(event.value if event.payload is None else event.payload)
    return f"{event.kind.replace('_', ' ')} {text}".rstrip() if event.kind else text


def _text(value: Any) -> str:
    """A value on one line: text as it is, bytes as text or hex, others as JSON."""
    if value is None:
        return "null"
    if isinstance(value, bytes):
        return _of_bytes(value)
    if isinstance(value, str):
        return printable(value)
    return printable(json.dumps(plain(value), ensure_ascii=False))


def _of_bytes(data: bytes) -> str:
    try:
        text = data.decode()
    except UnicodeDecodeError:
        return f"0x{data.hex()}"
    return text if text.isprintable() else f"0x{data.hex()}" if "\x00" in text else printable(text)
