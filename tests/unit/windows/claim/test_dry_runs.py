"""A dry run of a read shows what the read does, and takes nothing away."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from airflow_provider_streams.errors import LandingMismatch, StartTrimmed, WindowsOverlap
from airflow_provider_streams.model.schema.payload import Json
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.testing.fake import EPOCH, FakeSource
from tests.unit.windows.conftest import MINUTE

KEY = FakeSource("numbers").key
ASKED = Json("n long, shard string")


def minutes(start, end):
    return Window(EPOCH + start * MINUTE, EPOCH + end * MINUTE)


def pinned(world, window):
    return world.journal.pinned(KEY, "reader", window)


def lose(world, *, whole):
    """A user deletes the table, or its first window."""
    lake = Path(world.sink().path)
    shutil.rmtree(lake if whole else min(lake.glob("window_start=*")))


@pytest.mark.parametrize(
    ("whole", "window"), [(True, minutes(0, 4)), (False, minutes(0, 1))], ids=["the table", "a window"]
)
def test_what_the_table_lost_is_in_no_window_s_way(world, whole, window):
    for covered in (minutes(0, 2), minutes(2, 4)):
        world.read(covered)
    lose(world, whole=whole)
    world.read(window, dry_run=True)
    world.read(window)
    assert world.shown == pinned(world, window)


@pytest.mark.parametrize("act", [{}, {"replan": True}, {"full_refresh": True}])
def test_what_the_table_holds_is_in_the_way(world, act):
    world.read(minutes(0, 2))
    world.read(minutes(2, 4))
    lose(world, whole=False)
    for dry_run in (True, False):
        with pytest.raises(WindowsOverlap, match=str(minutes(2, 4))):
            world.read(minutes(1, 3), dry_run=dry_run, **act)


def test_what_gives_way_to_another_landing_is_in_no_window_s_way(world):
    world.read(minutes(0, 2))
    how = {"columns": ("value",), "full_refresh": True}
    world.read(minutes(0, 1), dry_run=True, **how)
    assert world.states(minutes(0, 2)) == ["covered"]
    world.read(minutes(0, 1), **how)
    assert world.shown == pinned(world, minutes(0, 1))


def test_any_columns_fit_where_the_table_is_no_more(world, told):
    world.read(minutes(0, 1), value=ASKED)
    told("n long")
    with pytest.raises(LandingMismatch, match="shard is missing"):
        world.read(minutes(1, 2), value=ASKED, dry_run=True)
    lose(world, whole=True)
    world.read(minutes(1, 2), value=ASKED, dry_run=True)
    preview, _ = world.backfill(minutes(0, 3), value=ASKED, dry_run=True)
    assert [item.verdict for item in preview.windows].count("failed") == 0
    assert world.read(minutes(1, 2), value=ASKED).receipt.rows


@pytest.mark.parametrize("basis", ["publish", "event"])
def test_a_plan_that_would_take_another_s_place_is_only_shown(world, basis):
    window = minutes(0, 1)
    world.read(window, basis=basis)
    before, runs = pinned(world, window), world.journal.runs(KEY, "reader", window)
    world.hold(head=30)
    world.read(window, basis=basis, replan=True, dry_run=True, on_loss="record")
    assert (bool(world.shown.losses), bool(before.losses)) == (True, False)
    assert (pinned(world, window), world.states(window)) == (before, ["covered"])
    with pytest.raises(StartTrimmed):
        world.read(window, basis=basis, replan=True, dry_run=True)
    assert (world.journal.runs(KEY, "reader", window), world.states(window)) == (runs, ["covered"])


def test_what_was_shown_of_a_plan_in_the_place_of_another_is_what_is_read(world):
    world.read(minutes(0, 1))
    world.hold(late_every=7, late_by_ms=1000)
    how = {"slack": 2 * MINUTE, "replan": True}
    world.read(minutes(0, 1), dry_run=True, **how)
    world.read(minutes(0, 1), **how)
    assert world.shown.fingerprint == pinned(world, minutes(0, 1)).fingerprint


@pytest.mark.parametrize(("on_loss", "verdict"), [("fail", "lost"), ("record", "part lost")])
def test_the_preview_of_a_backfill_shows_what_pinned_windows_lost(world, on_loss, verdict):
    """The plan was made when the stream held everything."""
    world.read(minutes(0, 2))
    world.hold(head=60)
    preview, _ = world.backfill(minutes(0, 2), length=2 * MINUTE, select="all", on_loss=on_loss, dry_run=True)
    assert [item.verdict for item in preview.windows] == [verdict]
    world.hold(head=0)
    preview, _ = world.backfill(minutes(0, 2), length=2 * MINUTE, select="all", on_loss=on_loss, dry_run=True)
    assert [item.verdict for item in preview.windows] == ["ok"]
