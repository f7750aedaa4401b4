"""References of a JSON Schema replaced by what they mean: Jackson writes a type once, and then refers to its id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.model.row_type import MOST_DEPTH, MOST_LEAVES

_HINT: Final = "Name the columns with value=Json('..'), or read bytes with value=Bytes()."


def without_references(schema: Any) -> Any:
    """The same schema, each reference replaced.

    Raises:
        InvalidSchema: a reference to nothing, a type inside itself, or types that unfold to too many.
    """
    return _Unfolding(schema).value(schema, (), 0)


class _Unfolding:
    """Knows the whole schema, and how much has come of it."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._made = 0

    def value(self, data: Any, inside: tuple[str, ...], depth: int) -> Any:
        self._made += 1
        if self._made > _MOST or depth > _MOST_LEVELS:
            raise InvalidSchema("JSON Schema", "its types unfold to too many", _HINT)
        if isinstance(data, list):
            return [self.value(one, inside, depth + 1) for one in data]
        if not isinstance(data, dict):
            return data
        reference = data.get("$ref")
        if isinstance(reference, str):
            if reference in inside:
                raise InvalidSchema("JSON Schema", f"{reference} is inside itself", _HINT)
            return self.value(self._meant(reference), (*inside, reference), depth + 1)
        own = data.get("id")
        within = (*inside, own) if isinstance(own, str) else inside
        return {name: self.value(one, within, depth + 1) for name, one in data.items() if name not in _ASIDE}

    def _meant(self, reference: str) -> Any:
        """A path from the root, or the `id` of a schema within it."""
        found = _at(self._root, reference) if reference.startswith("#") else _with_id(self._root, reference)
        if found is None:
            raise InvalidSchema("JSON Schema", f"nothing in it is {reference!r:.80}", _HINT)
        return found


def _at(root: Any, reference: str) -> Any:
    found = root
    for name in filter(None, reference.removeprefix("#").split("/")):
        found = found.get(name.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def _with_id(root: Any, wanted: str) -> Any:
    """The outermost one."""
    level = [root]
    while level:
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                if "$ref" not in one and wanted in (one.get("id"), one.get("$id")):
                    return one
                inner += one.values()
            elif isinstance(one, list):
                inner += one
        level = inner
    return None


_ASIDE: Final = frozenset({"definitions", "$defs"})
"""Types to refer to: they are no part of the value."""
_MOST: Final = 20 * MOST_LEAVES
_MOST_LEVELS: Final = 4 * MOST_DEPTH
"""A schema writes several levels of JSON for one of its types."""
