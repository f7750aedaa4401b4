"""Values that a DAG file writes out: sources, sinks and what they hold. Pure: Airflow is not imported."""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Self

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sinks.templates import is_task_output, is_template


class WrittenValue:
    """A value whose arguments are known when the DAG is parsed, except for templates.

    Airflow finds another task's output only in an operator's own arguments, not in values within them.

    Raises:
        InvalidRequest: an argument has another task's output; the message names the argument.
    """

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse outputs before the constructor takes one for a text or a list."""
        for found in _outputs_in([*args, *kwargs.values()]):
            given = inspect.signature(cls).bind_partial(*args, **kwargs).arguments
            name = next(name for name, value in given.items() if any(_outputs_in(value)))
            raise InvalidRequest(
                f"{cls.__name__}: {name} has another task's output, which is known only when a task runs. If the "
                f"argument is rendered, write a template, {_template_of(found)!r}, and let this task follow the other "
                "one: `pick >> read`. If not, write the value itself"
            )
        return super().__new__(cls)


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
