"""Which arguments are rendered, what a rendered one may be, and the refusal of templates in all others.

A template in a field that is not rendered would be taken for a name, a key or a schema, and read nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import fields, is_dataclass
from datetime import date, datetime
from typing import Any, Final, NamedTuple

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.sinks.templates import is_task_output, is_template
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.source_json import source_to_json

PAYLOADS: Final = ("value", "key")
"""The fields of a source that are not rendered: a schema may hold anything."""

_SHOWN: Final = 80
_SCALARS: Final = (str, int, float, date)


class Kind(NamedTuple):
    """What a templated argument may be once it is rendered."""

    words: str
    take: Callable[[Any], Any]
    """The value as tasks use it; raises `TypeError` if it is of another kind."""


def _text(value: Any) -> str:
    if not isinstance(value, _SCALARS) or not str(value).strip():
        raise TypeError
    return str(value)


def _plain_text(value: Any) -> str:
    if is_template(text := _text(value)):  # no check of a name looks at one, and all who write it would be one reader
        raise TypeError
    return text


def _time(value: Any) -> datetime | str:
    return value if isinstance(value, datetime) else _text(value)


def _window(value: Any) -> Window | str:
    if isinstance(value, Mapping) and set(value) == {"start", "end"}:
        return Window.from_json(dict(value))
    return value if isinstance(value, Window) else _text(value)


def _names(value: Any) -> str | list[str]:
    if isinstance(value, Sequence | AbstractSet) and not isinstance(value, str | bytes) and value:
        return [_text(one) for one in value]
    return _text(value)


def _cut(value: Any) -> str | Mapping[str, Any]:
    return value if isinstance(value, Mapping) and value else _text(value)


def _settings(value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise TypeError
    return value


def _sink_or_source(value: Any) -> Any:
    return value


_TEXT = Kind("a text", _text)
_PLAIN = Kind("a text without `{{` and `{%`", _plain_text)
_TIME = Kind("a time, or its text in ISO 8601", _time)
_NAMES = Kind("a text, or a list of texts", _names)
_CUT = Kind("a text, or a position by shard", _cut)
_VALUE = Kind("a source or a sink: the texts in it are rendered", _sink_or_source)

KINDS: Final[dict[str, Kind]] = {
    **dict.fromkeys(("source", "sources", "sink"), _VALUE),
    **dict.fromkeys(("topic", "stream", "conn_id", "spark_conn_id"), _PLAIN),
    **dict.fromkeys(("reader", "recorder", "name", "subscription", "schema_name"), _PLAIN),
    **dict.fromkeys(("transform", "schema", "split"), _TEXT),
    **dict.fromkeys(("start", "end", "moment", "until"), _TIME),
    **dict.fromkeys(("columns", "select", "tags", "merge", "segments"), _NAMES),
    **dict.fromkeys(("at", "cut"), _CUT),
    "window": Kind("a window, its text `start/end`, or its `start` and `end` by name", _window),
    "spark": Kind("settings by name", _settings),
}
"""Of every argument that an operator or a sensor renders."""


def taken(owner: str, name: str, value: Any) -> Any:
    """An argument as tasks use it, now that it is rendered: a number is a text again.

    Raises:
        InvalidRequest: it is of another kind, or nothing at all; the message names the argument.
    """
    kind = KINDS.get(name, _VALUE)
    try:
        return kind.take(value)
    except TypeError as error:
        got = repr(value) if isinstance(value, str) or value is None else f"a {type(value).__name__}"
        raise InvalidRequest(f"{owner}: {name} is {kind.words}, got {got}") from error


def refuse_templates(owner: str, rendered: Collection[str], arguments: Mapping[str, Any]) -> None:
    """Refuse a template, or another task's output, in an argument that is not rendered.

    Args:
        owner: the class whose arguments they are.
        rendered: the names of those that it renders.
        arguments: what was given, by name.

    Raises:
        InvalidRequest: there is one; the message names the argument, and the field in it.
    """
    for name, value in arguments.items():
        for path, found in _late_parts(name, value, rendered):
            what = f"a template, {found!r:.{_SHOWN}}" if isinstance(found, str) else "another task's output"
            raise InvalidRequest(
                f"{owner}: {path} is not rendered, and has {what}. Write the value itself: it stays as it is when the "
                f"task runs. Rendered are {', '.join(rendered) or 'no arguments'}"
            )


def _late_parts(name: str, value: Any, rendered: Collection[str]) -> Iterator[tuple[str, Any]]:
    if name in rendered:
        for one in [value] if isinstance(value, Source | Sink) else value if isinstance(value, list | tuple) else []:
            if isinstance(one, Source | Sink) and not isinstance(one, type):
                yield from _unrendered(name, one)
    elif isinstance(value, Source) and {"topic", "stream"} & set(rendered):
        # only its name and its connection count, which are arguments of their own
        used = ("topics", "stream", "conn_id")
        yield from _parts(name, {one: part for one, part in source_to_json(value).items() if one not in used})
    else:
        yield from _parts(name, value)


def _unrendered(name: str, value: Source | Sink) -> Iterator[tuple[str, Any]]:
    """What rendering leaves as it is: schemas, the names in mappings, and other tasks' outputs."""
    if isinstance(value, Source):
        told = source_to_json(value)
        for payload in PAYLOADS:
            yield from _parts(f"{name}.{payload}", told.pop(payload, None))
    else:
        told = value.to_json()
    yield from ((path, found) for path, found in _parts(name, told) if path.endswith("]") or not isinstance(found, str))


def _parts(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Each template in a value, and each output of a task, with where it is; names in mappings end with `]`."""
    if isinstance(value, str):
        if is_template(value):
            yield path, value
    elif is_task_output(value):
        yield path, value
    elif isinstance(value, list | tuple | AbstractSet):
        for part in value:
            yield from _parts(path, part)
    else:
        for name, part in _named_parts(value).items():
            if isinstance(name, str) and is_template(name):
                yield f"{path}[{name!r:.{_SHOWN}}]", name
            yield from _parts(f"{path}.{name}", part)


def _named_parts(value: Any) -> Mapping[Any, Any]:
    if isinstance(value, Mapping):
        return value
    if isinstance(value, type):
        return {}
    if isinstance(value, Source):
        return source_to_json(value)
    if isinstance(value, Sink):
        return value.to_json()
    return {one.name: getattr(value, one.name) for one in fields(value)} if is_dataclass(value) else {}
