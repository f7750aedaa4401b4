"""What Iceberg's manifests say of columns."""

from __future__ import annotations

import subprocess
import sys

from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.lake.iceberg.files.column_metrics import upper_bound

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


def test_importing_our_writer_leaves_pyiceberg_as_it_is():
    seen = subprocess.run([sys.executable, "-c", UNTOUCHED], capture_output=True, text=True, check=False)
    assert (seen.stdout.strip(), seen.stderr) == ("[] [] []", "")


UNTOUCHED = """
import logging
from pyiceberg.io import fileformat, pyarrow
from pyiceberg import table

before = {module: dict(vars(module)) for module in (pyarrow, fileformat, table)}
from airflow_provider_streams.lake.iceberg import commit, compaction, snapshot_expiry, writer
changed = [name for module, names in before.items() for name, what in names.items() if vars(module)[name] is not what]
loggers = [one for one in logging.root.manager.loggerDict.values() if isinstance(one, logging.Logger)]
print(changed, [one.name for one in loggers if one.filters and one.name.startswith("pyiceberg")], logging.root.filters)
"""
