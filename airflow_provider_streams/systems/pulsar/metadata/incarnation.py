"""How to distinguish incarnations of a topic: deleted and created again, wiped, or on another cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC

from airflow_provider_streams.errors import SourceReplaced
from airflow_provider_streams.errors.plurals import counted
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.model.stream.tail_observation import Incarnation
from airflow_provider_streams.systems.pulsar.client.admin.responses import InternalInfo, InternalStats


def incarnation_of(info: InternalInfo | None) -> str | None:
    """When a topic or partition was created, by the metadata store; None: the cluster does not tell.

    Loading, rolling, trimming, offload, more partitions and restarts do not change it. A metadata store without times
    answers with 1970.
    """
    if info is None or info.created is None or info.created.timestamp() <= 0:
        return None
    return info.created.astimezone(UTC).isoformat()


def incarnations_of(infos: Mapping[str, InternalInfo]) -> tuple[tuple[str, str], ...]:
    """The known incarnations of shards, sorted."""
    found = ((shard, incarnation_of(info)) for shard, info in infos.items())
    return tuple(sorted((shard, incarnation) for shard, incarnation in found if incarnation is not None))


def ended(incarnations: Incarnation, infos: Mapping[str, InternalInfo]) -> dict[str, str]:
    """The shards that have another incarnation now, and when the one of `incarnations` was created."""
    then = dict(incarnations)
    return {shard: then[shard] for shard, found in incarnations_of(infos) if then.get(shard, found) != found}


def check_incarnations(plan: Plan, infos: Mapping[str, InternalInfo]) -> None:
    """Raise `SourceReplaced` if a shard of a plan was created again; the read reports a shard that is gone."""
    for shard, made in ended(plan.source.incarnation, infos).items():
        raise SourceReplaced(shard, f"the topic made at {made}", f"one made at {incarnation_of(infos[shard])}")


def check_ledgers(plan: Plan, stats: Mapping[str, InternalStats | None]) -> None:
    """Raise `SourceReplaced` if ledgers of a plan contradict the present shards, where incarnations are not known.

    In a cluster, ledger numbers only grow, and a ledger keeps its entries until it is removed.
    """
    for shard, planned in _ledgers(plan).items():
        found = stats.get(shard)
        if found is not None and (why := _contradiction(planned, found)):
            raise SourceReplaced(shard, f"a topic with {why[0]}", f"one with {why[1]}")


def check_name(plan: Plan, cluster: str) -> None:
    """Raise `SourceReplaced` if a plan is of a cluster with another name, where incarnations are not known."""
    if plan.source.cluster != cluster:
        source = ", ".join(plan.source.names)
        raise SourceReplaced(source, f"the cluster {plan.source.cluster}", f"the cluster {cluster}")


def _ledgers(plan: Plan) -> dict[str, dict[int, int]]:
    """How many entries the plan knows, by shard and ledger."""
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
            return f"{counted(entries, 'entry')} in ledger {ledger}", f"{now[ledger]}"
    newest = max(now, default=None)
    if newest is not None and newest < max(planned):
        return f"ledger {max(planned)}", f"ledgers up to {newest}"
    return None


def unknown_shards(plan: Plan, infos: Mapping[str, InternalInfo]) -> Iterator[str]:
    """The planned shards whose incarnation was not known, or is not known now."""
    planned, found = dict(plan.source.incarnation), dict(incarnations_of(infos))
    return (shard for shard in _ledgers(plan) if shard not in planned or shard not in found)
