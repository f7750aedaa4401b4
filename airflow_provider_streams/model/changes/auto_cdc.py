"""How a sink applies change rows instead of storing them: the options of Spark's Auto CDC, under their names."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, Final, Self

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.booleans import check_booleans
from airflow_provider_streams.model.changes.expressions import Column, Condition, parse_condition, parse_sequence
from airflow_provider_streams.model.parse_time_value import ParseTimeValue
from airflow_provider_streams.model.sinks.templates import is_template

LATEST, HISTORY = 1, 2
"""The two types of a slowly changing dimension."""
START_COLUMN: Final = "__START_AT"
END_COLUMN: Final = "__END_AT"
"""In a table with history: a row was valid from one value of its sequence to the other, half-open."""

_NAMES: Final = ("keys", "column_list", "except_column_list", "track_history_column_list")


@dataclass(frozen=True, slots=True)
class AutoCdc(ParseTimeValue):
    """Maintain the latest state of each key, or its history, from change rows.

    Args:
        keys: the columns that identify a row. Empty: those of the change's own key, if the format knows them.
        sequence_by: the column that orders the changes of a key, or `struct(a, b)`. Places in the stream break ties.
            None: the order of the source.
        apply_as_deletes: the condition for a change to be a delete, such as `op = 'D'` or `value is null`.
        apply_as_truncates: the condition for a change to empty the table; only with `stored_as_scd_type=1`.
        column_list: the columns that the table gets, which include the keys. None: all.
        except_column_list: the columns that it does not get.
        ignore_null_updates: whether a missing value keeps the column's earlier value.
        stored_as_scd_type: 1: the latest state; 2: every version, with `__START_AT` and `__END_AT`.
        track_history_column_list: only a change of these columns makes another version. None: of any column.

    Raises:
        InvalidRequest: options contradict each other, or one is not what it must be.
    """

    keys: tuple[str, ...] = ()
    sequence_by: str | None = None
    apply_as_deletes: str | None = None
    apply_as_truncates: str | None = None
    column_list: tuple[str, ...] | None = None
    except_column_list: tuple[str, ...] | None = None
    ignore_null_updates: bool = False
    stored_as_scd_type: int = LATEST
    track_history_column_list: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        check_booleans("AutoCdc", ignore_null_updates=self.ignore_null_updates)
        for name in _NAMES:
            object.__setattr__(self, name, _names(name, getattr(self, name)))
        for name in ("sequence_by", "apply_as_deletes", "apply_as_truncates"):
            if (found := getattr(self, name)) is not None and not isinstance(found, str):
                raise InvalidRequest(f"AutoCdc: {name} is a text, not {found!r:.100}")
            _check_grammar(name, found)
        kind: object = self.stored_as_scd_type
        # Databricks also takes texts
        object.__setattr__(self, "stored_as_scd_type", int(kind) if kind in ("1", "2") else kind)
        if isinstance(kind, bool) or self.stored_as_scd_type not in (LATEST, HISTORY):
            raise InvalidRequest(f"AutoCdc: stored_as_scd_type is 1 (latest state) or 2 (history), not {kind!r:.100}")
        self._check_together()

    @property
    def sequence(self) -> tuple[Column, ...] | None:
        """What orders changes, the most significant column first; None: the order of the source."""
        return None if self.sequence_by is None else parse_sequence(self.sequence_by)

    @property
    def deletes(self) -> Condition | None:
        """When a change is a delete; None: as its `_op` says."""
        return None if self.apply_as_deletes is None else parse_condition(self.apply_as_deletes)

    @property
    def truncates(self) -> Condition | None:
        """When a change empties the table; None: as its `_op` says."""
        return None if self.apply_as_truncates is None else parse_condition(self.apply_as_truncates)

    def chosen(self, columns: Sequence[str], keys: Sequence[str]) -> list[str]:
        """The columns that the table gets, in the order of the rows.

        Raises:
            InvalidRequest: the rows lack a column that an option names, or the options leave a key out.
        """
        for name in (*keys, *(self.column_list or ()), *(self.except_column_list or ())):
            if name not in columns:
                raise InvalidRequest(f"AutoCdc: the rows have no column {name!r}; they have {', '.join(columns)}")
        wanted = set(columns if self.column_list is None else self.column_list) - set(self.except_column_list or ())
        if lost := [name for name in keys if name not in wanted]:
            raise InvalidRequest(f"AutoCdc: the table needs its key {lost[0]!r}, and the lists of columns leave it out")
        return [name for name in columns if name in wanted]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values by field."""
        return {
            one.name: list(value) if isinstance(value := getattr(self, one.name), tuple) else value
            for one in fields(self)
        }

    @classmethod
    def from_json(cls, data: dict[str, Any]) -> Self:
        """The reverse of `to_json`."""
        return cls(**data)

    def _check_together(self) -> None:
        if self.column_list is not None and self.except_column_list is not None:
            raise InvalidRequest("AutoCdc: give column_list or except_column_list, not both")
        if self.stored_as_scd_type != HISTORY and self.track_history_column_list is not None:
            raise InvalidRequest("AutoCdc: track_history_column_list needs stored_as_scd_type=2")
        if self.stored_as_scd_type == HISTORY and self.apply_as_truncates is not None:
            raise InvalidRequest("AutoCdc: apply_as_truncates needs stored_as_scd_type=1")


_GRAMMARS: Final = {
    "sequence_by": parse_sequence,
    "apply_as_deletes": parse_condition,
    "apply_as_truncates": parse_condition,
}

_RENDERED: Final = ("apply_as_deletes", "apply_as_truncates")
"""Texts that a template may give as a whole."""


def _check_grammar(option: str, text: str | None) -> None:
    try:
        _ = None if text is None else _GRAMMARS[option](text)
    except InvalidRequest as error:
        if option in _RENDERED and is_template(str(text)):
            return  # checked when it is rendered
        raise InvalidRequest(f"AutoCdc: {option}: {error}") from error


def _names(option: str, given: object) -> tuple[str, ...] | None:
    if given is None and option != "keys":
        return None
    names = () if given is None else given
    if isinstance(names, str) or not isinstance(names, Sequence):
        raise InvalidRequest(f"AutoCdc: {option} is a list of columns, like ['id'], not {given!r:.100}")
    for name in names:
        if not isinstance(name, str) or not name:
            raise InvalidRequest(f"AutoCdc: {option} has names of columns, not {name!r:.100}")
    if len(set(names)) < len(names):
        raise InvalidRequest(f"AutoCdc: {option} names a column twice")
    if option != "keys" and not names:
        raise InvalidRequest(f"AutoCdc: {option} is empty: leave it out")
    return tuple(names)
