"""Which systems there are, by name: each is declared in its own folder and imported when used.

Another package adds one by an entry point, or `register`s it in this process:

    [project.entry-points."airflow_provider_streams.systems"]
    files = "files_system.declaration:Files"
"""

from __future__ import annotations

import functools
import importlib
from importlib import metadata
from typing import TYPE_CHECKING, Any

from airflow_provider_streams.errors import InvalidRequest

if TYPE_CHECKING:
    from airflow_provider_streams.systems.base import StreamSystem
    from airflow_provider_streams.systems.declaration import Declaration

SYSTEMS: dict[str, str] = {
    "pulsar": "airflow_provider_streams.systems.pulsar.declaration:Pulsar",
    "pravega": "airflow_provider_streams.systems.pravega.declaration:Pravega",
}
"""Name to the `Declaration` of a system."""

GROUP = "airflow_provider_streams.systems"
"""Entry points of other packages' systems."""

_registered: dict[str, str] = {}


def register(name: str, path: str) -> None:
    """Make a system known to this process, and to the Spark processes that read its windows.

    Args:
        name: the `system` of its sources.
        path: `package.module:Class` of its `Declaration`. The module's folder is sent to Spark with ours.
    """
    _registered[name] = path


def known() -> dict[str, str]:
    """Every system's name, with the path of its declaration."""
    return {**SYSTEMS, **_entry_points(), **_registered}


def path_of(name: str) -> str:
    """The path of a system's declaration.

    Raises:
        InvalidRequest: no such system.
    """
    path = SYSTEMS.get(name) or _registered.get(name) or _entry_points().get(name)
    if path is None:
        raise InvalidRequest(f"no stream system {name!r}; known: {', '.join(sorted(known()))}")
    return path


def declaration_of(name: str) -> Declaration:
    """What a system says of itself.

    Raises:
        InvalidRequest: no such system.
    """
    declaration: Declaration = load(path_of(name))()
    return declaration


def load_system(name: str) -> type[StreamSystem]:
    """The class of a system, imported now.

    Raises:
        InvalidRequest: no such system.
    """
    system: type[StreamSystem] = load(declaration_of(name).system)
    return system


def load(path: str) -> Any:
    """What `package.module:name` names."""
    module, _, attribute = path.partition(":")
    return getattr(importlib.import_module(module), attribute)


@functools.cache
def _entry_points() -> dict[str, str]:
    return {one.name: one.value for one in metadata.entry_points(group=GROUP)}
