from dataclasses import replace

import pytest

from airflow_provider_streams.errors import InvalidRequest, StartUnproven
from airflow_provider_streams.model.plan.receipt import SplitReceipt
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.window.basis import Cuts
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pravega.source import PravegaSource
from airflow_provider_streams.systems.pulsar import system as module
from airflow_provider_streams.systems.pulsar.metadata.ledgers import at
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.system import PulsarSystem
from airflow_provider_streams.systems.registry import declaration_of, load_system
from airflow_provider_streams.windows.plan.readiness import WindowQuestion, plan_request
from tests.unit.systems.pulsar.cluster import EPOCH_MS, Cluster, Stored, Topic, at_ms

OPTIONS = {"service_url": "pulsar://broker:6650", "admin_url": "http://broker:8080", "token": "canary"}
NAME = "persistent://public/default/t"


@pytest.fixture
def system():
    return PulsarSystem.from_options(OPTIONS)


@pytest.fixture
def cluster(monkeypatch, system):
    """The system talks to a cluster in a dictionary."""
    cluster = Cluster(partitions={"persistent://public/default/p": 2})
    for name, ledger in (("t", 10), ("p-partition-0", 20), ("p-partition-1", 30)):
        cluster.add(name, Topic.of([Stored(EPOCH_MS)] * 3, first_ledger=ledger))

    def patched(self, work):
        async def inner():
            import httpx

            from airflow_provider_streams.systems.pulsar.client.admin.client import AsyncAdminClient
            from airflow_provider_streams.systems.pulsar.planning.cluster_state import ClusterState
            from airflow_provider_streams.systems.pulsar.planning.planner import Planner

            async with AsyncAdminClient(self.endpoint, transport=httpx.MockTransport(cluster.handle)) as admin:
                return await work(Planner(ClusterState(admin, cluster, "here")))

        return module.run(inner())

    monkeypatch.setattr(module.PulsarSystem, "_run", patched)
    return cluster


def test_the_table_of_systems_finds_it():
    assert load_system("pulsar") is PulsarSystem


def test_its_repr_holds_no_secret(system):
    assert "canary" not in repr(system)


def test_every_secret_option_is_marked():
    assert {option.name for option in declaration_of("pulsar").options if option.secret} == {"token"}


@pytest.mark.parametrize(
    ("options", "topics", "pattern"),
    [
        ({"topic": "t"}, (NAME,), None),
        ({"topics": "t, shop/orders/x ,"}, (NAME, "persistent://shop/orders/x"), None),
        ({"topicsPattern": "t.*"}, (), f"{NAME}.*"),
        ({"TOPICSPATTERN": "t{1,2}"}, (), NAME + "{1,2}"),
    ],
)
def test_stand_alone_options_name_a_source(system, options, topics, pattern):
    source = system.source(options)
    assert (source.topics, source.pattern) == (topics, pattern)


@pytest.mark.parametrize("options", [{}, {"topic": " "}, {"topic": "a", "topics": "b"}])
def test_none_or_several_of_them_are_refused(system, options):
    with pytest.raises(InvalidRequest, match="topicsPattern"):
        system.source(options)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("earliest", at(10, 0)),
        (" Latest ", at(10, 3)),
        ("10:2", at(10, 2)),
        ("after 10:2", at(10, 3)),
        ('{"ledgerId": 10, "entryId": 1}', at(10, 1)),
        ({"t": "10:2"}, at(10, 2)),
        ('{"persistent://public/default/t": {"ledgerId": 10, "entryId": 1}}', at(10, 1)),
        ({NAME: "latest"}, at(10, 3)),
    ],
)
def test_a_cut_of_one_shard(system, cluster, text, place):
    assert system.parse_cut(PulsarSource("t"), text) == Cut({NAME: place})


def test_a_cut_of_several_shards_names_each(system, cluster):
    parts = [f"persistent://public/default/p-partition-{n}" for n in range(2)]
    source = PulsarSource("p")
    assert system.parse_cut(source, "earliest") == Cut({parts[0]: at(20, 0), parts[1]: at(30, 0)})
    mixed = system.parse_cut(source, {parts[0]: "20:1:0:-1", "p-partition-1": "latest"})
    assert mixed == Cut({parts[0]: at(20, 1), parts[1]: at(30, 3)})
    with pytest.raises(InvalidRequest, match=r"missing: .*partition-1"):
        system.parse_cut(source, {parts[0]: "20:1"})
    with pytest.raises(InvalidRequest, match="2"):
        system.parse_cut(source, "20:1")


@pytest.mark.parametrize("start", [None, "earliest", " Earliest"])
@pytest.mark.parametrize("end", [None, "latest", "13:2"])
def test_whatever_it_is_called_the_head_of_a_trimmed_topic_is_unproven(system, cluster, start, end):
    topic = cluster.add("t", Topic.of([Stored(EPOCH_MS)] * 12))
    window = Window(at_ms(EPOCH_MS), at_ms(EPOCH_MS + 1000))
    request = replace(
        plan_request(system, WindowQuestion(PulsarSource("t"), window, Cuts(start, end)), "reader"), with_schemas=False
    )
    assert [one.verdict for one in system.plan(request).ranges] == ["ok"], "it was never trimmed"
    topic.trim(1, EPOCH_MS + 900)
    (one,) = system.plan(request).ranges
    assert (one.start, one.verdict.partition(":")[0]) == (at(13, 0), "unproven")
    with pytest.raises(StartUnproven):
        system.plan(replace(request, on_unproven="fail"))
    known = plan_request(system, WindowQuestion(PulsarSource("t"), window, Cuts("13:0", end)), "reader")
    assert [one.verdict for one in system.plan(replace(known, with_schemas=False)).ranges] == ["ok"]


PARTS = [f"persistent://public/default/p-partition-{n}" for n in range(2)]


@pytest.mark.parametrize(
    ("start", "verdicts"),
    [
        ("earliest", ["unproven", "ok"]),
        ({PARTS[0]: "earliest", PARTS[1]: "earliest"}, ["unproven", "ok"]),
        ({"p-partition-0": " Earliest", "p-partition-1": "30:1"}, ["unproven", "ok"]),
        (f'{{"{PARTS[0]}": "earliest", "{PARTS[1]}": "30:1"}}', ["unproven", "ok"]),
        ({PARTS[0]: "23:0", PARTS[1]: "earliest"}, ["ok", "ok"]),
    ],
)
@pytest.mark.parametrize("end", [None, "latest", {PARTS[0]: "23:2", PARTS[1]: "latest"}])
def test_so_it_is_of_one_shard_where_it_is_said_of_that_alone(system, cluster, start, verdicts, end):
    topic = cluster.add("p-partition-0", Topic.of([Stored(EPOCH_MS)] * 12, first_ledger=20))
    topic.trim(1, EPOCH_MS + 900)
    window = Window(at_ms(EPOCH_MS), at_ms(EPOCH_MS + 1000))
    request = replace(
        plan_request(system, WindowQuestion(PulsarSource("p"), window, Cuts(start, end)), "reader"), with_schemas=False
    )
    plan = system.plan(request)
    assert [one.verdict.partition(":")[0] for one in plan.ranges] == verdicts
    assert plan.start_cut[PARTS[0]] == at(23, 0)
    if "unproven" in verdicts:
        with pytest.raises(StartUnproven):
            system.plan(replace(request, on_unproven="fail"))


@pytest.mark.parametrize("start", [{PARTS[0]: "earliest"}, {PARTS[0]: "earliest", PARTS[1]: "earliest", NAME: "1:1"}])
def test_a_start_names_each_shard_and_no_other(system, cluster, start):
    window = Window(at_ms(EPOCH_MS), at_ms(EPOCH_MS + 1000))
    with pytest.raises(InvalidRequest, match="a cut must name every shard of its source once"):
        plan_request(system, WindowQuestion(PulsarSource("p"), window, Cuts(start)), "reader")


@pytest.mark.parametrize("text", ["{", "[", "never", ""])
def test_other_texts_are_refused(system, cluster, text):
    with pytest.raises(InvalidRequest):
        system.parse_cut(PulsarSource("t"), text)


def test_another_systems_source_is_refused(system):
    with pytest.raises(InvalidRequest, match="not a Pulsar source"):
        system.parse_cut(PravegaSource("a/b"), "earliest")


def test_receipts_without_gaps_are_explained_without_a_connection(system):
    report = SplitReceipt(0)
    assert system.explain(None, [report], on_loss="fail") == (report,)


def test_its_schema_is_the_decoders(system):
    assert system.schema(["value", "key"]).names == ["value", "key"]
    with pytest.raises(InvalidRequest):
        system.schema(["nothing"])


def test_planning_without_an_admin_url_names_it():
    system = PulsarSystem.from_options({"service_url": "pulsar://broker"})
    with pytest.raises(InvalidRequest, match="admin_url"):
        system.parse_cut(PulsarSource("t"), "earliest")
