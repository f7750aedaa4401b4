import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from airflow_provider_streams.errors import (
    AuthenticationFailed,
    InvalidRequest,
    NotAuthorized,
    ProtocolError,
    RedirectRefused,
    SourceNotFound,
    StreamsError,
    SystemUnavailable,
)
from airflow_provider_streams.systems.connection.backoff import Backoff
from airflow_provider_streams.systems.io_free_rules import together
from airflow_provider_streams.systems.pulsar.client.admin import requests
from airflow_provider_streams.systems.pulsar.client.admin.client import AdminClient, AsyncAdminClient
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.rest.exchange import MAX_HOPS

TOKEN = "eyJ.canary.token"
TOPIC = "persistent://shop/orders/events"
LAST = {"ledgerId": 4, "entryId": 2, "batchIndex": -1}
ATTEMPTS = 3
HTML_401 = (
    "<html><head><title>Error 401</title></head><body><h2>HTTP ERROR 401 Authentication required</h2>"
    "<table><tr><th>URI:</th><td>/admin/v2/x</td></tr></table></body></html>"
)
STACK = (
    "\n --- An unexpected error occurred in the server ---\n\nMessage: it broke\n\nStacktrace:\n\njava.lang.Boom at x"
)


class Server:
    """Answers from a list, the last one for ever; remembers what came."""

    def __init__(self, *answers):
        self.answers, self.seen = list(answers), []

    def __call__(self, request):
        self.seen.append(request)
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def hosts(self):
        return [request.url.host for request in self.seen]


def endpoint(**given):
    return Endpoint(**{"service_url": "pulsar://broker", "admin_url": "http://broker:8080", "token": TOKEN, **given})


def call(server, request=None, **given):
    backoff = Backoff(ATTEMPTS, 0, 0)
    with AdminClient(endpoint(**given), transport=httpx.MockTransport(server), backoff=backoff) as client:
        return client(request or requests.last_message_id(TOPIC))


def ok():
    return httpx.Response(200, json=LAST)


def refusal(status, reason=""):
    return httpx.Response(status, json={"reason": reason})


def test_a_call_shows_who_we_are_and_reads_its_answer():
    server = Server(ok())
    answer = call(server)
    assert (answer.ledger, answer.entry) == (4, 2)
    (request,) = server.seen
    assert request.headers["authorization"] == f"Bearer {TOKEN}"
    assert request.headers["x-pulsar-auth-method-name"] == "token"
    assert request.url.path == "/admin/v2/persistent/shop/orders/events/lastMessageId"


def test_topics_are_percent_encoded_as_one_segment():
    server = Server(ok())
    call(server, requests.last_message_id("persistent://shop/orders/a/b ?%"))
    assert server.seen[0].url.raw_path == b"/admin/v2/persistent/shop/orders/a%2Fb%20%3F%25/lastMessageId"


@pytest.mark.parametrize(
    "passing",
    [
        httpx.ConnectError("refused"),
        httpx.ReadTimeout("slow"),
        httpx.RemoteProtocolError("closed"),
        *(httpx.Response(status) for status in (429, 500, 502, 503, 504)),
        httpx.Response(503, html="<html><body>Service Unavailable</body></html>"),
        refusal(412, "Can't find owner for topic persistent://shop/orders/events"),
    ],
    ids=repr,
)
def test_passing_failures_are_repeated_until_they_pass(passing):
    server = Server(passing, passing, ok())
    assert call(server).ledger == 4
    assert len(server.seen) == ATTEMPTS


@pytest.mark.parametrize(
    "passing", [httpx.ConnectError("refused"), httpx.ReadTimeout("slow"), httpx.Response(503)], ids=repr
)
def test_failures_that_do_not_pass_end_as_unavailable(passing):
    server = Server(passing)
    with pytest.raises(SystemUnavailable) as caught:
        call(server)
    assert len(server.seen) == ATTEMPTS
    assert TOPIC in str(caught.value)
    assert caught.value.retryable


def test_a_lookup_by_time_repeats_a_random_not_found():
    server = Server(refusal(404, "Message ID not found"), ok())
    assert call(server, requests.message_id_at(TOPIC, 5)).ledger == 4


def test_a_gone_ledger_is_an_answer_at_once():
    server = Server(refusal(404, "Message id not found"))
    assert call(server, requests.peek(TOPIC, 3, 4)) is None
    assert len(server.seen) == 1


def test_an_entry_beyond_the_end_is_not_asked_for_twice():
    server = Server(refusal(500, "Message: LastConfirmedEntry is 6:5 when reading entry 99\n\nStacktrace:.."))
    with pytest.raises(ProtocolError, match="LastConfirmedEntry"):
        call(server, requests.peek(TOPIC, 6, 99))
    assert len(server.seen) == 1


def test_a_call_that_changes_something_is_sent_once():
    from dataclasses import replace

    once = replace(requests.last_message_id(TOPIC), method="POST", idempotent=False)
    for failure, sent in (
        (httpx.ReadTimeout("slow"), 1),
        (httpx.Response(503), 1),
        (httpx.ConnectError("no"), ATTEMPTS),
    ):
        server = Server(failure)
        with pytest.raises(SystemUnavailable):
            call(server, once)
        assert len(server.seen) == sent, failure


@pytest.mark.parametrize(
    ("answer", "error"),
    [
        (httpx.Response(401, html=HTML_401), AuthenticationFailed),
        (refusal(401, "Authentication required"), AuthenticationFailed),
        (
            refusal(401, f"Unauthorized to validateTopicOperation for operation [GET_STATS] on topic [{TOPIC}]"),
            NotAuthorized,
        ),
        (refusal(403, "Unauthorized to validateNamespacePolicyOperation"), NotAuthorized),
        (refusal(404, f"Topic {TOPIC} not found"), SourceNotFound),
        (httpx.Response(404, html="<html>HTTP ERROR 404 Not Found</html>"), ProtocolError),
        (refusal(405, "not allowed on a partitioned topic"), ProtocolError),
        (refusal(409, "conflict"), ProtocolError),
        (refusal(412, "precondition"), ProtocolError),
        (httpx.Response(200, text="{not json"), ProtocolError),
        (httpx.Response(200, json={"other": 1}), ProtocolError),
        (httpx.Response(200, json=[]), ProtocolError),
        (httpx.Response(418), ProtocolError),
    ],
)
def test_each_refusal_is_its_own_error_and_is_not_repeated(answer, error):
    server = Server(answer)
    with pytest.raises(error) as caught:
        call(server)
    assert type(caught.value) is error
    assert len(server.seen) == 1
    text = str(caught.value)
    assert "<" not in text
    assert TOPIC in text or error is AuthenticationFailed


def test_error_texts_hold_no_stack_and_no_token():
    server = Server(refusal(500, STACK), refusal(405, f"{STACK} with Bearer {TOKEN}"), refusal(500, f"echo {TOKEN}"))
    for _ in range(2):
        with pytest.raises(StreamsError) as caught:
            call(server)
        assert "java.lang" not in str(caught.value)
        assert "---" not in str(caught.value)
        assert TOKEN not in str(caught.value)


def test_policies_we_may_not_read_are_not_known():
    for answer in (refusal(403, "Unauthorized to .."), refusal(401, "Unauthorized to validateTopicPolicyOperation")):
        assert call(Server(answer), requests.retention(TOPIC)) is None
    with pytest.raises(AuthenticationFailed):
        call(Server(httpx.Response(401, html=HTML_401)), requests.retention(TOPIC))


def redirect(location, status=307):
    return httpx.Response(status, headers={"Location": location})


QUESTION = "/admin/v2/persistent/shop/orders/events/lastMessageId"


def test_a_redirect_to_the_same_host_is_followed_with_credentials():
    server = Server(redirect(f"http://broker:9999{QUESTION}?authoritative=true"), ok())
    call(server)
    second = server.seen[1]
    assert str(second.url) == f"http://broker:9999{QUESTION}?authoritative=true"
    assert second.headers["authorization"] == f"Bearer {TOKEN}"


def test_a_relative_redirect_stays_on_the_host():
    server = Server(redirect(f"{QUESTION}?authoritative=true"), ok())
    call(server)
    assert str(server.seen[1].url) == f"http://broker:8080{QUESTION}?authoritative=true"


def test_a_redirect_to_another_host_is_refused_and_names_the_option():
    server = Server(redirect(f"http://evil:8080{QUESTION}"), ok())
    with pytest.raises(RedirectRefused, match=r"leads to http://evil:8080: .*allowed_hosts") as caught:
        call(server)
    assert server.hosts == ["broker"]
    assert TOKEN not in str(caught.value)


def test_allowed_hosts_may_receive_credentials():
    for allowed in ("broker-2", "*.internal"):
        server = Server(redirect(f"http://Broker-2{allowed[1:] if '*' in allowed else ''}:8080{QUESTION}"), ok())
        call(server, allowed_hosts=(allowed,))
        assert server.seen[1].headers["authorization"] == f"Bearer {TOKEN}"


@pytest.mark.parametrize("host", ["broker-2", "10.1.2.3", "192.168.0.7", "pulsar-1.ns.svc.cluster.local", "[fd00::7]"])
def test_without_credentials_the_brokers_of_a_cluster_are_asked_wherever_they_are(host):
    server = Server(redirect(f"http://{host}:8080{QUESTION}"), ok())
    call(server, token="")
    assert "authorization" not in server.seen[1].headers


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "127.0.0.1", "localhost", "[::1]", "[::]", "[::ffff:127.0.0.1]", "[fe80::1]"]
)
def test_without_credentials_a_redirect_leads_neither_to_this_machine_nor_to_a_clouds_metadata(host):
    server = Server(redirect(f"http://{host}{QUESTION}"), ok())
    with pytest.raises(RedirectRefused):
        call(server, token="")
    assert server.hosts == ["broker"]


def test_who_calls_its_own_machine_may_be_led_to_it():
    server = Server(redirect(f"http://127.0.0.1:8081{QUESTION}"), ok())
    call(server, token="", service_url="pulsar://localhost", admin_url="http://localhost:8080")
    assert server.hosts == ["localhost", "127.0.0.1"]


def test_with_allowed_hosts_a_redirect_leads_to_no_other_even_without_credentials():
    server = Server(redirect(f"http://other:8080{QUESTION}"), ok())
    with pytest.raises(RedirectRefused, match="leads to http://other:8080: which is none of allowed_hosts"):
        call(server, token="", allowed_hosts=("broker-2",))
    assert server.hosts == ["broker"]


@pytest.mark.parametrize(
    "location",
    [
        "http://broker:8080/",
        "http://broker:8080/latest/meta-data/iam",
        f"http://broker:8080{QUESTION}/../../../secret",
        f"http://user:password@broker:8080{QUESTION}",
        "http://[broken",
        f"http://broker:99999{QUESTION}",
    ],
)
def test_a_redirect_leads_to_the_same_question_or_nowhere(location):
    server = Server(redirect(location), ok())
    with pytest.raises(ProtocolError, match="redirects to"):
        call(server, token="")
    assert len(server.seen) == 1


NO_ADDRESSES = {
    "too long with its host": (f"{QUESTION}?a={'a' * 65_480}", ProtocolError, "leads to something that is no address"),
    # of these httpx says so itself
    "too long": (f"{QUESTION}?a={'a' * 70_000}", SystemUnavailable, "Invalid URL in location header"),
    "unprintable": (f"{QUESTION}?a=\x01", SystemUnavailable, "Invalid URL in location header"),
    "no host": (f"http://bür..ker:8080{QUESTION}", SystemUnavailable, "Invalid URL in location header"),
}


@pytest.mark.parametrize(("location", "error", "words"), NO_ADDRESSES.values(), ids=NO_ADDRESSES)
async def test_a_redirect_that_no_client_can_follow_is_an_error_of_ours(location, error, words):
    def answer(_):
        return httpx.Response(307, headers={"location": location.encode()})

    with pytest.raises(error, match=words) as caught:
        call(answer, token="")
    assert "aaaa" not in str(caught.value)
    backoff, transport = Backoff(ATTEMPTS, 0, 0), httpx.MockTransport(answer)
    async with AsyncAdminClient(endpoint(token=""), transport=transport, backoff=backoff) as client:
        with pytest.raises(error, match=words):
            await client(requests.last_message_id(TOPIC))


def test_a_redirect_may_leave_out_the_path_of_a_proxy():
    server = Server(redirect(f"http://broker:8080{QUESTION}"), ok())
    call(server, admin_url="http://broker/pulsar")
    assert [request.url.path for request in server.seen] == [f"/pulsar{QUESTION}", QUESTION]


@pytest.mark.parametrize("token", [TOKEN, ""])
def test_a_redirect_does_not_leave_tls(token):
    server = Server(redirect(f"http://broker:8080{QUESTION}"), ok())
    with pytest.raises(RedirectRefused, match="plain HTTP"):
        call(server, admin_url="https://broker:8443", token=token)
    assert len(server.seen) == 1


def test_rewritten_redirects_stay_on_the_base_host():
    server = Server(redirect(f"http://10.0.0.7:8080{QUESTION}?authoritative=true"), ok())
    call(server, rewrite_redirects=True)
    assert str(server.seen[1].url) == f"http://broker:8080{QUESTION}?authoritative=true"


def test_rewritten_redirects_without_end_name_the_option():
    server = Server(redirect(f"http://10.0.0.7:8080{QUESTION}"))
    with pytest.raises(ProtocolError, match=r"more than 5 redirects .*\. With rewrite_redirects, each one led to"):
        call(server, rewrite_redirects=True)


def test_redirects_without_end_or_target_are_errors():
    server = Server(redirect(f"http://broker:8080{QUESTION}"))
    with pytest.raises(ProtocolError, match="redirects"):
        call(server)
    assert len(server.seen) == MAX_HOPS + 1
    with pytest.raises(ProtocolError, match="target"):
        call(Server(httpx.Response(307)))


def test_a_missing_admin_url_is_named():
    with pytest.raises(InvalidRequest, match="admin_url"):
        AdminClient(Endpoint("pulsar://broker"))


def test_every_call_has_a_time_limit():
    server = Server(ok())
    call(server, request_timeout_seconds=7)
    assert set(server.seen[0].extensions["timeout"].values()) == {7}


async def test_the_asynchronous_client_keeps_the_order_and_repeats():
    def answer(request):
        number = int(request.url.path.rpartition("/")[2])
        if number in failing:
            failing.remove(number)
            return httpx.Response(503)
        return httpx.Response(200, json={"ledgerId": number, "entryId": 0})

    failing = {3, 50}
    backoff = Backoff(ATTEMPTS, 0, 0)
    async with AsyncAdminClient(endpoint(), transport=httpx.MockTransport(answer), backoff=backoff) as client:
        found = await client.all(requests.message_id_at(TOPIC, number) for number in range(100))
    assert [answer.ledger for answer in found] == list(range(100))


async def test_the_first_failure_ends_the_others_and_is_raised_itself():
    import asyncio

    ended = []

    async def wait():
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    async def fail():
        await asyncio.sleep(0)
        raise SystemUnavailable("broker", "gone")

    with pytest.raises(SystemUnavailable):
        await together([wait(), fail(), wait()])
    assert ended == [True, True]


@given(st.binary(max_size=200), st.integers(200, 599))
def test_no_answer_does_anything_but_an_error_of_ours(body, status):
    if status in {301, 302, 303, 307, 308}:
        return
    try:
        call(Server(httpx.Response(status, content=body)), requests.internal_stats(TOPIC))
    except StreamsError as error:
        text, needs_topic = str(error), not isinstance(error, AuthenticationFailed)
        assert (TOPIC in text) >= needs_topic
