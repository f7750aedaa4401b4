"""A window as it was asked for, checked, and completed by what its source is now. Pure."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime, timedelta

from airflow_provider_streams.errors import InvalidRequest, StartTrimmed, WindowNotReady
from airflow_provider_streams.model import event_field
from airflow_provider_streams.model.cut import Cut
from airflow_provider_streams.model.plan import PlanRequest
from airflow_provider_streams.systems.pulsar import cuts
from airflow_provider_streams.systems.pulsar.assemble_plan import FILTERED
from airflow_provider_streams.systems.pulsar.layout import EARLIEST
from airflow_provider_streams.systems.pulsar.questions import Topic
from airflow_provider_streams.systems.pulsar.source import PulsarSource
from airflow_provider_streams.systems.pulsar.survey import Shards


def source_of(request: PlanRequest) -> PulsarSource:
    """The request's source, if the request can be served at all.

    Raises:
        InvalidRequest: it cannot.
    """
    if not isinstance(request.source, PulsarSource):
        raise InvalidRequest(f"{request.source} is not a Pulsar source")
    if request.basis == "event":
        event_field.check_request(request, request.source.value)
        request.check_years(2 * request.slack + request.event.max_lateness)
    if request.basis == "append" and (request.start_cut is None or request.end_cut is None):
        raise InvalidRequest(
            f"{request.source}: basis 'append' needs both cuts of the window: they are recorded in the journal, "
            "which operators and `airflow streams` ask"
        )
    return request.source


def check_time(request: PlanRequest, now: datetime) -> None:
    """A window of time is over, and what is waited for where its end is looked up: slack, and late events.

    Raises:
        WindowNotReady: not yet.
    """
    if request.basis not in (*FILTERED, "chained"):
        return
    ready = request.stored.end + (request.slack if request.basis in FILTERED else timedelta(0))
    if now < ready:
        raise WindowNotReady(request.source, request.window, f"it is certain at {ready.isoformat()} at the earliest")


def present_at_end(request: PlanRequest, shards: dict[str, Topic]) -> dict[str, Topic]:
    """A shard that its end cut does not name was made later: all of it belongs to later windows."""
    end = request.end_cut
    return shards if end is None else {shard: topic for shard, topic in shards.items() if shard in end}


def gone_since_seen(request: PlanRequest, known: Shards) -> Cut:
    """The shards that held something when the source was seen, and do not exist any more: where they ended.

    That is a pattern's business: a topic that is named does exist.
    """
    seen = request.first_seen
    if seen is None or request.basis not in FILTERED or seen.at >= request.stored.end:
        return Cut({})
    return Cut({shard: end for shard, end in seen.tail.items() if shard not in known and end > EARLIEST})


def check_seen(request: PlanRequest, known: Shards) -> None:
    """Whether every topic that was there when the source was seen still is.

    Raises:
        StartTrimmed: one is not, and loss is not accepted.
    """
    gone = gone_since_seen(request, known)
    if gone and request.on_loss == "fail":
        shard, seen = next(iter(gone)), request.first_seen
        when = seen.at.isoformat() if seen else ""
        detail = f"the topic, which was there at {when}, no longer exists"
        raise StartTrimmed(shard, request.window.start.isoformat(), "nothing", detail)


def with_new_shards(request: PlanRequest, known: Shards) -> PlanRequest:
    """The request, its cuts checked. A chain reads a shard that is new to it from its beginning.

    A shard that a user's start leaves out is read from its head, wherever that is.

    Raises:
        StartTrimmed: a topic was deleted, some of whose events belong to the window, and loss is not accepted.
        InvalidRequest: an end cut does not name every shard, or a cut names another one.
    """
    if request.basis == "append" and request.start_cut is not None and request.end_cut is not None:
        return _recorded(request, known)
    if request.basis != "chained" or request.start_cut is None:
        start = None if request.start_cut is None else {**known, **request.start_cut}
        cuts.check_shards(known, start, request.end_cut)
        return request
    gone = sorted(request.start_cut.keys() - known.keys())
    if gone and request.on_loss == "fail":
        raise StartTrimmed(gone[0], request.start_cut[gone[0]], "nothing", "the topic no longer exists")
    cuts.check_shards(known, request.end_cut)
    return replace(request, start_cut=Cut({**dict.fromkeys(known, EARLIEST), **request.start_cut}))


def _recorded(request: PlanRequest, known: Shards) -> PlanRequest:
    """The request with recorded cuts that fit: a shard that was made in between is read from its beginning.

    Raises:
        StartTrimmed: a topic was deleted, some of whose events belong to the window, and loss is not accepted.
    """
    start, end = request.start_cut or Cut({}), request.end_cut or Cut({})
    gone = [shard for shard in end if shard not in known and end[shard] != start.get(shard)]
    if gone and request.on_loss == "fail":
        raise StartTrimmed(gone[0], start.get(gone[0], EARLIEST), "nothing", "the topic no longer exists")
    return replace(
        request,
        start_cut=Cut({shard: start.get(shard, EARLIEST) for shard in (*known, *gone)}),
        end_cut=Cut({shard: end[shard] for shard in known}),
    )
