"""The request of a window, checked, and adapted to what its source is now. Pure.

A position of another incarnation of a topic means nothing in the present one, even if a ledger has its number: a broker
that was wiped numbers ledgers from the beginning.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

from airflow_provider_streams.errors import InvalidRequest, SourceNotFound, StartTrimmed, WindowNotReady
from airflow_provider_streams.model.plan.plan import Loss, PlanRequest
from airflow_provider_streams.model.schema import event_time_field
from airflow_provider_streams.model.stream.cut import Cut
from airflow_provider_streams.model.stream.position import Position
from airflow_provider_streams.model.stream.tail_observation import TailObservation
from airflow_provider_streams.model.window.window import Window
from airflow_provider_streams.systems.pulsar.client.admin.responses import InternalInfo
from airflow_provider_streams.systems.pulsar.client.queries import Topic
from airflow_provider_streams.systems.pulsar.metadata.incarnation import ended, incarnation_of
from airflow_provider_streams.systems.pulsar.metadata.ledgers import EARLIEST
from airflow_provider_streams.systems.pulsar.metadata.names import parent_of
from airflow_provider_streams.systems.pulsar.planning import cuts
from airflow_provider_streams.systems.pulsar.planning.cluster_state import Shards
from airflow_provider_streams.systems.pulsar.planning.cuts import FILTERED
from airflow_provider_streams.systems.pulsar.planning.shard_evidence import Seen, seen_by_shard
from airflow_provider_streams.systems.pulsar.planning.start_verification import Doubt, lost_with_incarnation
from airflow_provider_streams.systems.pulsar.source import PulsarSource, pulsar_source


def source_of(request: PlanRequest) -> PulsarSource:
    """The request's source; raises `InvalidRequest` if the request cannot be served."""
    source = pulsar_source(request.source)
    if request.basis == "event":
        event_time_field.check_request(request, source.value)
        request.check_years(2 * request.slack + request.event.allowed_lateness)
    if request.basis == "append" and (request.start_cut is None or request.end_cut is None):
        raise InvalidRequest(
            f"{source}: basis 'append' needs both cuts of the window: they are recorded in the journal, "
            "which operators and `airflow streams` ask"
        )
    return source


def check_time(request: PlanRequest, now: datetime) -> None:
    """Raise `WindowNotReady` before a window of time, and where its end is looked up slack and lateness, are over."""
    ready = _certain_from(request)
    if ready is not None and now < ready:
        raise WindowNotReady(request.source, request.window, f"it is certain at {ready.isoformat()} at the earliest")


def check_server_time(request: PlanRequest, latest: datetime | None) -> None:
    """As `check_time`, by the server's clock: if this machine's is ahead, events of the window are still to come.

    Args:
        request: the window.
        latest: the latest time that the server's clock may show; None: it is not known.
    """
    ready = _certain_from(request)
    if ready is not None and latest is not None and latest < ready:
        raise WindowNotReady(
            request.source,
            request.window,
            f"it is certain at {ready.isoformat()} at the earliest, and the server's clock does not show more than "
            f"{latest.isoformat(timespec='seconds')}. This machine's clock is ahead: synchronize both by NTP",
        ).mark_foreseeable()


def _certain_from(request: PlanRequest) -> datetime | None:
    """From when on a window of time is over; None: its basis does not depend on the time."""
    if request.basis not in (*FILTERED, "chained"):
        return None
    return request.stored.end + (request.slack if request.basis in FILTERED else timedelta(0))


def present_at_end(request: PlanRequest, shards: dict[str, Topic]) -> dict[str, Topic]:
    """The shards that the end cut names; any other shard was created later and belongs to later windows."""
    end = request.end_cut
    return shards if end is None else {shard: topic for shard, topic in shards.items() if shard in end}


def seen_topics(request: PlanRequest) -> set[str]:
    """The topics and partitions that once existed, by tail observations and by cuts that are not a user's."""
    told = [one.tail for one in request.tail_observations]
    if request.basis != "cuts":
        told += [cut for cut in (request.start_cut, request.end_cut) if cut is not None]
    shards = {shard for cut in told for shard in cut}
    return shards | {parent_of(shard) for shard in shards}


def check_lacking(request: PlanRequest, known: Shards, gone: Cut) -> None:
    """Refuse a window that does not say what became of a topic that was seen and no longer exists.

    Args:
        request: the window.
        known: the shards that exist.
        gone: the shards that do not exist, and of which something is lost.

    Raises:
        SourceNotFound: there is such a topic.
    """
    named = {*known, *gone, *(request.start_cut or ()), *(request.end_cut or ())}
    told = named | {parent_of(shard) for shard in named}
    lacking = [topic for topic in source_of(request).topics if topic not in told]
    # a topic that recorded cuts do not name belongs to later windows
    if lacking and not (request.basis == "append" and told):
        raise SourceNotFound(lacking[0])
    if not told:
        raise SourceNotFound(f"a topic of {request.source}")


def gone_since_seen(request: PlanRequest, known: Shards) -> Cut:
    """Where the shards ended that tail observations saw and that no longer exist.

    Cuts decide about the shards that they name. A shard that existed only between the cuts is in neither.

    Raises:
        StartTrimmed: there is one, and loss is not accepted.
    """
    if request.basis == "cuts":
        return Cut({})
    named = {*known, *(request.start_cut or ()), *(request.end_cut or ())}
    gone: dict[str, Position] = {}
    for shard, seen in seen_by_shard(_seen_since_start(request)).items():
        if shard in named or (last := _seen_last(request, seen)) is None:
            continue
        if request.on_loss == "fail":
            detail = f"the topic, which was there at {last.at.isoformat()}, no longer exists"
            raise StartTrimmed(shard, request.window.start.isoformat(), "nothing", detail)
        gone[shard] = last.tail
    return Cut(gone)


def _seen_last(request: PlanRequest, seen: Sequence[Seen]) -> Seen | None:
    """The tail observation that shows that the window lost events of a shard that is gone; None: none does."""
    is_timed = request.basis in FILTERED
    stored = Window(request.stored.start if is_timed else request.seen_before, request.seen_until)
    # a shard that was empty by the window's end may hold events since, and there is no range to call unproven
    told = [one if one.at >= stored.end else replace(one, was_empty=None) for one in seen]
    return lost_with_incarnation(told, stored, request.slack if is_timed else timedelta(0))


def _seen_since_start(request: PlanRequest) -> Iterator[TailObservation]:
    """The tail observations that may have seen events of the window; a start cut decides about earlier ones."""
    for seen in request.tail_observations:
        is_before = request.start_cut is not None and seen.at <= request.seen_before
        # nor does an end cut name what was made later
        is_after = request.end_cut is not None and seen.at >= request.seen_until
        if not is_before and not is_after:
            yield seen


def with_new_shards(request: PlanRequest, known: Shards) -> PlanRequest:
    """The request with checked cuts. A chain reads a new shard from its beginning; a user's start may omit shards.

    Raises:
        StartTrimmed: a deleted topic held events of the window, and loss is not accepted.
        InvalidRequest: an end cut does not name every shard, or a cut names another shard.
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
    """The request with recorded cuts that fit: a shard that was created in between is read from its beginning."""
    start, end = request.start_cut or Cut({}), request.end_cut or Cut({})
    gone = [shard for shard in end if shard not in known and end[shard] != start.get(shard)]
    if gone and request.on_loss == "fail":
        raise StartTrimmed(gone[0], start.get(gone[0], EARLIEST), "nothing", "the topic no longer exists")
    return replace(
        request,
        start_cut=Cut({shard: start.get(shard, EARLIEST) for shard in (*known, *gone)}),
        end_cut=Cut({shard: end[shard] for shard in known}),
    )


@dataclass(frozen=True, slots=True)
class RecreatedShards:
    """The shards whose cuts belong to an incarnation that is gone, and when that was created."""

    asked: PlanRequest
    starts: Mapping[str, str]
    ends: Mapping[str, str]
    now: Mapping[str, InternalInfo]

    @classmethod
    def of(cls, asked: PlanRequest, infos: Mapping[str, InternalInfo]) -> RecreatedShards:
        """From the present metadata of the shards."""
        return cls(asked, ended(asked.start_incarnation, infos), ended(asked.end_incarnation, infos), infos)

    def request(self) -> PlanRequest:
        """The request with present places: nothing of a shard whose end is gone, else all from its first entry."""
        start, end = self.asked.start_cut, self.asked.end_cut
        return replace(
            self.asked,
            start_cut=None if start is None else _moved(start, {*self.starts, *self.ends}),
            end_cut=None if end is None else _moved(end, set(self.ends)),
        )

    def is_quiet(self, shard: str) -> bool:
        """Whether both cuts are one place of one incarnation of a shard, so that nothing was stored between them."""
        start, end = ((cut or Cut({})).get(shard, EARLIEST) for cut in (self.asked.start_cut, self.asked.end_cut))
        made = (dict(known).get(shard) for known in (self.asked.start_incarnation, self.asked.end_incarnation))
        # a partition that does not exist may have come and gone in between
        return start == end > EARLIEST and len(set(made)) == 1

    def doubt(self, shard: str) -> Doubt | None:
        """Why a window lost its part of a shard; None: its cuts belong to the present incarnation, or no one knows."""
        made = self.ends.get(shard) or self.starts.get(shard)
        if made is None:
            return None
        cause = f"the topic was deleted, and made again at {incarnation_of(self.now[shard])}"
        return Doubt(f"{cause}: the cut is of one made at {made}", is_lost=True)

    def loss(self, shard: str, doubt: Doubt) -> Loss | None:
        """Where the window lay in an incarnation that is gone; None: it ends in the present one."""
        if shard not in self.ends or self.asked.end_cut is None:
            return None
        start = (self.asked.start_cut or Cut({})).get(shard, EARLIEST)
        return Loss(shard, start, self.asked.end_cut[shard], doubt.cause)


def _moved(cut: Cut, shards: set[str]) -> Cut:
    positions: dict[str, Position] = {shard: EARLIEST if shard in shards else at for shard, at in cut.items()}
    return Cut(positions)
