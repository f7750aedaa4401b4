"""What tells one life of a topic from another one of its name: deleted and made anew, wiped, or on another cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC

from airflow_provider_streams.errors import OtherCluster
from airflow_provider_streams.model.plan import Plan
from airflow_provider_streams.model.sighting import Identity
from airflow_provider_streams.systems.pulsar.admin.answers import InternalInfo, InternalStats


def identity_of(info: InternalInfo | None) -> str | None:
    """When a topic or partition was made, by its record in the metadata store; None: the cluster does not tell.

    Loading, rolling, trimming, offload, more partitions and restarts leave it as it is. A metadata store that keeps
    no times answers with 1970.
    """
    if info is None or info.created is None or info.created.timestamp() <= 0:
        return None
    return info.created.astimezone(UTC).isoformat()


def identities(infos: Mapping[str, InternalInfo]) -> tuple[tuple[str, str], ...]:
    """Those of shards, sorted; the ones not known are left out."""
    found = ((shard, identity_of(info)) for shard, info in infos.items())
    return tuple(sorted((shard, identity) for shard, identity in found if identity is not None))


def ended(lives: Identity, infos: Mapping[str, InternalInfo]) -> dict[str, str]:
    """The shards of which another life is there now, and when the one of `lives` was made."""
    then = dict(lives)
    return {shard: then[shard] for shard, found in identities(infos) if then.get(shard, found) != found}


def check_lives(plan: Plan, infos: Mapping[str, InternalInfo]) -> None:
    """Whether the shards that a plan knows the identity of are what they were. One that is gone is left to the read.

    Raises:
        OtherCluster: one of them was made at another time.
    """
    for shard, made in ended(plan.source.identity, infos).items():
        raise OtherCluster(shard, f"the topic made at {made}", f"one made at {identity_of(infos[shard])}")


def check_ledgers(plan: Plan, stats: Mapping[str, InternalStats | None]) -> None:
    """Whether the ledgers of a plan can be those of the shards there now, where identities are not known.

    Numbers of ledgers only grow, over all topics of a cluster, and what is stored in one stays until the ledger goes.

    Raises:
        OtherCluster: they cannot.
    """
    for shard, planned in _ledgers(plan).items():
        found = stats.get(shard)
        if found is not None and (why := _contradiction(planned, found)):
            raise OtherCluster(shard, f"a topic with {why[0]}", f"one with {why[1]}")


def check_name(plan: Plan, cluster: str) -> None:
    """Whether the cluster is called as it was, where a topic's identity is not known.

    Raises:
        OtherCluster: it is not.
    """
    if plan.source.cluster != cluster:
        source = ", ".join(plan.source.names)
        raise OtherCluster(source, f"the cluster {plan.source.cluster}", f"the cluster {cluster}")


def _ledgers(plan: Plan) -> dict[str, dict[int, int]]:
    """By shard and ledger: how many entries the plan knows of."""
    known: dict[str, dict[int, int]] = {}
    for split in plan.splits:
        ledgers = known.setdefault(split.shard, {})
        for span in split.spans:
            ledgers[span.run] = max(ledgers.get(span.run, 0), span.end)
    return known


def _contradiction(planned: Mapping[int, int], found: InternalStats) -> tuple[str, str] | None:
    now = {row.ledger: row.entries for row in found.ledgers}
    for ledger, entries in planned.items():
        if now.get(ledger, entries) < entries:
            return f"{entries} entries in ledger {ledger}", f"{now[ledger]}"
    newest = max(now, default=None)
    if newest is not None and newest < max(planned):
        return f"ledger {max(planned)}", f"ledgers up to {newest}"
    return None


def unknown_shards(plan: Plan, infos: Mapping[str, InternalInfo]) -> Iterator[str]:
    """The planned shards whose identity is not known, then or now."""
    planned, found = dict(plan.source.identity), dict(identities(infos))
    return (shard for shard in _ledgers(plan) if shard not in planned or shard not in found)
