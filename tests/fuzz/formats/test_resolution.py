"""A few hundred evolutions, always the same ones: more of them with `make fuzz MINUTES=..`."""

from __future__ import annotations

import json

import pytest

from tests.fuzz.formats import resolution
from tests.fuzz.formats.resolution import Compared, DifferentError, compare

pytestmark = pytest.mark.pulsar  # whose distribution has Java's Avro; no server runs


def test_older_versions_land_as_java_resolves_them():
    compared = Compared()
    compare(range(250), compared)
    assert compared.same > 1_000
    assert compared.set_aside.total() < compared.same / 20  # text that became bytes, and the like


def test_a_value_of_another_field_would_be_noticed(monkeypatch):
    """The comparison itself can fail."""
    versions = [
        {"type": "record", "name": "Root", "fields": [{"name": "a", "type": "int"}]},
        {"type": "record", "name": "Root", "fields": [{"name": "b", "type": "int", "aliases": ["a"]}]},
    ]
    monkeypatch.setattr(resolution, "_by_java", lambda _: iter([[{"b": 2}], [{"b": 1}]]))
    monkeypatch.setattr(resolution, "_case", lambda seed: resolution.Case(seed, versions, [[b"\2"], [b"\2"]]))
    with pytest.raises(DifferentError, match=json.dumps("aliases")):
        compare(range(1), Compared())
