"""What names a table, with placeholders or without. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

_PLACEHOLDER = re.compile(r"\{([^{}]*)\}")
ANY = "*"
"""What stands for every name."""

_UNSAFE = re.compile(r"[^a-z0-9_-]")


def placeholders(target: str) -> tuple[str, ...]:
    """Their names, in order."""
    return tuple(_PLACEHOLDER.findall(target))


def example(target: str) -> str:
    """The target of some topic: what can be said of all of them is said of this one."""
    return _PLACEHOLDER.sub("x", target)


def as_one(target: str) -> str:
    """One name for all tables of a target."""
    return _PLACEHOLDER.sub(ANY, target)


def with_names(target: str, names: Mapping[str, str]) -> str:
    """The target of one topic or stream."""
    return _PLACEHOLDER.sub(lambda found: safe_name(names[found[1]]), target)


def safe_name(name: str) -> str:
    """A name as every kind of table can have it: small letters, digits, `-`, and `_` for all else."""
    return _UNSAFE.sub("_", name.lower())
