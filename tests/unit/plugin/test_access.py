"""The rules by which readers are shown, with an auth manager that knows only names."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from airflow_provider_streams.journal.reader_overview import Activity, ReaderOverview
from airflow_provider_streams.plugin import access
from airflow_provider_streams.plugin.access import Access

THEN = datetime(2026, 11, 20, tzinfo=UTC)


class Manager:
    """Knows the DAGs `mine` and `theirs`; every user may read `mine` and `old_mine`."""

    def get_authorized_dag_ids(self, *, user, method):
        assert user == "user"
        return {"mine"} if method == "GET" else set()

    def filter_authorized_dag_ids(self, *, dag_ids, user, method):  # noqa: ARG002 - as Airflow calls it
        assert user == "user"
        assert "theirs" not in dag_ids, "it exists: what is above has decided"
        return dag_ids & {"old_mine"}


@pytest.fixture
def rights(monkeypatch) -> Access:
    monkeypatch.setattr(access, "get_auth_manager", Manager)
    monkeypatch.setattr(access.DagModel, "get_current", lambda dag_id: dag_id in {"mine", "theirs"} or None)
    return Access(user="user")


def reader(name: str, *dag_ids: str) -> ReaderOverview:
    made = {dag_id: Activity(1, 0, THEN, THEN, None) for dag_id in dag_ids}
    return ReaderOverview(7, "fake:f:n", name, by_dag=made)


def test_a_dag_that_is_no_more_is_judged_by_its_name(rights):
    assert rights.readable({"mine", "theirs", "old_mine", "old_theirs"}) == {"mine", "old_mine"}


def test_with_teams_a_dag_that_is_no_more_is_nobodys(rights, monkeypatch):
    monkeypatch.setattr(access.conf, "getboolean", lambda section, name, **_: (section, name) == ("core", "multi_team"))
    assert rights.readable({"mine", "old_mine"}) == {"mine"}


def test_a_reader_is_shown_without_the_runs_of_other_peoples_dags(rights):
    (shown,) = rights.visible([reader("any name", "mine", "theirs")])
    assert set(shown.by_dag) == {"mine"}


def test_a_reader_of_only_other_peoples_dags_is_not_shown_even_if_its_name_is_mine(rights):
    assert rights.visible([reader("mine.read", "theirs")]) == []


def test_a_reader_that_only_planned_belongs_to_the_dag_of_its_name(rights):
    assert [one.reader for one in rights.visible([reader("mine.read"), reader("theirs.read"), reader("cli")])] == [
        "mine.read"
    ]


def test_only_who_may_edit_every_dag_of_a_reader_may_have_it_forgotten(rights, monkeypatch):
    assert not rights.may_edit(reader("any name", "mine")), "reading it is not enough"
    monkeypatch.setattr(Manager, "get_authorized_dag_ids", lambda _self, **_asked: {"mine"})
    assert rights.may_edit(reader("any name", "mine"))
    assert not rights.may_edit(reader("any name", "mine", "theirs"))
    assert not rights.may_edit(reader("theirs.read"))
