"""Messages of a connector to change rows: what each message is, its row, or why it has none."""

from __future__ import annotations

from typing import NamedTuple, cast

import numpy as np
import pyarrow as pa

from airflow_provider_streams.errors import UnplannedColumns
from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags, Ints
from airflow_provider_streams.formats.change_data import debezium, mysql_json
from airflow_provider_streams.formats.change_data.change_columns import NULL_KEY, ChangeColumns
from airflow_provider_streams.formats.change_data.documents import Documents
from airflow_provider_streams.formats.change_data.key_reading import NO_KEY, KeyReader
from airflow_provider_streams.formats.change_data.message_parts import KIND, Kinds, Parts
from airflow_provider_streams.formats.change_data.messages.message_reading import MessageReader, ReadPart
from airflow_provider_streams.formats.change_data.messages.typed_reading import TypedMessages, TypedReader
from airflow_provider_streams.formats.change_data.row_types.uniting import is_wider
from airflow_provider_streams.formats.change_data.values import text_columns
from airflow_provider_streams.formats.change_data.values.faults import Faults
from airflow_provider_streams.formats.decode_failures import GOOD, Causes, Codes, blame
from airflow_provider_streams.formats.decoder import Payloads, pieces
from airflow_provider_streams.formats.framing import split_pairs
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.ddl import ddl
from airflow_provider_streams.model.schema.decoding import Decoding
from airflow_provider_streams.model.schema.types import Field, StructOf


class Messages(NamedTuple):
    """A batch as it was read."""

    value: Array
    """Binary; null or empty: a tombstone."""
    position: Array
    """Each message's place in the stream, see `positions.stream_positions`."""
    key: Array | None = None
    """Binary; null: no key. None: the system has no keys."""
    version: Array | None = None
    written: Array | None = None
    """As in `Payloads`."""

    def at(self, rows: Ints) -> Messages:
        """Some of them, in ascending order."""
        return Messages(*(None if one is None else arrays.at_rows(one, rows) for one in self))  # type: ignore[arg-type]


class Changes(NamedTuple):
    """The rows of a batch."""

    rows: Array
    """Structs of `ChangeFormat.type`; null: the message is no change row."""
    messages: Ints
    """The message of each row: Canal has several rows in one message, and others have one for each."""
    kinds: Kinds
    """What each message is, see `KINDS`."""
    causes: Array
    """Why each message cannot be decoded: dictionary of strings, null for good ones."""

    def count(self, kind: str) -> int:
        """The good messages of a kind."""
        return int(((self.kinds == KIND[kind]) & ~arrays.valid_flags(self.causes)).sum())


class ChangeDecoder:
    """Decodes the messages of one source.

    Args:
        change_format: what the plan pinned.
        decoding: how messages of a registry's schemas become columns; None: they are JSON.
        name: the source's name (`Declaration.dataset`).

    Raises:
        InvalidSchema: the registry's schemas describe no changes.
    """

    def __init__(self, change_format: ChangeFormat, decoding: Decoding | None = None, name: str = "") -> None:
        self._format = change_format
        self._causes = Causes()
        self._columns = ChangeColumns(change_format)
        self._reader = MessageReader(change_format, self._causes)
        self._typed = TypedReader(change_format, decoding, name, self._causes) if decoding else None
        self._documents = Documents(change_format)
        self._keys = KeyReader(change_format, self._columns, self._typed.key_type if self._typed else None)

    def decode(self, messages: Messages) -> Changes:
        """Decode a batch. It never raises for what a single message holds.

        Raises:
            UnplannedColumns: a row has a column that the plan does not have.
        """
        spans = pieces(messages.value)
        found = [self._piece(messages.at(np.arange(start, stop)), start) for start, stop in spans]
        if len(found) == 1:
            return found[0]
        causes = pa.concat_arrays([one.causes.cast(pa.string()) for one in found]).dictionary_encode()
        rows = pa.concat_arrays([one.rows for one in found])
        return Changes(
            rows,
            np.concatenate([one.messages for one in found]),
            np.concatenate([one.kinds for one in found]),
            causes,
        )

    def _piece(self, messages: Messages, start: int) -> Changes:
        count = len(messages.value)
        codes = np.zeros(count, np.int16)
        kinds: Kinds = np.full(count, KIND["change"])
        read, messages = self._read(messages, codes)
        kinds[~read.there] = KIND["tombstone"]
        made: list[tuple[Ints, Ints, Array]] = []
        for part in read.parts:
            self._check_planned(part)
            made.append(self._part(part, messages, kinds, codes))
        self._refuse_unplanned()
        if self._format.envelope == "flat":
            made.append(self._tombstones(np.flatnonzero(~read.there), messages, codes))
        return self._whole(made, kinds, codes, start)

    def _read(self, messages: Messages, codes: Codes) -> tuple[TypedMessages, Messages]:
        """The parts of messages, and messages whose keys are the rows' keys."""
        if self._typed:
            values = text_columns.only(messages.value, _not_empty(messages.value))
            typed = self._typed.read(Payloads(values, messages.key, messages.version, messages.written), codes)
            return typed, messages._replace(key=typed.keys)
        if self._format.has_pairs:
            messages = self._unpaired(messages, codes)
        there = _not_empty(messages.value)
        full = np.flatnonzero(there)
        own = np.zeros(len(full), np.int16)
        found = [
            part._replace(rows=full[part.rows]) for part in self._reader.read(arrays.at_rows(messages.value, full), own)
        ]
        codes[full] = np.where(codes[full] == GOOD, own, codes[full])
        return TypedMessages(found, there | (codes != GOOD), messages.key), messages

    def _unpaired(self, messages: Messages, codes: Codes) -> Messages:
        """Messages whose payload holds the key as well."""
        there = np.flatnonzero(arrays.valid_flags(messages.value))
        pairs = split_pairs(arrays.at_rows(messages.value, there), self._causes)
        codes[there] = pairs.codes
        count = len(messages.value)
        return messages._replace(
            value=arrays.spread(pairs.values, there, count), key=arrays.spread(pairs.keys, there, count)
        )

    def _part(self, part: ReadPart, messages: Messages, kinds: Kinds, codes: Codes) -> tuple[Ints, Ints, Array]:
        """The rows of messages of one layout: their messages, their places in them, and the rows."""
        parts, own, places = self._parts(part)
        rows = part.rows[own]
        kinds[rows] = parts.kinds
        for text, wrong in parts.wrong.items():
            self._blame(codes, rows, wrong, text)
        faults = Faults()
        is_row = arrays.valid_flags(parts.op)
        has_keys = self._format.envelope in ("debezium", "flat")  # the others name keys in the message itself
        if has_keys and self._format.keys and messages.key is not None:
            self._refuse_null_keys(messages.key, rows, is_row, codes)
        if part.layout.row is None:
            parts = self._documents.rows_of(parts, messages.key, rows, faults)
        keys = self._keys.of_deletes(parts, messages.key, rows)
        values = self._columns.rows(parts, _positions(messages, rows, places), keys, faults)
        for wrong, text in faults.found:
            self._blame(codes, rows, wrong & is_row, text)
        return rows, places, values

    def _parts(self, part: ReadPart) -> tuple[Parts, Ints, Ints]:
        count = len(part.rows)
        none = np.full(count, -1)
        match self._format.envelope:
            case "flat":
                return debezium.of_flat(part.values, part.layout), np.arange(count), none
            case "maxwell":
                return mysql_json.of_maxwell(part.values, part.layout), np.arange(count), none
            case "canal":
                found = mysql_json.of_canal(part.values, part.layout)
                return found.parts, found.messages, found.places
        return debezium.of_envelope(part.values, part.layout), np.arange(count), none

    def _check_planned(self, part: ReadPart) -> None:
        """Refuse columns of a schema that the plan lacks, or that hold more than the plan's."""
        if part.layout.row is None or not part.layout.has_schema:
            return
        known = {one.name: one for one in self._format.row.fields}
        lacking = []
        for one in cast("StructOf", part.layout.row.type).fields:
            planned = known.get(one.name)
            if planned is None or (one.name not in self._format.declared and is_wider(planned.type, one.type)):
                lacking.append(one)
        if lacking:
            raise UnplannedColumns(ddl(StructOf(tuple(lacking))))

    def _refuse_unplanned(self) -> None:
        if self._reader.unplanned:
            fields = [Field(name, type_) for name, type_ in self._reader.unplanned.items()]
            raise UnplannedColumns(ddl(StructOf(tuple(fields))))

    def _tombstones(self, rows: Ints, messages: Messages, codes: Codes) -> tuple[Ints, Ints, Array]:
        """Deletes of flattened tables, of which only the key is left."""
        parts = _deletes(len(rows))
        keys = self._keys.read(messages.key, rows, np.arange(len(rows)))
        faults = Faults()
        values = self._columns.rows(parts, _at(messages.position, rows), keys, faults)
        for wrong, text in faults.found:
            self._blame(codes, rows, wrong, NO_KEY if text != NULL_KEY else text)
        return rows, np.full(len(rows), -1), values

    def _refuse_null_keys(self, keys: Array, rows: Ints, is_row: Flags, codes: Codes) -> None:
        lacking = ~_not_empty(_at(keys, rows))
        self._blame(codes, rows, lacking & is_row, NULL_KEY)

    def _blame(self, codes: Codes, rows: Ints, wrong: Flags, text: str) -> None:
        if wrong.any():
            marked = np.zeros(len(codes), np.bool_)
            marked[rows[wrong]] = True
            blame(codes, marked, self._causes.code(text))

    def _whole(self, made: list[tuple[Ints, Ints, Array]], kinds: Kinds, codes: Codes, start: int) -> Changes:
        """One row for each message at least, in their order."""
        if not made:
            made = [(np.zeros(0, np.int64), np.zeros(0, np.int64), arrays.nulls(self._columns.kind, 0))]
        owners = np.concatenate([one[0] for one in made])
        places = np.concatenate([one[1] for one in made])
        values = made[0][2] if len(made) == 1 else pa.concat_arrays([one[2] for one in made])
        rest = np.setdiff1d(np.arange(len(codes)), owners)
        order = np.lexsort((np.append(places, np.full(len(rest), -1)), np.append(owners, rest)))
        owners = np.append(owners, rest)[order]
        taken = np.append(np.arange(len(values)), np.full(len(rest), -1))[order]
        good = (taken >= 0) & (codes[owners] == GOOD)
        if len(rest) or not good.all() or (taken != np.arange(len(taken))).any():
            values = values.take(arrays.numbers(pa.int64(), np.maximum(taken, 0), good))
        return Changes(values, owners + start, kinds, self._causes.array(codes))


def _positions(messages: Messages, rows: Ints, places: Ints) -> Array:
    """The places of messages in the stream, and of rows in their message."""
    found = _at(messages.position, rows)
    if not len(places) or places[0] < 0:
        return found
    suffix = arrays.texts([f"{place:06d}" for place in places.tolist()])
    return text_columns.joined([found, suffix], ".")


def _deletes(count: int) -> Parts:
    none = arrays.nulls(pa.string(), count)
    metadata: dict[str, Array] = dict.fromkeys(("_transaction_id", "_snapshot", "_table", "_source_life"), none)
    metadata["_total_order"] = arrays.nulls(pa.int64(), count)
    op: Array = pa.array(["d"] * count, pa.string())
    return Parts(np.full(count, KIND["tombstone"]), op, None, metadata=metadata)


def _at(values: Array, rows: Ints) -> Array:
    return values.take(arrays.numbers(pa.int64(), rows))


def _not_empty(values: Array) -> Flags:
    if not pa.types.is_binary(values.type):
        return arrays.valid_flags(values)
    _, starts, ends = arrays.span_ends(values)
    return arrays.valid_flags(values) & (ends > starts)
