"""Table metadata whose copies share their snapshots.

pyiceberg copies a table's metadata deeply at each look into a transaction, some twenty times in a landing. Snapshots
never change, so copying thousands of them would be most of a landing's cost.
"""

from __future__ import annotations

from typing import Any, Final, TypeVar

from pyiceberg.catalog import Catalog
from pyiceberg.table import Table
from pyiceberg.typedef import Identifier

_NEVER_CHANGED: Final = ("snapshots", "snapshot_log", "metadata_log")
"""Lists that only get longer or shorter."""

T = TypeVar("T")


class _Shared(list[T]):
    """A list whose deep copy holds the same values."""

    def __deepcopy__(self, memo: object) -> _Shared[T]:
        return _Shared(self)

    def __add__(self, others: list[Any]) -> _Shared[Any]:
        return _Shared([*self, *others])


class SharedSnapshots(Catalog):
    """A catalog whose tables, and copies of their metadata, share the snapshots and the logs of what was the newest."""

    def load_table(self, identifier: str | Identifier) -> Table:
        """See `Catalog`."""
        table = super().load_table(identifier)  # type: ignore[safe-super]
        lists = {name: _Shared(getattr(table.metadata, name)) for name in _NEVER_CHANGED}
        table.metadata = table.metadata.model_copy(update=lists)
        return table
