"""A few rounds, always the same ones: more of them with `make fuzz MINUTES=..`."""

from __future__ import annotations

import pytest

from airflow_provider_streams.formats.decode_failures import Column
from tests.fuzz.formats import rounds
from tests.fuzz.formats.rounds import ROUNDS, DifferentError, Done


@pytest.mark.parametrize("name", ROUNDS)
def test_what_is_read_and_what_is_refused_is_what_the_plain_decoder_says(name):
    done = Done()
    for seed in range(30):
        ROUNDS[name](seed, done, most=60)
    assert done.taken[name] > 200
    assert done.refused[name] > 40


@pytest.mark.parametrize("name", ROUNDS)
@pytest.mark.parametrize("wrong", ["values", "codes"])
def test_a_reader_that_reads_something_else_would_be_noticed(monkeypatch, name, wrong):
    """The comparison itself can fail."""
    true = rounds.compare

    class Wrong:
        def __init__(self, inner):
            self.type, self._inner = inner.type, inner

        def read(self, payloads):
            values, codes = self._inner.read(payloads)
            if not len(codes):
                return Column(values, codes)
            if wrong == "codes":
                codes[0] = 0 if codes[0] else 1
            return Column(values.take(list(reversed(range(len(values))))) if wrong == "values" else values, codes)

    monkeypatch.setattr(rounds, "compare", lambda *rest: true(rest[0], Wrong(rest[1]), *rest[2:]))

    def thirty_rounds():
        for seed in range(30):
            ROUNDS[name](seed, Done(), most=30)

    with pytest.raises(DifferentError):
        thirty_rounds()
