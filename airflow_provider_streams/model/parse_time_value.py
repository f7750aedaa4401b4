"""Values that a DAG file writes out: sources, sinks and what they hold. Pure: Airflow is not imported."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import fields
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Self, TypeVar

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sinks.templates import is_task_output, is_template

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_P = ParamSpec("_P")
_Value = TypeVar("_Value", bound="DataclassInstance")


class ParseTimeValue:
    """A value whose arguments are known when the DAG is parsed, except for templates.

    Airflow finds another task's output only in an operator's own arguments, not in values within them.

    Raises:
        InvalidRequest: an argument has another task's output; the message names the argument.
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse outputs before the constructor takes one for a text or a list."""
        for found in _outputs_in([*args, *kwargs.values()]):
            given = {**inspect.signature(cls).bind_partial(*args).arguments, **kwargs}
            name = next(name for name, value in given.items() if any(_outputs_in(value)))
            raise InvalidRequest(
                f"{cls.__name__}: {name} has another task's output, which is known only when a task runs. If the "
                f"argument is rendered, write a template, {_template_of(found)!r}, and let this task follow the other "
                "one: `pick >> read`. If not, write the value itself"
            )
        return super().__new__(cls)


def takes_field_names(init: Callable[Concatenate[_Value, _P], None]) -> Callable[Concatenate[_Value, _P], None]:
    """The constructor of a dataclass that also takes its arguments by the names of their fields.

    `dataclasses.replace` gives them so. Where the two differ, the field's metadata names the `argument`, which counts
    more than the field.
    """

    @functools.wraps(init)
    def initialize(self: _Value, /, *args: _P.args, **kwargs: _P.kwargs) -> None:
        for one in fields(self):
            if (argument := one.metadata.get("argument")) and one.name in kwargs:
                kwargs.setdefault(argument, kwargs.pop(one.name))
        init(self, *args, **kwargs)

    return initialize


def _outputs_in(value: object) -> Iterator[object]:
    if is_task_output(value):
        yield value
    elif isinstance(value, Mapping):
        yield from _outputs_in(list(value.values()))
    elif isinstance(value, list | tuple | AbstractSet):
        for part in value:
            yield from _outputs_in(part)


def _template_of(output: object) -> str:
    """What Airflow writes for it in a longer text; some outputs have no such template."""
    text = str(output)
    return text if is_template(text) else "{{ ti.xcom_pull('pick') }}"
