"""Chosen keys: the same rows as choosing among all of them afterwards; hashes as Pulsar's own class makes them."""

# ruff: noqa: S311 - seeded dice: a failing example can be run again

from __future__ import annotations

import random

import pyarrow as pa
import pytest

from airflow_provider_streams.model.stream.key_selection import Selection
from airflow_provider_streams.systems.pulsar.reading.decode.decoder import Decoder
from airflow_provider_streams.systems.pulsar.reading.decode.key_filter import murmur3, slots_of
from tests.unit.systems.pulsar.reading.decode.test_decode import ALL, TOPIC, Sent, add_batch, add_single, decoded, of

# by org.apache.pulsar.common.util.Murmur3_32Hash of Pulsar 4.0.8, which leaves out the first bit
HASHES = {
    "": 0,
    "a": 1009084850,
    "ab": 465557343,
    "abc": 870159354,
    "abcd": 1139631978,
    "order-7": 351740542,
    "order-12345": 1785094598,
    "grüße-€": 1092842421,
    "x" * 100: 477687954,
    "key-0": 1664612543,
    "key-1": 414258592,
}
KEYS = [None, b"", b"a", b"order-1", b"order-2", b"order-33"]


def test_hashes_are_those_of_pulsar():
    keys = pa.array([key.encode() for key in HASHES], pa.binary())
    assert (murmur3(keys) & 0x7FFFFFFF).tolist() == list(HASHES.values())
    assert slots_of(pa.array([b"abc", None, b"abc", b"a"], pa.binary())).tolist() == [37882, 0, 37882, 27058]
    assert slots_of(pa.array([None], pa.binary())).tolist() == [0]
    assert slots_of(pa.array([], pa.binary())).tolist() == []


def messages(dice, count):
    encoded = [(False, key) for key in KEYS] + [(True, b"eHh4")]
    chosen = [dice.choice(encoded) for _ in range(count)]
    return [
        Sent(b"v%d" % number, key=key, key_base64=flag, ordering_key=dice.choice([None, None, b"o"]))
        for number, (flag, key) in enumerate(chosen)
    ]


def filled(columns, selection=None):
    """The same entries: batches, messages alone, and batches without a key, which are decoded in another way."""
    dice = random.Random(7)
    decoder = Decoder(columns, TOPIC, 3, selection=selection)
    rows = []
    for entry in range(12):
        rows += add_batch(decoder, 1, entry, messages(dice, dice.randint(1, 9)))
        rows += [row for sent in messages(dice, 1) for row in add_single(decoder, 2, entry, sent)]
        rows += add_batch(decoder, 3, entry, [Sent(b"plain")] * 4)
    return decoder, rows


@pytest.mark.parametrize("columns", [ALL, ("value",), ("entry", "batch_index", "key")])
@pytest.mark.parametrize(
    ("selection", "keeps"),
    [
        (Selection(keys=(b"a", b"order-33", b"xxx")), lambda key, _: key in (b"a", b"order-33", b"xxx")),
        (Selection(keys=(b"unknown",)), lambda *_: False),
        (Selection(slots=((0, 65535),)), lambda *_: True),
        (
            Selection(slots=((0, 30000),)),
            lambda key, ordering: slots_of(pa.array([ordering or key], pa.binary()))[0] <= 30000,
        ),
    ],
)
def test_rows_of_other_keys_are_left_out_and_counted(columns, selection, keeps):
    decoder, rows = filled(columns, selection)
    wanted = [row for row in rows if keeps(row["key_bytes"], row["ordering_key"])]
    assert decoded(decoder) == of(columns, wanted)
    totals = decoder.totals
    assert (totals.rows, totals.outside, totals.compacted) == (len(wanted), len(rows) - len(wanted), 0)
    assert totals.bytes == sum(len(row["value"]) for row in wanted)
    if wanted:
        assert totals.last == tuple(wanted[-1][name] for name in ("ledger", "entry", "batch_index"))


def test_halves_of_the_hashes_hold_every_row_once():
    halves = [Selection(slots=((0, 32767),)), Selection(slots=((32768, 65535),))]
    found = [row["value"] for half in halves for row in decoded(filled(("value",), half)[0])]
    assert sorted(found) == sorted(row["value"] for row in filled(("value",))[1])
