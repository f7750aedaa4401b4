"""A module that is imported when one of its names is used: parsing a DAG file must stay cheap."""

from __future__ import annotations

from importlib import import_module
from typing import Any


class LazyModule:
    """Stands for a module; type checkers see the real one below `if TYPE_CHECKING`.

    Args:
        name: the module's full name.
    """

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, attribute: str) -> Any:
        return getattr(import_module(self._name), attribute)
