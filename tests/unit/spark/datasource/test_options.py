"""The names of options, and what they make of a read."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import pytest

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.window.basis import EventTime
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.spark.datasource.options import READ_OPTIONS, ReadOptions
from airflow_provider_streams.systems.connection.option import Option
from airflow_provider_streams.systems.registry import declaration_of, known, load_system
from airflow_provider_streams.testing.fake import EPOCH, FakeSystem

WINDOW = {"window_start": EPOCH.isoformat(), "window_end": (EPOCH + timedelta(minutes=1)).isoformat()}


def parse(**given: str) -> ReadOptions:
    return ReadOptions.parse(FakeSystem, given)


def test_names_are_compared_without_case_and_know_their_aliases() -> None:
    assert parse(WINDOW_START="x", EndingTime="y", eVeNts="3") == ReadOptions(
        {"window_start": "x", "window_end": "y"}, {"events": "3"}
    )


def test_an_unknown_name_is_refused_without_its_value() -> None:
    with pytest.raises(InvalidRequest, match="did you mean 'token'") as caught:
        parse(tokn="hunter2")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"stream": "shop/orders"}, "it is one of format 'pravega'"),
        ({"Topic": "shop/orders"}, "it is one of format 'pulsar'"),
        ({"path": "orders"}, r"load\(\) takes no path: name what to read by option '"),
        ({"zzzzzz": "1"}, "known: "),
    ],
)
def test_an_option_of_another_format_and_a_path_are_refused_as_such(given, hint) -> None:
    system = load_system("pulsar" if "stream" in given else "pravega")
    with pytest.raises(InvalidRequest, match=hint):
        ReadOptions.parse(system, given)


def test_options_show_no_secret() -> None:
    assert "hunter2" not in repr(parse(token="hunter2"))


def test_a_window_is_planned_by_publish_time_unless_said_otherwise() -> None:
    plan = parse(**WINDOW, events="600").plan(FakeSystem({"events": "600"}))
    assert (plan.basis, plan.filter is not None, plan.reader) == ("publish", True, "spark")


def test_cuts_alone_are_read_without_a_filter_up_to_the_tail() -> None:
    plan = parse(start_cut="5", events="50").plan(FakeSystem({"events": "50"}))
    assert (plan.basis, plan.filter, plan.estimate.events) == ("cuts", None, 90)


@pytest.mark.parametrize("said", [{}, {"basis": "cuts"}])
def test_without_bounds_all_that_is_stored_is_read(said: dict[str, str]) -> None:
    asked = parse(**said)._request(FakeSystem({"events": "50"}))
    assert (asked.basis, asked.start_cut, bool(asked.end_cut)) == ("cuts", None, True)
    plan = parse(**said, events="50").plan(FakeSystem({"events": "50"}))
    assert (plan.filter, plan.estimate.events) == (None, 100)


@pytest.mark.parametrize("said", [{"window_start": "2026-11-20T10:00Z"}, {"basis": "publish"}, {"basis": "append"}])
def test_half_a_window_or_a_basis_without_one_is_refused(said: dict[str, str]) -> None:
    with pytest.raises(InvalidRequest, match="say what to read"):
        parse(**said)._request(FakeSystem({"events": "50"}))


@pytest.mark.parametrize("start", [{}, {"start_cut": "earliest"}])
def test_the_head_is_a_start_without_a_known_place(start: dict[str, str]) -> None:
    for basis, cut in (("cuts", None), ("append", Cut({}))):
        asked = parse(**start, end_cut="latest", basis=basis)._request(FakeSystem({"events": "50"}))
        assert (asked.basis, asked.start_cut, bool(asked.end_cut)) == (basis, cut, True)


@pytest.mark.parametrize("option", ["start_cut", "end_cut", "startingOffsets"])
@pytest.mark.parametrize("text", ["", " "])
def test_an_empty_cut_is_no_cut(option: str, text: str) -> None:
    cuts = {"start_cut": "5", "end_cut": "9"} if option == "startingOffsets" else {"start_cut": "5"}
    cuts.pop("start_cut" if option == "startingOffsets" else option, None)
    with pytest.raises(InvalidRequest, match="is empty"):
        parse(**cuts, **{option: text}, events="50").plan(FakeSystem({"events": "50"}))


def test_loss_is_refused_unless_it_is_accepted() -> None:
    assert parse().on_loss == "fail"
    assert parse(on_loss="record").on_loss == parse(failOnDataLoss="false").on_loss == "record"
    assert parse(failOnDataLoss="TRUE").on_loss == "fail"
    with pytest.raises(InvalidRequest, match="on_loss"):
        _ = parse(on_loss="ignore").on_loss


def test_the_basis_event_takes_its_field_and_how_late_events_may_be() -> None:
    window = {"window_start": "2026-11-20T10:00:00Z", "window_end": "2026-11-20T11:00:00Z", "basis": "event"}
    asked = parse(
        **window, event_time="at", event_time_field_unit="ms", allowed_lateness_seconds="90", slack_seconds="5"
    )
    request = asked._request(FakeSystem({}))
    assert request.event == EventTime(timedelta(seconds=90), event_time="at", unit="ms")
    assert request.stored == Window.parse("2026-11-20T09:59:55Z/2026-11-20T11:01:30Z")
    with pytest.raises(InvalidRequest, match="leave out rows"):
        parse(**window, rows="superset")._request(FakeSystem({}))


@pytest.mark.parametrize("system", known())
def test_no_two_options_of_a_format_share_a_name(system: str) -> None:
    declared = declaration_of(system)
    own, sources, ours = map(names_of, (declared.options, declared.source_options, READ_OPTIONS))
    assert sorted(ours + own) == sorted(set(ours + own))
    assert not set(sources) & set(ours)


def names_of(options: Iterable[Option]) -> list[str]:
    return [name.lower() for option in options for name in {option.name, *option.aliases}]
