"""Runs that ask for different things at the same moment: one decides what the reader lands, the others are refused."""

from __future__ import annotations

import shutil
from collections.abc import Callable

import pyarrow.parquet as pq
import pytest

from airflow_provider_streams.errors import LandingMismatch, WindowNotAligned
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from airflow_provider_streams.windows.claim.table_coverage import compare
from tests.unit.windows.conftest import MINUTE

KEY = FakeSource("numbers").key
OTHER = ("value",)


def minutes(start, end):
    return Window(EPOCH + start * MINUTE, EPOCH + end * MINUTE)


@pytest.fixture
def race(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """One run, and another that decides what the reader lands after the first has looked, before it says so."""

    def run(first: Callable[[], object], second: Callable[[], object]) -> None:
        done: list[str] = []

        def after(name: str) -> None:
            act = getattr(Journal, name)

            def patched(self: Journal, *given: object, **more: object) -> object:
                if not done:
                    done.append(name)
                    second()
                return act(self, *given, **more)

            monkeypatch.setattr(Journal, name, patched)

        after("land_as")
        after("adopt_landing")
        first()
        assert done

    return run


def shapes(world, *sinks):
    files = [file for sink in sinks for file in world.path.glob(f"{sink}/window_start=*/window_end=*/*.parquet")]
    return {tuple(pq.ParquetFile(file).schema_arrow.names) for file in files}


def shown(world):
    """What is covered, as coverage that looks at the table shows it."""
    coverage = world.journal.coverage(KEY, "reader", minutes(0, 9).start, minutes(0, 9).end)
    return [item.window for item in compare(world.journal, KEY, "reader", coverage)[0].select("covered")]


@pytest.mark.parametrize("overrides", [{}, {"full_refresh": True}])
def test_one_table_has_rows_of_one_shape(world, race, overrides):
    if overrides:
        world.read(minutes(5, 6))
    with pytest.raises(LandingMismatch, match="columns"):
        race(
            lambda: world.read(minutes(0, 1), columns=OTHER, **overrides),
            lambda: world.read(minutes(1, 2), columns=(*OTHER, "publish_time"), **overrides),
        )
    assert shapes(world, "lake") == {("value", "publish_time")}
    assert shown(world) == [minutes(1, 2)]
    world.read(minutes(0, 1), columns=OTHER, full_refresh=True)
    assert shown(world) == [minutes(0, 1)]


@pytest.mark.parametrize("overrides", [{}, {"full_refresh": True}])
def test_windows_of_one_reader_lie_in_one_table(world, race, overrides):
    if overrides:
        world.read(minutes(5, 6))
    with pytest.raises(LandingMismatch, match="table"):
        race(
            lambda: world.read(minutes(0, 1), sink="sea", **overrides),
            lambda: world.read(minutes(1, 2), sink="pond", **overrides),
        )
    assert (world.windows("sea"), world.windows("pond"), shown(world)) == ([], [minutes(1, 2)], [minutes(1, 2)])


@pytest.mark.parametrize("landed", [False, True])
def test_windows_of_one_reader_have_one_schedule(world, race, landed):
    if landed:
        world.read(minutes(12, 13))
    with pytest.raises(WindowNotAligned):
        race(
            lambda: world.backfill(minutes(0, 6), length="2m"),
            lambda: world.backfill(minutes(3, 6), length="3m"),
        )
    assert shown(world) == [minutes(3, 6)]


def test_of_two_that_find_the_table_gone_one_begins_again(world, race):
    world.read(minutes(0, 1))
    shutil.rmtree(world.path / "lake")
    with pytest.raises(LandingMismatch, match="columns"):
        race(
            lambda: world.read(minutes(0, 1)),
            lambda: world.read(minutes(1, 2), columns=OTHER, full_refresh=True),
        )
    assert shapes(world, "lake") == {OTHER}
    assert shown(world) == [minutes(1, 2)]


def test_of_two_that_ask_for_the_same_both_land(world, race):
    race(lambda: world.read(minutes(0, 1)), lambda: world.read(minutes(1, 2)))
    assert shown(world) == [minutes(0, 1), minutes(1, 2)]
