"""Selects messages by their keys, or by the hashes of keys that `Key_Shared` uses."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from airflow_provider_streams.formats.arrow.arrays import Array
from airflow_provider_streams.model.stream.key_selection import SLOTS, Selection
from airflow_provider_streams.systems.pulsar.reading.decode.unaligned import Flags, Ints

Hashes = npt.NDArray[np.uint32]

_C1, _C2 = np.uint32(0xCC9E2D51), np.uint32(0x1B873593)
_5, _N = np.uint32(5), np.uint32(0xE6546B64)
_F1, _F2 = np.uint32(0x85EBCA6B), np.uint32(0xC2B2AE35)
_31_BITS: Final = np.uint32(0x7FFFFFFF)


class KeyFilter:
    """Keeps messages with chosen keys."""

    def __init__(self, selection: Selection) -> None:
        self.columns = frozenset({"key", "key_bytes", *(["ordering_key"] if selection.slots else [])})
        """The columns it needs."""
        self._keys = pa.array(selection.keys, pa.binary())
        self._slots = selection.slots

    def kept(self, columns: dict[str, Array]) -> Flags:
        """Which messages with these columns are kept."""
        if not self._slots:
            found: Flags = pc.is_in(columns["key_bytes"], self._keys).to_numpy(zero_copy_only=False)
            return found
        slots = slots_of(pc.coalesce(columns["ordering_key"], columns["key_bytes"]))
        kept = np.zeros(len(slots), np.bool_)
        for first, last in self._slots:
            kept |= (first <= slots) & (slots <= last)
        return kept


def slots_of(keys: Array) -> Ints:
    """The slot of each key; 0 for null, as for an empty key."""
    distinct = keys.dictionary_encode()
    slots = (murmur3(distinct.dictionary) & _31_BITS) % np.uint32(SLOTS)
    places = distinct.indices.fill_null(len(slots)).to_numpy(zero_copy_only=False)
    found: Ints = np.append(slots, np.uint32(0)).astype(np.int64)[places]
    return found


def murmur3(keys: Array) -> Hashes:
    """Murmur3 (32 bits, seed 0) of each key; keys of one length side by side."""
    texts = [text or b"" for text in keys.to_pylist()]
    lengths = np.array([len(text) for text in texts], np.int64)
    hashes = np.zeros(len(texts), np.uint32)
    for length in np.unique(lengths).tolist():
        chosen = np.flatnonzero(lengths == length)
        text = b"".join(texts[number] for number in chosen.tolist())
        hashes[chosen] = _of_length(np.frombuffer(text, np.uint8).reshape(len(chosen), length))
    return hashes


def _of_length(keys: npt.NDArray[np.uint8]) -> Hashes:
    length = keys.shape[1]
    padded = np.zeros((len(keys), length // 4 * 4 + 4), np.uint8)
    padded[:, :length] = keys
    words = padded.view("<u4")
    hashes = np.zeros(len(keys), np.uint32)
    with np.errstate(over="ignore"):
        for number in range(length // 4):
            hashes = _turned(hashes ^ _mixed(words[:, number]), 13) * _5 + _N
        if length % 4:
            hashes ^= _mixed(words[:, length // 4])
        hashes ^= np.uint32(length)
        hashes = (hashes ^ (hashes >> np.uint32(16))) * _F1
        hashes = (hashes ^ (hashes >> np.uint32(13))) * _F2
    finished: Hashes = hashes ^ (hashes >> np.uint32(16))
    return finished


def _mixed(word: Hashes) -> Hashes:
    return _turned(word * _C1, 15) * _C2


def _turned(words: Hashes, bits: int) -> Hashes:
    turned: Hashes = (words << np.uint32(bits)) | (words >> np.uint32(32 - bits))
    return turned
