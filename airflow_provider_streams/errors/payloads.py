"""Errors of schemas, and of payloads that do not follow them."""

from __future__ import annotations

from collections.abc import Sequence

from airflow_provider_streams.errors.base import StreamsError, as_clause, as_sentence, because, listed
from airflow_provider_streams.errors.invalid_request import InvalidRequest
from airflow_provider_streams.errors.plurals import counted


class InvalidSchema(InvalidRequest):
    """A schema, or columns, that cannot decode any row."""

    foreseeable = True

    def __init__(self, what: str, reason: str, hint: str = "") -> None:
        self.what, self.reason, self.hint = what, reason, hint
        super().__init__(
            f"schema: {what}: {as_sentence(reason)} {hint or 'Correct it, or read bytes with value=Bytes().'}"
        )


class IncompatibleSchemas(InvalidRequest):
    """Topics of one read whose rows cannot have the same columns."""

    foreseeable = True

    def __init__(self, differences: Sequence[str]) -> None:
        self.differences = tuple(differences)
        super().__init__(
            f"the schemas do not fit into one row type: {listed(differences)} Read these topics as separate "
            "sources, or read bytes with value=Bytes()."
        )


class MultipleRecordTypes(InvalidRequest):
    """A topic or a group that holds several record types."""

    foreseeable = True

    def __init__(self, name: str, types: Sequence[str], *, of_keys: bool = False) -> None:
        self.name, self.types = name, tuple(types)
        hint = (
            "Say how keys are written: key=Bytes(), for example."
            if of_keys
            else "Choose one: value=Auto(type='<name>') or value=Registry(type='<name>'). Or land all of them, if each "
            "is a record with fields: types='all'. Spark's options are value_type and value_types. If a type was "
            "renamed, give all its names."
        )
        held = f"its {'keys' if of_keys else 'events'} are of {len(types)} record types: {', '.join(types)}"
        super().__init__(f"{name}: {held}. {hint}")


class SchemaRefused(InvalidRequest):
    """A schema that a topic or a group does not take, or that cannot read what is written there."""

    def __init__(self, source: object, schema: str, policy: str, reason: str = "") -> None:
        self.source, self.schema, self.policy = source, schema, policy
        by = f" by its policy {policy}" if policy else ""
        super().__init__(
            f"{source}: schema {schema} does not fit{by}{because(reason)}. Change the schema so that old and new "
            "records can be read, or write to another topic or group."
        )


class UnplannedColumns(StreamsError):
    """Rows of a window have columns that its plan lacks: the table changed after the plan looked at it.

    Args:
        columns: the columns, `id long, name string`.
    """

    _before, _after = "rows of the window have columns that its plan lacks, or wider ones: ", ". Nothing was landed. "

    def __init__(self, columns: str) -> None:
        super().__init__(f"{self._before}{columns}{self._after}Plan the window again: the new plan has these columns.")

    @property
    def columns(self) -> str:
        """The columns. They are part of the message, which is all that Spark hands on."""
        return str(self).removeprefix(self._before).rpartition(self._after)[0]


class DecodeError(StreamsError):
    """An event's payload is not what its schema says.

    Args:
        shard: where the event is.
        position: its position there.
        version: its schema version; empty: none.
        cause: why it cannot be decoded.
        others: how many others that were read with it cannot be decoded either.
        declarations: fields as `Auto` takes them, which would decode it, the most helpful first.
    """

    def __init__(
        self,
        shard: str,
        position: str,
        version: str,
        cause: str,
        others: int = 0,
        *,
        declarations: Sequence[str] = (),
    ) -> None:
        self.shard, self.position, self.version, self.cause, self.others = shard, position, version, cause, others
        more = f"; {others} more that were read with it cannot be decoded either" if others else ""
        said = as_sentence(f"{as_clause(cause)}{more}")
        by = f" by schema version {version}" if version else ""
        otherwise = _declaring(declarations) if declarations else "or correct the schema."
        if UNFIT in cause or NO_BRANCH in cause:
            otherwise = _OF_VERSIONS.format(version=version)
        super().__init__(
            f"{shard}: the event at {position} cannot be decoded{by}: {said} Nothing was landed. {_ASIDE}{otherwise}"
        )

    def for_table(self, *, keeps_events: bool, keeps_columns: bool) -> None:
        """Leave out advice that the table cannot take.

        Args:
            keeps_events: it can keep such events aside.
            keeps_columns: its columns never change their type, even with `full_refresh`.
        """
        text = str(self)
        if not keeps_events:
            text = text.replace(_ASIDE, _LEFT_OUT)
        if keeps_columns:
            text = text.replace(_NEW_TYPES, _OTHER_TABLE)
        self.args = (text,)


_ASIDE = (
    "Keep such events aside with on_decode_error='quarantine' (in a ParquetSink), or leave them out with "
    "on_decode_error='drop'; "
)
_LEFT_OUT = "Leave such events out with on_decode_error='drop'; "
_NEW_TYPES = "with replan=True, and with full_refresh=True if columns change their type."
_OTHER_TABLE = "with replan=True; if columns change their type, read under another reader into another table."
UNFIT = "does not fit the plan's columns"
"""Of a version of a schema, in causes."""
NO_BRANCH = "the plan's columns have no branch for its"
"""Of a value of a union, in causes."""
_OF_VERSIONS = (
    "then the columns stay as they are. Or give the table this version's columns with value=Auto(version={version!r}): "
    "events that do not fit these cannot be decoded. Or read fields that no type holds in all versions as text: "
    "value=Auto(as_text=True). Registry takes the same. To change how a reader decodes, run it " + _NEW_TYPES
)


def _declaring(declarations: Sequence[str]) -> str:
    """The advice to declare a field whose JSON is not what its schema says."""
    fields = " or ".join(f"value=Auto('{one}')" for one in declarations)
    return (
        f"or correct the schema. Or declare what the field's JSON holds, for example {fields}: a declared field may be "
        f"null, unless it says `not null`. To change how a reader decodes, run it {_NEW_TYPES}"
    )


class TooManyDecodeErrors(StreamsError):
    """More of a window's events cannot be decoded than allowed."""

    def __init__(self, source: object, window: object, bad: int, events: int, most: float) -> None:
        self.source, self.window, self.bad, self.events, self.most = source, window, bad, events, most
        super().__init__(
            f"{source}: {bad:,} of {counted(events, 'event')} of window {window} cannot be decoded, more than the "
            f"{most} that max_decode_error_rate allows. Nothing was landed. Look at the schema, or allow more."
        )
