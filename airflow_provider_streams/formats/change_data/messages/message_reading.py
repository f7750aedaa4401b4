"""Reads messages by as many layouts as they need: each message by the first one that it fits."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, NamedTuple, cast

import numpy as np

from airflow_provider_streams.errors import InvalidSchema
from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags, Ints
from airflow_provider_streams.formats.change_data.messages import layouts
from airflow_provider_streams.formats.change_data.messages.bodies import BodyReader
from airflow_provider_streams.formats.change_data.messages.layouts import IMAGES, Layout
from airflow_provider_streams.formats.change_data.messages.schema_groups import Group, SchemaGroups
from airflow_provider_streams.formats.decode_failures import GOOD, Causes, Codes
from airflow_provider_streams.model.schema.change_rows import ChangeFormat
from airflow_provider_streams.model.schema.types import Type


class ReadPart(NamedTuple):
    """Messages of one layout."""

    rows: Ints
    layout: Layout
    values: Array
    """Structs of the layout's wire type."""


class MessageReader:
    """Reads the JSON of messages.

    Args:
        change_format: what the plan pinned.
        causes: numbers the causes.
        has_others: whether messages may have fields that the plan does not have, such as a key's.
    """

    def __init__(self, change_format: ChangeFormat, causes: Causes, *, has_others: bool = False) -> None:
        self._format, self._causes, self._has_others = change_format, causes, has_others
        self._images = IMAGES[change_format.envelope]
        self._groups = SchemaGroups()
        self._readers: dict[str, list[tuple[Layout, BodyReader]]] = {}
        self.unplanned: dict[str, Type] = {}
        """The types of columns that the plan does not have, by name."""

    def read(self, payloads: Array, codes: Codes) -> Iterator[ReadPart]:
        """Read binary payloads without nulls. Messages that cannot be read get their cause."""
        for group in self._groups.parts(payloads):
            for part in self._read_group(group, codes):
                if len(part.rows):
                    yield part

    def _read_group(self, group: Group, codes: Codes) -> Iterator[ReadPart]:
        if group.schema not in self._readers and len(self._readers) >= MOST_SCHEMAS:
            self._readers.pop(next(iter(self._readers)))
        known = self._readers.setdefault(group.schema, [])
        left, tries = np.arange(len(group.rows)), MOST_TRIES
        for layout, reader in known:
            part, left = self._read_by(layout, reader, group, left, codes)
            yield part
        while len(left) and tries and len(known) < MOST_LAYOUTS:
            tries -= 1
            found = self._new_layout(group, int(left[0]), codes)
            if found is None or any(found.reads_as(layout) for layout, _ in known):
                left = left[1:]
                continue
            known.append((found, BodyReader(found, self._images, self._causes)))
            part, left = self._read_by(*known[-1], group, left, codes)
            yield part
        unread = group.rows[left][codes[group.rows[left]] == GOOD]
        if len(unread):
            codes[unread] = self._causes.code("comes after too many messages that cannot be read")

    def _read_by(
        self, layout: Layout, reader: BodyReader, group: Group, left: Ints, codes: Codes
    ) -> tuple[ReadPart, Ints]:
        """Read the messages that are left. Returns those that the layout does not fit, which have a cause."""
        if not len(left):
            return ReadPart(left, layout, group.bodies[:0]), left
        column = reader.read(arrays.at_rows(group.bodies, left))
        self.unplanned = reader.unplanned | self.unplanned
        reader.unplanned.clear()
        codes[group.rows[left]] = column.codes  # the cause of the last layout stays
        good = np.flatnonzero(column.codes == GOOD)
        values = arrays.at_rows(column.values, good)
        return ReadPart(group.rows[left[good]], layout, values), left[self._may_be_read(column.codes)]

    def _may_be_read(self, codes: Codes) -> Flags:
        """Which messages were not read, and may fit another layout: objects that are JSON."""
        found, places = np.unique(codes, return_inverse=True)
        may = [code != GOOD and not self._causes.text(code).startswith("the value: ") for code in found.tolist()]
        return np.array(may, np.bool_)[places]

    def _new_layout(self, group: Group, row: int, codes: Codes) -> Layout | None:
        """A layout of one of the messages; None: it is no object, and has a cause."""
        body = cast("bytes", group.bodies[row].as_py())
        try:
            sample = json.loads(body)
        except (ValueError, RecursionError):
            sample = None
        place = group.rows[row]
        if not isinstance(sample, Mapping):
            if codes[place] == GOOD:
                codes[place] = self._causes.code("is no JSON object")
            return None
        try:
            if group.schema and self._format.envelope in ("debezium", "flat"):  # others know no such schemas
                return layouts.of_schema(json.loads(group.schema), sample, self._format)
            found = layouts.of_message(sample, self._format)
            return replace(found, has_schema=True) if self._has_others else found
        except (InvalidSchema, ValueError, RecursionError) as error:
            reason = error.reason if isinstance(error, InvalidSchema) else "it is not JSON"
            codes[place] = self._causes.code(f"the schema in the message: {reason}")
            return None


MOST_LAYOUTS: Final = 16
"""Of one schema. Messages of one topic rarely need three."""
MOST_TRIES: Final = 2_000
"""Messages of a batch that are looked at one by one, because no layout fits them."""
MOST_SCHEMAS: Final = 64
