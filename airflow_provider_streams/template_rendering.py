"""Templates within sources and sinks: they are frozen values, which Airflow's own rendering leaves as they are."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.sinks.templates import has_template, is_template
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.systems.source_json import source_from_json, source_to_json

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context

_AS_WRITTEN = ("value", "key")
"""What payloads are: a schema may hold anything."""


def is_late(value: Any) -> bool:
    """Whether a value is known only when the task runs: a template, or another task's output."""
    if isinstance(value, str):
        return is_template(value)
    if isinstance(value, Mapping):
        return False
    if isinstance(value, Sequence):
        return any(is_late(part) for part in value)
    return hasattr(value, "resolve")


def is_late_value(value: Source | Sink | None) -> bool:
    """Whether a source or a sink has templates, so that it is known only when its task runs."""
    return has_template(_texts(value))


def rendered(value: Source | Sink, render: Callable[[str], Any]) -> Source | Sink:
    """A source or a sink whose texts are rendered, checked as if it had been written so.

    Args:
        value: frozen; it stays as it is.
        render: a text with templates; a list that a native environment gives takes the text's place in a list.

    Raises:
        InvalidRequest: what a template gave is no such name.
    """
    if not is_late_value(value):
        return value
    texts = _walked(_texts(value), render)
    if isinstance(value, Source):
        return source_from_json({**source_to_json(value), **texts})
    return type(value).from_json(texts)


class RendersValues:
    """An operator or a sensor among whose templated fields are sources and sinks. Name it before Airflow's class."""

    def render_template(
        self,
        content: Any,
        context: Context,
        jinja_env: jinja2.Environment | None = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """As Airflow's, and of a source or a sink a new one."""
        render = super().render_template  # type: ignore[misc]  # Airflow's class comes next
        is_value = isinstance(content, Source | Sink) and not isinstance(content, type)
        if not is_value or id(content) in (seen_oids or ()):  # those are another task's words, which are data
            return render(content, context, jinja_env, seen_oids)
        return rendered(content, lambda text: render(text, context, jinja_env, seen_oids))


def _walked(value: Any, render: Callable[[str], Any]) -> Any:
    if isinstance(value, dict):
        return {name: _walked(one, render) for name, one in value.items()}
    if isinstance(value, list):
        parts = [_walked(one, render) for one in value]
        return [one for part in parts for one in (part if isinstance(part, list) else [part])]
    if not isinstance(value, str) or not is_template(value):
        return value
    found = render(value)
    return [str(one) for one in found] if isinstance(found, list | tuple) else str(found)


def _texts(value: Source | Sink | None) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Source):
        return value.to_json()
    return {name: text for name, text in source_to_json(value).items() if name not in _AS_WRITTEN}
