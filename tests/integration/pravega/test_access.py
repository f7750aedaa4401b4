"""Who may read what, and what happens when credentials or tokens are not good enough."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta

import pytest

from airflow_provider_streams.errors import AuthenticationFailed, NotAuthorized, SourceNotFound
from airflow_provider_streams.journal.store import Journal
from airflow_provider_streams.model.plan.plan_summary import plan_table
from airflow_provider_streams.model.window.basis import Chained
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.client.controller import stream_calls
from airflow_provider_streams.systems.pravega.metadata import queries
from airflow_provider_streams.systems.pravega.operations import scaling
from airflow_provider_streams.systems.pravega.operations.health import NOT_ASKED, UP, health
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.windows.plan.cut_recording import record
from airflow_provider_streams.windows.plan.planning import WindowRead, pinned_plan
from airflow_provider_streams.windows.plan.readiness import WindowQuestion
from stream_servers.pravega import ADMIN
from tests.integration.pravega.conftest import Lab, Peer

pytestmark = pytest.mark.pravega

START, HOUR = datetime(2026, 11, 20, 10, tzinfo=UTC), timedelta(hours=1)


@pytest.fixture
def connect(pravega_auth_server):
    with contextlib.ExitStack() as stack:

        def make(user, password=None):
            options = {
                "controller": pravega_auth_server.controller_uri,
                "username": user,
                "password": password or pravega_auth_server.password(user),
            }
            system = PravegaSystem.from_options(options)
            stack.callback(system.close)
            return Lab(system, "access")

        yield make


@pytest.fixture(scope="module")
def written(pravega_auth_server, tmp_path_factory):
    """`access/t` with 60 events of 100 kB, and `access/hidden`."""
    options = {
        "controller": pravega_auth_server.controller_uri,
        "username": ADMIN,
        "password": pravega_auth_server.password(),
    }
    system = PravegaSystem.from_options(options)
    system.client.call(stream_calls.create_scope("access"))
    for stream in ("access/t", "access/hidden"):
        system.client.call(stream_calls.create_stream(stream))
    peer = Peer(pravega_auth_server, tmp_path_factory.mktemp("peer") / "logback.xml")
    peer.write("access/t", 60, size=100_000)
    peer.close()
    system.close()
    return "access/t"


@pytest.mark.slow
def test_a_read_only_user_can_plan_and_read(connect, written):
    lab = connect("reader")
    events, receipt = lab.read(lab.plan(written))
    assert len(events) == 60
    assert receipt.verdict == "complete"


@pytest.mark.slow
def test_wrong_credentials_are_refused_as_such(connect, written):
    for user, password in (("reader", "wrong"), ("stranger", "wrong")):
        with pytest.raises(AuthenticationFailed) as raised:
            connect(user, password).plan(written)
        assert "wrong" not in str(raised.value)


@pytest.mark.slow
def test_no_credentials_are_refused(pravega_auth_server, written):
    system = PravegaSystem.from_options({"controller": pravega_auth_server.controller_uri})
    with pytest.raises(AuthenticationFailed):
        Lab(system, "access").plan(written)
    system.close()


@pytest.mark.slow
def test_what_a_user_may_not_do_is_not_authorized(connect, written):
    lab = connect("reader")
    with pytest.raises(NotAuthorized, match="getSegments of access/hidden"):
        lab.plan("access/hidden")
    with pytest.raises(NotAuthorized):
        lab.call(stream_calls.truncate_stream(written, {0: 0}))


@pytest.mark.slow
def test_a_token_that_expires_in_the_middle_is_renewed(pravega_auth_server, connect, written, monkeypatch):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reading.reader.REQUEST_BYTES", 300_000)
    lab = connect("reader")
    plan = lab.plan(written)
    tokens = lab.system.client.tokens
    old = pravega_auth_server.delegation_token("segmentstoreresource", {"prn::/scope:access/stream:t": "READ"}, -5)
    with contextlib.closing(lab.system.read(plan, plan.splits[0])) as reader:
        batches = iter(reader)
        rows = len(next(batches))
        tokens.learn(written, old)
        tokens._tokens[written] = (tokens._tokens[written][0], float("inf"))  # as if our clock were late
        rows += sum(len(batch) for batch in batches)
    assert rows == 60
    assert tokens.known(written) != old


@pytest.mark.slow
def test_a_token_of_another_stream_is_not_authorized_and_shows_no_stack(pravega_auth_server, connect, written):
    lab = connect("reader")
    plan = lab.plan(written)
    wrong = pravega_auth_server.delegation_token("segmentstoreresource", {"prn::/scope:access/stream:hidden": "READ"})
    client = lab.system.client
    client.tokens.learn(written, wrong)
    client.token = lambda _: wrong  # type: ignore[method-assign]  # the controller gives nothing better
    with (
        contextlib.closing(lab.system.read(plan, plan.splits[0])) as reader,
        pytest.raises(NotAuthorized) as raised,
    ):
        list(reader)
    assert "io.pravega" not in str(raised.value)


@pytest.mark.slow
def test_a_missing_stream_is_not_found_for_an_administrator(connect, written):
    with pytest.raises(SourceNotFound):
        connect(ADMIN).plan("access/missing")


@pytest.mark.slow
def test_a_read_only_user_can_ask_all_that_sensors_ask(connect, written):
    lab = connect("reader")
    state = lab.run(queries.describe(written))
    assert (state.head, state.tail, state.is_sealed) == (lab.head(written), lab.tail(written), False)
    assert lab.run(queries.streams("access")) == (written,), "what it may not read, it does not see"
    assert connect(ADMIN).run(queries.streams("access")) == ("access/hidden", written)
    assert lab.run(queries.unread(written)).bytes == 60 * 100_008
    assert lab.run(queries.stream_end(written)) is None
    (segment,) = lab.tail(written).segments
    assert lab.run(queries.segment_ends(written, [segment])).still_open == (segment.name,)
    with pytest.raises(NotAuthorized):
        lab.run(queries.scopes())
    with pytest.raises(NotAuthorized):
        lab.run(queries.newest_mark(written))
    with pytest.raises(NotAuthorized):
        lab.run(scaling.scale(written, scaling.split(0)))


def test_a_user_who_may_read_a_part_of_a_scope_is_told_so_and_misses_nothing_that_was_planned_before(
    connect, written, tmp_path
):
    source, (admin, reader) = PravegaSource(scope="access"), (connect(user).system for user in (ADMIN, "reader"))

    def plan(journal, system, number, **more):
        window = Window(START + number * HOUR, START + (number + 1) * HOUR)
        return pinned_plan(
            journal, system, WindowRead(WindowQuestion(source, window, Chained()), "tests", **more), replan=True
        )

    with Journal.open(f"sqlite:///{tmp_path / 'own.db'}") as own:
        shown = "listed in access: 1 stream: access/t; Pravega lists only streams that the user reader may read"
        found = plan(own, reader, 0)
        assert (found.source.names, found.remarks) == ((written,), (shown,))
        assert shown in plan_table(found)
    with Journal.open(f"sqlite:///{tmp_path / 'journal.db'}") as journal:
        assert plan(journal, admin, 0).source.names == ("access/hidden", written)
        for _ in range(2):
            with pytest.raises(NotAuthorized, match=r"not allowed to read access/hidden .*on_loss='record'"):
                plan(journal, reader, 1)
        accepted = plan(journal, reader, 1, on_loss="record")
        assert {(one.shard.rpartition("/")[0], one.cause) for one in accepted.losses} == {
            ("access/hidden", "the user may not read the stream any more")
        }
        assert journal.last_names(source.key, "tests") == (written,), "accepted once"
        systems = [{source.conn_id: system} for system in (admin, reader)]
        first, second = (record(journal, one, [source], "tests")[0] for one in systems)
        assert first.error is None
        assert isinstance(second.error, NotAuthorized)
        assert "--start-over" in str(second.error)


@pytest.mark.slow
def test_health_needs_no_more_than_a_login(connect, pravega_auth_server, written):
    for user, store in (("reader", NOT_ASKED), (ADMIN, UP)):
        assert health(connect(user).system.client) == {"controller": UP, "segment store": store}
    refused = health(connect("reader", "wrong").system.client)
    assert all(isinstance(answer, AuthenticationFailed) for answer in refused.values())
    assert not any("wrong" in str(answer) for answer in refused.values())
