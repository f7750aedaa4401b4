from __future__ import annotations

import json
from datetime import UTC, datetime

import httpx
import pytest

from airflow_provider_streams.errors import InvalidRequest, ProtocolError, SourceNotFound, SystemUnavailable
from airflow_provider_streams.systems.pravega.client.endpoint import Endpoint
from airflow_provider_streams.systems.pravega.metadata.scaling_events import ScalingEvent, scaling_events

EVENT = {
    "timestamp": 1500,
    "segments": [{"number": 1, "epoch": 2}, {"number": 0, "epoch": 0}],
    "splits": 1,
    "merges": 0,
}
EXPECTED = ScalingEvent(datetime(1970, 1, 1, 0, 0, 1, 500_000, tzinfo=UTC), (0, (2 << 32) + 1), 1, 0)


@pytest.fixture
def answering(monkeypatch):
    """Answers every request so, and collects them."""
    requests = []

    def answer(status, content):
        def handle(request):
            requests.append(request)
            return httpx.Response(status, content=content)

        client = httpx.Client
        monkeypatch.setattr(httpx, "Client", lambda **_: client(transport=httpx.MockTransport(handle)))
        return requests

    return answer


ENDPOINT = Endpoint("tcp://localhost:9090", rest_url="http://localhost:10080/v1")


@pytest.mark.parametrize(
    "content", [[EVENT], {"scalingEvents": [{"timestamp": 1500, "segmentList": EVENT["segments"], "splits": 1}]}]
)
def test_both_forms_of_the_answer_are_read(answering, content):
    requests = answering(200, json.dumps(content))
    assert scaling_events(ENDPOINT, "a/b") == [EXPECTED]
    assert requests[0].url.path == "/v1/scopes/a/streams/b/scaling-events"
    assert requests[0].url.params["from"] == "0"


@pytest.mark.parametrize(
    ("status", "content", "error"),
    [
        (404, "", SourceNotFound),
        (500, "", SystemUnavailable),
        (200, "none", ProtocolError),
        (200, "[1]", ProtocolError),
        (200, json.dumps([{**EVENT, "timestamp": 10**40}]), ProtocolError),
        (200, json.dumps([{**EVENT, "timestamp": float("nan")}]), ProtocolError),
        (200, json.dumps([{**EVENT, "segments": [{"number": "x"}]}]), ProtocolError),
        (200, "[" * 100_000, ProtocolError),
    ],
)
def test_other_answers_are_errors_of_their_kind(answering, status, content, error):
    answering(status, content)
    with pytest.raises(error):
        scaling_events(ENDPOINT, "a/b")


def test_without_a_rest_api_the_option_to_add_is_named():
    with pytest.raises(InvalidRequest, match="rest_url"):
        scaling_events(Endpoint("tcp://localhost:9090"), "a/b")
