from __future__ import annotations

import pytest

from airflow_provider_streams.errors import InvalidRequest, RedirectRefused
from airflow_provider_streams.systems.connection.redirect_policy import RedirectPolicy

CLUSTER = RedirectPolicy.of(["pulsar.example"], ())


@pytest.mark.parametrize(
    "host", ["broker-0.pulsar.svc", "10.0.0.7", "172.16.3.4", "192.168.1.2", "100.64.0.9", "240.240.0.1", "fd00::1"]
)
def test_a_cluster_may_name_its_servers_in_any_network(host):
    CLUSTER.check("broker", host)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST.", "a.localhost", "127.0.0.9", "::1", "[::1]"])
def test_the_calling_machine_is_called_only_by_who_named_it(host):
    with pytest.raises(RedirectRefused, match="machine that calls"):
        CLUSTER.check("broker", host)
    RedirectPolicy.of(["127.0.0.1"], ()).check("broker", host)
    RedirectPolicy.of(["localhost"], ()).check("broker", host)
    RedirectPolicy.of(["pulsar.example"], [host]).check("broker", host)


@pytest.mark.parametrize("host", ["169.254.169.254", "fe80::1", "fe80::1%eth0", "::ffff:169.254.169.254"])
def test_a_link_local_address_is_called_only_by_who_named_it(host):
    with pytest.raises(RedirectRefused, match="link-local"):
        CLUSTER.check("broker", host)
    RedirectPolicy.of([host], ()).check("broker", host)


def test_allowed_hosts_are_all_there_are():
    narrow = RedirectPolicy.of(["Pulsar.Example"], ["Other", "*.cluster.local"])
    for host in ("pulsar.example", "PULSAR.EXAMPLE.", "other", "a.b.cluster.local"):
        assert narrow.names(host)
        narrow.check("broker", host)
    for host in ("evil", "cluster.local", "evilcluster.local", "pulsar.example.evil", "10.0.0.7"):
        assert not narrow.names(host)
        with pytest.raises(RedirectRefused, match="none of allowed_hosts"):
            narrow.check("broker", host)


@pytest.mark.parametrize("pattern", ["http://a", "a:6650", "*", "a.*.b", "**", "a b", ""])
def test_what_is_no_host_cannot_be_allowed(pattern):
    with pytest.raises(InvalidRequest, match="allowed_hosts"):
        RedirectPolicy.of(["a"], [pattern])
