"""Change rows as the rows of a read: messages that are no rows are set aside by their kind."""

from __future__ import annotations

from collections import Counter
from typing import Final

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Ints
from airflow_provider_streams.formats.change_data.decoder import ChangeDecoder, Changes, Messages
from airflow_provider_streams.formats.change_data.values import text_columns
from airflow_provider_streams.formats.decode_failures import KIND_TEXTS, OtherObjects
from airflow_provider_streams.formats.decoder import Decoded, Payloads
from airflow_provider_streams.model.schema.change_rows import KINDS, ChangeFormat
from airflow_provider_streams.model.schema.decoding import Decoding


class ChangeRowDecoder:
    """Payloads are messages of a change data connector.

    Args:
        change_format: what the plan pinned.
        within: how payloads become columns before they are changes; None: they are JSON.
        name: the source's name.
    """

    needs_positions = True
    unmatched = OtherObjects()

    def __init__(self, change_format: ChangeFormat, within: Decoding | None, name: str) -> None:
        self._decoder = ChangeDecoder(change_format, within, name)
        self.kinds: Counter[str] = Counter()

    def decode_rows(self, payloads: Payloads) -> tuple[Decoded, Ints | None]:
        """Decode a batch. Messages that are no rows have their kind as cause.

        Raises:
            UnplannedColumns: a row has a column that the plan lacks.
        """
        if payloads.position is None:
            raise AssertionError("changes need their places in the stream")
        messages = Messages(payloads.value, payloads.position, payloads.key, payloads.version, payloads.written)
        changes = self._decoder.decode(messages)
        with_rows = changes.messages[arrays.valid_flags(changes.rows)]
        numbers, counts = np.unique(changes.kinds[with_rows], return_counts=True)
        self.kinds.update({KINDS[kind]: count for kind, count in zip(numbers, counts.tolist(), strict=True) if kind})
        bad = arrays.valid_flags(changes.causes)
        # a message that cannot be decoded is one event, however many rows it would have
        is_first = np.diff(changes.messages, prepend=-1) != 0
        kept = np.flatnonzero(is_first | ~bad[changes.messages])
        owners = changes.messages[kept]
        rows = arrays.at_rows(changes.rows, kept)
        decoded = Decoded(rows, payloads.key, _causes(changes, rows, owners), arrays.nulls(pa.int64(), len(kept)))
        if len(kept) == len(payloads.value):
            return decoded, None
        key = None if payloads.key is None else payloads.key.take(arrays.numbers(pa.int64(), owners))
        return decoded._replace(key=key), owners


def _causes(changes: Changes, rows: Array, owners: Ints) -> Array:
    """Why each row is bad or no row of the table: dictionary of strings, null for good rows."""
    aside = ~arrays.valid_flags(rows) & ~arrays.valid_flags(changes.causes)[owners]
    if not aside.any():
        return changes.causes if len(owners) == len(changes.causes) else _taken(changes.causes, owners)
    kinds = arrays.texts(_TEXTS).take(arrays.numbers(pa.int64(), changes.kinds[owners].astype(np.int64), aside))
    return text_columns.first_of(_taken(changes.causes, owners).cast(pa.string()), kinds).dictionary_encode()


def _taken(values: Array, rows: Ints) -> Array:
    return values.take(arrays.numbers(pa.int64(), rows))


_NOT_A_ROW: Final = "is no change of a row"
_TEXTS: Final = [{kind: text for text, kind in KIND_TEXTS.items()}.get(kind, _NOT_A_ROW) for kind in KINDS]
"""By the number of a kind."""
