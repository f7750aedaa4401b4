"""Templates in arguments, and within sources and sinks: those are frozen values, which Airflow's rendering leaves.

A value is taken as it is written, also where the DAG renders to native objects: the text `12e5` stays a text.
"""

from __future__ import annotations

import copy
import functools
import inspect
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from datetime import date
from typing import TYPE_CHECKING, Any, Final

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sinks.sink import Sink
from airflow_provider_streams.model.sinks.templates import has_template, is_task_output, is_template
from airflow_provider_streams.model.stream.source import Source
from airflow_provider_streams.retry import terminal_errors
from airflow_provider_streams.systems.source_json import source_from_json, source_to_json
from airflow_provider_streams.template_fields import KINDS, PAYLOADS, refuse_templates, taken

if TYPE_CHECKING:
    import jinja2
    from airflow.sdk import Context


_PACKAGE = f"{__package__}."
_CHECKED: Final = "streams_field"
"""Of an environment: for which of our arguments it renders; without it, for one of a user's own class."""
_CODE: Final = "transform"
"""The argument whose texts may have a list in them, as SQL writes it: `id IN {{ params.ids }}`."""
_GAP: Final = re.compile(r"(?<![:/])//|:////|/\s*\Z")
"""Of a path or an address: a folder without a name."""
_DATA: Final = ("keys", "routing_keys", "options")
"""The fields of sources and sinks that may hold any text, `{{` too. In all others, it would be a template again."""


class _UnusableError(ValueError):
    """What a template gave is no value of its field; who renders the field puts its name before the message."""


def is_late(value: Any) -> bool:
    """Whether a value is known only when the task runs: a template, or another task's output."""
    if isinstance(value, str):
        return is_template(value)
    if isinstance(value, Mapping):
        return False
    if isinstance(value, Sequence):
        return any(is_late(part) for part in value)
    return is_task_output(value)


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
        ValueError: it gave nothing, or no text; the message names the field.
    """
    if not is_late_value(value):
        return value
    texts = _walked(type(value).__name__, _texts(value), render)
    if isinstance(value, Source):
        return source_from_json({**source_to_json(value), **texts})
    for name, template in value.to_json().items():
        _check_path(f"{type(value).__name__}.{name}", template, texts[name])
    try:
        return type(value).from_json(texts)
    except TypeError as error:
        raise InvalidRequest(
            f"{type(value).__name__} cannot be made from its rendered fields: {error}. A subclass whose constructor "
            "takes other arguments than the fields holds no templates, or has a from_json of its own"
        ) from error


class RendersValues:
    """An operator or a sensor among whose templated fields are sources and sinks. Name it before Airflow's class."""

    template_fields: Collection[str]

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "__init__" in vars(cls) and cls.__module__.startswith(
            _PACKAGE
        ):  # a user's own class may render what it likes
            cls.__init__ = _refusing_templates(cls.__init__)  # type: ignore[method-assign]  # the same, checked

    def render_template(
        self,
        content: Any,
        context: Context,
        jinja_env: jinja2.Environment | None = None,
        seen_oids: set[int] | None = None,
    ) -> Any:
        """As Airflow's, but texts are taken as written; of a source or a sink a new one."""
        if id(content) in (seen_oids or ()):  # those are another task's words, which are data
            return content
        if isinstance(content, str):
            return _rendered_text(content, context, jinja_env or self.get_template_env())  # type: ignore[attr-defined]  # Airflow's
        render = super().render_template  # type: ignore[misc]  # Airflow's class comes next
        if not isinstance(content, Source | Sink) or isinstance(content, type):
            return render(content, context, jinja_env, seen_oids)
        return rendered(content, lambda text: self.render_template(text, context, jinja_env, seen_oids))

    def _do_render_template_fields(
        self,
        parent: Any,
        template_fields: Iterable[str],
        context: Context,
        jinja_env: jinja2.Environment,
        seen_oids: set[int],
    ) -> None:
        """As Airflow's, of one field after the other, so that an error names the field."""
        render = super()._do_render_template_fields  # type: ignore[misc]  # Airflow's class comes next
        owner = type(parent).__name__
        with terminal_errors():
            for name in template_fields:
                was_given = bool(getattr(parent, name))  # of others, the default counts
                environment = _checking(jinja_env, name) if parent is self and name in KINDS else jinja_env
                try:
                    render(parent, (name,), context, environment, seen_oids)
                except _UnusableError as error:
                    raise InvalidRequest(f"{owner}: {name}: {error}") from error
                if parent is self and was_given:
                    setattr(parent, name, taken(owner, name, getattr(parent, name)))


def _refusing_templates(init: Callable[..., None]) -> Callable[..., None]:
    """A constructor that refuses templates in arguments that are not rendered."""
    own = {one.name for one in inspect.signature(init).parameters.values() if one.kind is one.KEYWORD_ONLY}

    @functools.wraps(init)
    def checked(self: RendersValues, *args: Any, **kwargs: Any) -> None:
        given = {name: value for name, value in kwargs.items() if name in own}
        refuse_templates(type(self).__name__, self.template_fields, given)
        init(self, *args, **kwargs)

    return checked


def _checking(environment: jinja2.Environment, field: str) -> jinja2.Environment:
    """The same environment, for one of our arguments."""
    own = environment.overlay()
    own.extend(**{_CHECKED: field})
    return own


def _rendered_text(text: str, context: Context, environment: jinja2.Environment) -> Any:
    """What a template gives: a text, or in a native environment the object that its only expression is.

    Jinja's native environment would also take a text such as `2026` or `12e5` for a number.

    Raises:
        _UnusableError: None, which Jinja would write as a text, also within a longer one; or a list within a text.
    """
    from jinja2 import Undefined, UndefinedError  # noqa: PLC0415 - where a task runs

    given: list[Any] = []
    field = getattr(environment, _CHECKED, None)
    try:
        parts = _template_parts(_noting(environment, given if field else []).from_string(text), context)
        is_object = len(parts) == 1 and not isinstance(parts[0], str)
        found = parts[0] if is_object else "".join(map(str, parts))  # plain also of what a filter marked as safe
    except UndefinedError as error:
        raise _UnusableError(f"the template {text!r} gave no value: {error}") from error
    if is_template(text) and (found is None or found == "None" or isinstance(found, Undefined)):
        raise _UnusableError(f"the template {text!r} gave no value")
    if any(one is None or isinstance(one, Undefined) for one in given):
        raise _UnusableError(
            f"the template {text!r} gave no value for an expression in it. If the text may go without, write "
            "`{{ .. or '' }}`"
        )
    several = next((one for one in given if isinstance(one, Collection) and not isinstance(one, str)), None)
    if isinstance(found, str) and several is not None and field != _CODE:
        raise _UnusableError(
            f"the template {text!r} gave a {type(several).__name__} for a text. Write `| join(',')` or `| tojson`; or, "
            "if it is to stay what it is, one expression alone, in a DAG with render_template_as_native_obj=True"
        )
    return found


def _noting(environment: jinja2.Environment, given: list[Any]) -> jinja2.Environment:
    """The environment, which also appends to a list what each expression gives.

    A DAG's own `finalize` says what becomes of an expression, so there is nothing to note.
    """
    from jinja2 import pass_context  # noqa: PLC0415 - where a task runs

    if environment.finalize is not None:
        return environment

    @pass_context  # of such a function Jinja cannot compute constants, which a native environment would make texts
    def note(_: object, value: Any) -> Any:
        given.append(value)
        return value

    return environment.overlay(finalize=note)


def _template_parts(template: jinja2.Template, context: Context) -> list[Any]:
    """As Airflow evaluates a template: its context warns of old names only where they are used."""
    environment, variables = template.environment, copy.copy(context)
    for name, value in template.globals.items():
        if name not in variables:
            variables[name] = value  # type: ignore[literal-required]  # any name
    try:
        return list(
            template.root_render_func(
                environment.context_class(environment, variables, template.name, template.blocks)  # type: ignore[arg-type]  # a mapping
            )
        )
    except Exception:  # noqa: BLE001 - raised again, with a traceback that names the template's line
        environment.handle_exception()


def _walked(path: str, value: Any, render: Callable[[str], Any]) -> Any:
    if isinstance(value, dict):
        return {name: _walked(f"{path}.{name}", one, render) for name, one in value.items()}
    if isinstance(value, list):
        parts = [_walked(path, one, render) for one in value]
        return [one for part in parts for one in (part if isinstance(part, list) else [part])]
    if not isinstance(value, str) or not is_template(value):
        return value
    try:
        found = render(value)
    except _UnusableError as error:
        raise _UnusableError(f"{path}: {error}") from error
    if not isinstance(found, list | tuple):
        return _name(path, found)
    if not found:  # without a text, a list chooses all
        raise _UnusableError(f"{path}: its template gave an empty {type(found).__name__}")
    return [_name(path, one) for one in found]


def _name(path: str, found: object) -> str:
    if not isinstance(found, str | int | float | date):
        raise _UnusableError(f"{path} is a text, or in a list several, and its template gave a {type(found).__name__}")
    if not str(found).strip():
        raise _UnusableError(f"{path}: its template gave an empty text")
    if is_template(str(found)) and path.split(".")[1] not in _DATA:
        raise _UnusableError(f"{path}: its template gave a text that has a template itself, which is not rendered")
    return str(found)


def _check_path(field: str, template: object, text: object) -> None:
    """Refuse a path in which an expression left nothing between two slashes, or after the last one.

    Raises:
        _UnusableError: there is such a place, which would be another table's folder.
    """
    if isinstance(template, str) and isinstance(text, str) and _GAP.search(text) and not _GAP.search(template):
        raise _UnusableError(
            f"{field}: what the template {template!r} gave has a folder without a name: nothing is between two "
            "slashes, or after the last one"
        )


def _texts(value: Source | Sink | None) -> dict[str, Any]:
    if value is None:
        return {}
    if not isinstance(value, Source):
        return value.to_json()
    return {name: text for name, text in source_to_json(value).items() if name not in PAYLOADS}
