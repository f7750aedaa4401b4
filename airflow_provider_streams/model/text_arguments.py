"""Arguments that are texts. Other values are refused by the argument's name.

Templates are texts: what they give is checked when they are rendered. Errors do not show values, because an
address may hold a key.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.sinks.templates import is_template

_LINE_BREAK = re.compile(r"[\r\n]")


def check_names(owner: str, **values: object) -> None:
    """Check that an owner's arguments are texts of one line, as all names and paths are.

    Raises:
        InvalidRequest: one is something else.
    """
    for name, value in values.items():
        if not isinstance(value, str):
            raise InvalidRequest(f"{owner}: {name} is a text, not {_kind(value)}")
        if _LINE_BREAK.search(value) and not is_template(value):
            raise InvalidRequest(f"{owner}: {name} has a line break, which no name has")


def check_optional_names(owner: str, **values: object) -> None:
    """Check arguments that may also be None, as `check_names` does."""
    check_names(owner, **{name: value for name, value in values.items() if value is not None})


def check_conn_id(owner: str, given: object) -> None:
    """Check the name of a connection that a source cannot do without.

    Raises:
        InvalidRequest: it is no name.
    """
    check_names(owner, conn_id=given)
    if not str(given).strip():
        raise InvalidRequest(f"{owner}: conn_id is the name of an Airflow connection, not {given!r}")


def several(owner: str, name: str, given: object) -> tuple[object, ...]:
    """An argument that is one value, or several.

    Raises:
        InvalidRequest: it is no text and no list.
    """
    if isinstance(given, str):
        return (given,)
    if not isinstance(given, Iterable) or isinstance(given, Mapping | bytes | bytearray):
        raise InvalidRequest(f"{owner}: {name} is a list, not {_kind(given)}")
    return tuple(given)


def several_names(owner: str, name: str, given: object) -> tuple[str, ...]:
    """One name or several, as `check_names` takes them."""
    found = several(owner, name, given)
    for one in found:
        check_names(owner, **{name: one})
    return tuple(map(str, found))


def _kind(value: object) -> str:
    return "None" if value is None else f"a value of type {type(value).__name__}"


def path_text(given: object) -> object:
    """The text of a path, such as a `pathlib.Path`; anything else as it is."""
    return os.fspath(given) if isinstance(given, os.PathLike) else given
