"""What Iceberg's manifests say of columns."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io import pyarrow as data_files

from airflow_provider_streams.lake.iceberg import commit
from airflow_provider_streams.lake.iceberg.metrics import upper_bound

LETTERS = st.sampled_from("a\x00\x7f\u07ff\ud7ff\ue000\uffff\U00010000\U0010ffff")
TEXTS = st.text(LETTERS, max_size=8) | st.text(max_size=8)


@given(TEXTS, TEXTS, st.integers(1, 8))
def test_no_text_of_that_beginning_exceeds_it_and_readers_can_have_it(text, other, length):
    bound = upper_bound(text, length)
    if bound is None:
        assert set(text[:length]) == {"\U0010ffff"}
        return
    assert len(bound) <= length
    assert bound.encode() >= text.encode()  # as Iceberg compares them
    assert bound == text or bound.encode() > (text[:length] + other).encode()


def test_short_texts_are_their_own_bound():
    assert [upper_bound(one, length) for one, length in (("", 1), ("ab", 2), ("abc", None))] == ["", "ab", "abc"]


def test_files_get_these_bounds():
    assert commit.metrics.upper_bound is data_files.truncate_upper_bound_text_string
