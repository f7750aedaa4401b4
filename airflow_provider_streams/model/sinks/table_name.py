"""Names of tables, which may have placeholders. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"(?<![{])\{([^{}%]*)\}(?!\})")
"""Not what Airflow renders, `{{ .. }}` and `{% .. %}`."""
ANY = "*"
"""The name that stands for all names."""

_UNSAFE = re.compile(r"[^a-z0-9_-]")


def placeholders(target: str) -> tuple[str, ...]:
    """Their names, in order."""
    return tuple(_PLACEHOLDER.findall(target))


def example(target: str) -> str:
    """The target of some topic, to check what all of them have in common."""
    return _PLACEHOLDER.sub("x", target)


def as_one(target: str) -> str:
    """One name for all tables of a target."""
    return _PLACEHOLDER.sub(ANY, target)


def with_names(target: str, names: Mapping[str, str]) -> str:
    """The target of one topic or stream."""
    return _PLACEHOLDER.sub(lambda found: safe_name(names[found[1]]), target)


def safe_name(name: str) -> str:
    """A name that every kind of table can have: lower-case letters, digits, `-`, and `_` for all else."""
    return _UNSAFE.sub("_", name.lower())


def database_names(topic: str) -> dict[str, str]:
    """Schema and table of a topic that has the changes of one table: Debezium calls it `prefix.schema.table`.

    A topic without dots is named like its table, and has no schema.
    """
    *_, schema, table = ["", *topic.split(".")]
    return {"schema": schema, "table": table}
