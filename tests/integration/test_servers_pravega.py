"""Real Pravega and Schema Registry servers: ready, on the ports they name, guarded where asked."""

from pathlib import Path

import httpx
import pytest

from stream_servers import QUICK_START, PravegaServer
from stream_servers.java import run_java
from tests.integration.listening import places_of

pytestmark = [pytest.mark.pravega, pytest.mark.slow]

PEER = """
import io.pravega.client.*;
import io.pravega.client.stream.*;
import io.pravega.client.stream.impl.UTF8StringSerializer;
import java.net.URI;
public class Peer {
    public static void main(String[] a) throws Exception {
        ClientConfig config = ClientConfig.builder().controllerURI(URI.create(a[0])).build();
        try (EventStreamClientFactory f = EventStreamClientFactory.withScope(a[1], config);
             EventStreamWriter<String> w =
                 f.createEventWriter(a[2], new UTF8StringSerializer(), EventWriterConfig.builder().build())) {
            for (int i = 0; i < 10; i++) w.writeEvent("k" + i, "event " + i).get();
            System.out.println("written 10");
        }
    }
}
"""


@pytest.fixture
def peer(tmp_path):
    source = tmp_path / "Peer.java"
    source.write_text(PEER)
    return source


def test_it_listens_on_loopback_where_it_can(pravega_server):
    addresses = dict(places_of(pravega_server.pid))
    for name in ("zookeeper", "segment_store", "segment_store_rest"):
        assert "127.0.0.1" in addresses[pravega_server.port[name]], name
    # The controller has no setting for its address.
    assert set(addresses) == set(pravega_server.port.values())


def test_scopes_and_streams_are_made_and_a_java_peer_writes(pravega_server, pravega_scope, peer, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert pravega_server.create_stream(pravega_scope, "orders", segments=3) == f"{pravega_scope}/orders"
    (stream,) = pravega_server.admin("GET", f"scopes/{pravega_scope}/streams")["streams"]
    assert (stream["streamName"], stream["scalingPolicy"]["minSegments"]) == ("orders", 3)
    told = run_java(peer, [pravega_server.controller_uri, pravega_scope, "orders"], pravega_server.classpath)
    assert told == "written 10\n"
    assert [path.name for path in tmp_path.iterdir()] == ["Peer.java"], "the client leaves log files"


def test_a_killed_server_comes_back_empty_on_its_ports_and_accounts_decide_who_may_write(peer):
    permissions = {"prn::/scope:s": "READ", "prn::/scope:s/stream:t": "READ"}
    with PravegaServer(accounts={"reader": permissions}, jvm=QUICK_START) as server:
        server.create_scope("s")
        server.kill()
        server.start()
        assert {scope["scopeName"] for scope in server.admin("GET", "scopes")["scopes"]} == {"_system"}

        assert httpx.get(f"{server.rest_url}/v1/scopes").status_code == 401
        server.create_scope("s")
        server.create_stream("s", "t")
        as_reader = ("reader", server.password("reader"))
        assert httpx.get(f"{server.rest_url}/v1/scopes/s", auth=as_reader).is_success
        assert httpx.post(f"{server.rest_url}/v1/scopes", auth=as_reader, json={"scopeName": "no"}).status_code == 403

        properties = server.client_properties()
        told = run_java(
            peer, [server.controller_uri, "s", "t"], server.classpath, {"JAVA_TOOL_OPTIONS": flags(properties)}
        )
        assert "written 10" in told

        command = Path(f"/proc/{server.pid}/cmdline").read_text()
        assert "LocalPravegaEmulator" in command
        assert server.password() not in command


def flags(properties):
    return " ".join(f"-D{name}={value}" for name, value in properties.items())


def test_the_schema_registry_answers(schema_registry_server):
    answer = httpx.get(f"{schema_registry_server.url}/v1/groups", params={"namespace": "n"})
    assert answer.json()["groups"] == {}
    assert {port for port, _ in places_of(schema_registry_server.pid)} == set(schema_registry_server.port.values())
