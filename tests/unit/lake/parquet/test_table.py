"""Which of a folder's windows a landing looks at."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from airflow_provider_streams.errors import SinkError
from airflow_provider_streams.lake.parquet import table as parquet_table
from airflow_provider_streams.lake.parquet.mark_file import Marked, read_mark, write_mark
from airflow_provider_streams.lake.parquet.table import ParquetTable
from airflow_provider_streams.model.sinks.landing import TableMark
from airflow_provider_streams.model.window.window import Window

NOON = datetime(2026, 11, 20, 12, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)


MARK = TableMark("a" * 32, "pulsar://shop/orders", "d.read")


def held(table: ParquetTable, *windows: Window) -> None:
    for window in windows:
        folder = table.folder_of(window)
        folder.mkdir(parents=True)
        (folder / "part-0.parquet").touch()


@pytest.mark.parametrize("seed", range(20))
def test_the_windows_near_one_are_all_that_share_time_with_it(tmp_path, seed):
    chosen = random.Random(seed)  # noqa: S311 - of a test
    table = ParquetTable(str(tmp_path))
    edges = sorted({chosen.choice((0.25, 0.5, 1, 60)) * chosen.randrange(-40, 40) for _ in range(30)})
    windows = [Window(at(start), at(end)) for start, end in pairwise(edges) if chosen.random() < 0.7]
    held(table, *windows)
    if windows and seed % 4:
        write_mark(tmp_path, Marked(MARK, max(one.end - one.start for one in windows)))
    for empty in chosen.sample(edges, 5):
        (tmp_path / f"window_start={Window(at(empty), at(empty + 1)).label.partition('_')[0]}").mkdir(exist_ok=True)
    for _ in range(50):
        start = chosen.choice(edges) + chosen.choice((-0.25, 0, 0.25, 1))
        window = Window(at(start), at(start + chosen.choice((0.1, 0.25, 1, 60, 1000))))
        near = set(table.windows_near(window))
        assert near <= set(windows)
        assert {one for one in near if one.overlaps(window)} == {one for one in windows if one.overlaps(window)}


def test_a_folder_of_before_the_last_window_is_found_if_it_reaches_into_the_new_one(tmp_path):
    """As when a user moves a day's folder back that a full refresh had set aside."""
    table = ParquetTable(str(tmp_path))
    day, later, new = (Window(at(3600 * first), at(3600 * last)) for first, last in ((0, 24), (3, 4), (5, 6)))
    held(table, day, later)
    write_mark(tmp_path, Marked(MARK, timedelta(days=1)))
    assert [one for one in table.windows_near(new) if one.overlaps(new)] == [day]


@pytest.mark.parametrize("first", [datetime(1, 1, 1, tzinfo=UTC), datetime(1, 1, 1, 1, tzinfo=UTC)])
def test_time_may_begin_within_the_longest_window(tmp_path, first):
    table = ParquetTable(str(tmp_path))
    window = Window(first, first + timedelta(hours=1))
    held(table, window)
    write_mark(tmp_path, Marked(MARK, timedelta(days=1)))
    assert list(table.windows_near(window)) == [window]


def test_what_is_no_length_is_said_with_the_file(tmp_path):
    write_mark(tmp_path, Marked(MARK, timedelta(days=1)))
    found = (tmp_path / "_table.json").read_text()
    (tmp_path / "_table.json").write_text(found.replace("86400.0", '"a day"'))
    with pytest.raises(SinkError, match=r"_table\.json cannot be read"):
        read_mark(tmp_path)


def test_a_landing_looks_into_as_many_folders_of_a_large_table_as_of_a_small_one(tmp_path, monkeypatch):
    looks, names = [], parquet_table._names
    monkeypatch.setattr(parquet_table, "_names", lambda *given: looks.append(given) or names(*given))
    for count in (20, 80):
        table = ParquetTable(str(tmp_path / str(count)))
        held(table, *(Window(at(3600 * number), at(3600 * (number + 1))) for number in range(count)))
        write_mark(table.root, Marked(MARK, timedelta(hours=1)))
        assert len(list(table.windows_near(Window(at(3600 * count), at(3600 * (count + 1)))))) == 1
        assert len(looks) == len(["all starts", "the last one's ends"])
        looks.clear()
