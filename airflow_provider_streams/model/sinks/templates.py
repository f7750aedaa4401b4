"""Values that are known only when a task runs: texts that Airflow renders, and other tasks' outputs. Pure."""

from __future__ import annotations

import re
from typing import Any

_MARK = re.compile(r"\{[{%]")


def is_template(text: str) -> bool:
    """Whether a text has a Jinja expression or statement, so that its final text is not known yet."""
    return bool(_MARK.search(text))


def is_task_output(value: object) -> bool:
    """Whether a value is another task's output, as Airflow's tasks and task groups have it in DAG files."""
    return hasattr(value, "resolve") and hasattr(value, "iter_references")


def has_template(value: Any) -> bool:
    """Whether some text in plain JSON values is a template."""
    if isinstance(value, dict):
        return any(map(has_template, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_template, value))
    return isinstance(value, str) and is_template(value)
