"""The decoder of a plan's payloads: of rows, or of changes of rows."""

from __future__ import annotations

from collections import Counter
from typing import Protocol

import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.arrow import arrays
from airflow_provider_streams.formats.arrow.arrays import Array, Flags, Ints
from airflow_provider_streams.formats.decode_failures import OtherObjects, set_aside
from airflow_provider_streams.formats.decoder import Decoded, Decoder, Payloads
from airflow_provider_streams.model.schema.decoding import Decoding


class PayloadDecoder(Protocol):
    """Decodes the payloads of one name of a plan."""

    @property
    def needs_positions(self) -> bool:
        """Whether payloads must have their places in the stream."""

    @property
    def unmatched(self) -> OtherObjects:
        """See `Decoder`."""

    @property
    def kinds(self) -> Counter[str]:
        """Rows so far that a receipt counts by kind."""

    def decode_rows(self, payloads: Payloads) -> tuple[Decoded, Ints | None]:
        """Decode a batch. Returns the message of each row as well; None: each message is one row."""


def decoder_of(decoding: Decoding, name: str) -> PayloadDecoder:
    """The decoder of what a plan pinned, for one name of it; raises as `Decoder`."""
    if decoding.changes is None:
        return RowDecoder(decoding, name)
    from airflow_provider_streams.formats.change_data.row_decoder import ChangeRowDecoder  # noqa: PLC0415  # when used

    changes = ChangeRowDecoder(decoding.changes, decoding.within, name)
    return changes if decoding.otherwise is None else _OrElse(changes, decoder_of(decoding.otherwise, name))


class _OrElse:
    """Tries another decoder for the messages that the first one cannot decode. Both give the same columns."""

    unmatched = OtherObjects()

    def __init__(self, first: PayloadDecoder, other: PayloadDecoder) -> None:
        self._first, self._other = first, other
        self.needs_positions = first.needs_positions or other.needs_positions

    @property
    def kinds(self) -> Counter[str]:
        return self._first.kinds + self._other.kinds

    def decode_rows(self, payloads: Payloads) -> tuple[Decoded, Ints | None]:
        decoded, owners = self._first.decode_rows(payloads)
        bad = _is_bad(decoded.causes)
        if not bad.any():
            return decoded, owners
        owners = np.arange(len(payloads.value)) if owners is None else owners
        tried = owners[bad]
        again, places = self._other.decode_rows(payloads.at(tried))
        messages = tried if places is None else tried[places]
        better = ~_is_bad(again.causes)
        kept = np.flatnonzero(~np.isin(owners, messages[better]))
        both = [
            None if one is None or other is None else _joined(arrays.at_rows(one, kept), other, better)
            for one, other in zip(decoded, again, strict=True)
        ]
        owners = np.append(owners[kept], messages[better])
        order = np.argsort(owners, kind="stable")
        ordered = [None if one is None else one.take(arrays.numbers(pa.int64(), order)) for one in both]
        return Decoded(*ordered), owners[order]  # type: ignore[arg-type]  # None only for keys


def _is_bad(causes: Array) -> Flags:
    others: Flags = set_aside(causes).to_numpy(zero_copy_only=False)
    return arrays.valid_flags(causes) & ~others


def _joined(first: Array, other: Array, rows: Flags) -> Array:
    if pa.types.is_dictionary(first.type):
        return _joined(first.cast(pa.string()), other.cast(pa.string()), rows).dictionary_encode()
    return pa.concat_arrays([first, other.filter(arrays.booleans(rows))])


class RowDecoder(Decoder):
    """Each payload is one row."""

    needs_positions = False

    @property
    def kinds(self) -> Counter[str]:
        """See `PayloadDecoder`: there are none."""
        return Counter()

    def decode_rows(self, payloads: Payloads) -> tuple[Decoded, None]:
        """See `PayloadDecoder`."""
        return self.decode(payloads), None
