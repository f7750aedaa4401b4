"""Who may read what, and what happens when credentials or tokens are not good enough."""

from __future__ import annotations

import contextlib

import pytest

from airflow_provider_streams.errors import AuthenticationFailed, NotAuthorized, SourceNotFound
from airflow_provider_streams.systems.pravega import calls, questions, scaling
from airflow_provider_streams.systems.pravega.health import NOT_ASKED, UP, health
from airflow_provider_streams.systems.pravega.system import PravegaSystem
from airflow_provider_streams.testing.servers import PravegaServer
from airflow_provider_streams.testing.servers.pravega import ADMIN
from tests.integration.pravega.conftest import Lab, Peer

pytestmark = pytest.mark.pravega

READ_ONLY = {"prn::/scope:s": "READ", "prn::/scope:s/stream:t": "READ"}


@pytest.fixture(scope="module")
def secured():
    with PravegaServer(accounts={"reader": READ_ONLY}, heap="1g") as server:
        yield server


@pytest.fixture
def connect(secured):
    with contextlib.ExitStack() as stack:

        def make(user, password=None):
            options = {
                "controller": secured.controller_uri,
                "username": user,
                "password": password or secured.password(user),
            }
            system = PravegaSystem.from_options(options)
            stack.callback(system.close)
            return Lab(system, "s")

        yield make


@pytest.fixture(scope="module")
def written(secured, tmp_path_factory):
    """`s/t` with 60 events of 100 kB, and `s/hidden`."""
    options = {"controller": secured.controller_uri, "username": ADMIN, "password": secured.password()}
    system = PravegaSystem.from_options(options)
    system.client.call(calls.create_scope("s"))
    for stream in ("s/t", "s/hidden"):
        system.client.call(calls.create_stream(stream))
    peer = Peer(secured, tmp_path_factory.mktemp("peer") / "logback.xml")
    peer.write("s/t", 60, size=100_000)
    peer.close()
    system.close()
    return "s/t"


def test_a_read_only_user_can_plan_and_read(connect, written):
    lab = connect("reader")
    events, receipt = lab.read(lab.plan(written))
    assert len(events) == 60
    assert receipt.verdict == "complete"


def test_wrong_credentials_are_refused_as_such(connect, written):
    for user, password in (("reader", "wrong"), ("nobody", "wrong")):
        with pytest.raises(AuthenticationFailed) as raised:
            connect(user, password).plan(written)
        assert "wrong" not in str(raised.value)


def test_no_credentials_are_refused(secured, written):
    system = PravegaSystem.from_options({"controller": secured.controller_uri})
    with pytest.raises(AuthenticationFailed):
        Lab(system, "s").plan(written)
    system.close()


def test_what_a_user_may_not_do_is_not_authorized(connect, written):
    lab = connect("reader")
    with pytest.raises(NotAuthorized, match="getSegments of s/hidden"):
        lab.plan("s/hidden")
    with pytest.raises(NotAuthorized):
        lab.call(calls.truncate_stream(written, {0: 0}))


def test_a_token_that_expires_in_the_middle_is_renewed(secured, connect, written, monkeypatch):
    monkeypatch.setattr("airflow_provider_streams.systems.pravega.reader.REQUEST_BYTES", 300_000)
    lab = connect("reader")
    plan = lab.plan(written)
    tokens = lab.system.client.tokens
    old = secured.delegation_token("segmentstoreresource", {"prn::/scope:s/stream:t": "READ"}, -5)
    with contextlib.closing(lab.system.read(plan, plan.splits[0])) as reader:
        batches = iter(reader)
        rows = len(next(batches))
        tokens.learn(written, old)
        tokens._tokens[written] = (tokens._tokens[written][0], float("inf"))  # as if our clock were late
        rows += sum(len(batch) for batch in batches)
    assert rows == 60
    assert tokens.known(written) != old


def test_a_token_of_another_stream_is_not_authorized_and_shows_no_stack(secured, connect, written):
    lab = connect("reader")
    plan = lab.plan(written)
    wrong = secured.delegation_token("segmentstoreresource", {"prn::/scope:s/stream:hidden": "READ"})
    client = lab.system.client
    client.tokens.learn(written, wrong)
    client.token = lambda _: wrong  # type: ignore[method-assign]  # the controller gives nothing better
    with (
        contextlib.closing(lab.system.read(plan, plan.splits[0])) as reader,
        pytest.raises(NotAuthorized) as raised,
    ):
        list(reader)
    assert "io.pravega" not in str(raised.value)


def test_a_missing_stream_is_not_found_for_an_administrator(connect, written):
    with pytest.raises(SourceNotFound):
        connect(ADMIN).plan("s/missing")


def test_a_read_only_user_can_ask_all_that_sensors_ask(connect, written):
    lab = connect("reader")
    state = lab.run(questions.describe(written))
    assert (state.head, state.tail, state.is_sealed) == (lab.head(written), lab.tail(written), False)
    assert lab.run(questions.streams("s")) == (written,), "what it may not read, it does not see"
    assert connect(ADMIN).run(questions.streams("s")) == ("s/hidden", written)
    assert lab.run(questions.unread(written)).bytes == 60 * 100_008
    assert lab.run(questions.stream_end(written)) is None
    (segment,) = lab.tail(written).segments
    assert lab.run(questions.segment_ends(written, [segment])).still_open == (segment.name,)
    with pytest.raises(NotAuthorized):
        lab.run(questions.scopes())
    with pytest.raises(NotAuthorized):
        lab.run(questions.newest_mark(written))
    with pytest.raises(NotAuthorized):
        lab.run(scaling.scale(written, scaling.split(0)))


def test_health_needs_no_more_than_a_login(connect, secured, written):
    for user, store in (("reader", NOT_ASKED), (ADMIN, UP)):
        assert health(connect(user).system.client) == {"controller": UP, "segment store": store}
    refused = health(connect("reader", "wrong").system.client)
    assert all(isinstance(answer, AuthenticationFailed) for answer in refused.values())
    assert not any("wrong" in str(answer) for answer in refused.values())
