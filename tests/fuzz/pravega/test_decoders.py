"""Some rounds of fuzzing and the corpus of what was once taken or refused wrongly: more by `make fuzz MINUTES=..`."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from tests.fuzz.pravega import decoders, rounds
from tests.fuzz.pravega.decoders import DECODERS, WrongError
from tests.fuzz.pravega.rounds import Done

CORPUS = json.loads((Path(__file__).parent / "corpus.json").read_text(encoding="utf-8"))
BY_NAME = {one.name: one for one in DECODERS}
CASES = [
    pytest.param(name, verdict, text, id=f"{name} {verdict} {number}")
    for name, verdicts in CORPUS.items()
    for verdict, texts in verdicts.items()
    for number, text in enumerate(texts)
]


@pytest.mark.parametrize(("name", "verdict", "text"), CASES)
def test_the_corpus_is_taken_or_refused_as_it_should_be(name, verdict, text):
    done = Done()
    rounds.one(BY_NAME[name], bytes.fromhex(text), random.Random(1), done)
    assert getattr(done, verdict) == {name: 1}


@pytest.mark.parametrize("decoder", DECODERS, ids=lambda decoder: decoder.name)
def test_legal_bytes_are_taken_and_damaged_ones_are_refused_by_name_or_taken_for_what_they_are(decoder):
    done = Done()
    for seed in range(20 if decoder.is_moody else 150):
        rounds.legal(decoder, seed, done)
        rounds.damaged(decoder, seed, done)
    assert done.taken[decoder.name]
    assert done.refused[decoder.name] or decoder.name == "token"


def test_a_decoder_that_takes_something_else_would_be_noticed(monkeypatch):
    """The comparison itself can fail."""
    monkeypatch.setattr(decoders, "_plain_events", lambda data: [(0, data)])
    with pytest.raises(WrongError):
        rounds.legal(BY_NAME["events"], 1, Done())


def test_a_crash_is_no_refusal(monkeypatch):
    def crash(_):
        raise IndexError

    monkeypatch.setattr(decoders.Mark, "parse", crash)
    with pytest.raises((IndexError, TypeError)):
        rounds.legal(BY_NAME["marks"], 1, Done())
