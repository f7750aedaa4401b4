"""Texts that Airflow renders before a task runs. Pure."""

from __future__ import annotations

import re
from typing import Any

_MARK = re.compile(r"\{[{%]")


def is_template(text: str) -> bool:
    """Whether a text has a Jinja expression or statement, so that its final text is not known yet."""
    return bool(_MARK.search(text))


def has_template(value: Any) -> bool:
    """Whether some text in plain JSON values is a template."""
    if isinstance(value, dict):
        return any(map(has_template, value.values()))
    if isinstance(value, list | tuple):
        return any(map(has_template, value))
    return isinstance(value, str) and is_template(value)
