"""Whether a plan can hold what an earlier one of the same window held. Pure."""

from __future__ import annotations

from airflow_provider_streams.model.plan import Plan


def lost_since(earlier: Plan, now: Plan) -> str:
    """What of an earlier plan's events another one cannot hold; empty: nothing is known to be gone.

    Counts do not tell: of a source that was made again there may be as many other events.
    """
    then, read = dict(earlier.source.identity), {split.shard for split in earlier.splits}
    for shard, life in now.source.identity:
        if shard in read and then.get(shard, life) != life:
            return f"{shard} is another one by now, made at {life}"
    known = {loss.shard for loss in earlier.losses}
    gone = next((loss for loss in now.losses if loss.shard not in known), None)
    return f"{gone.shard}: {gone.cause}" if gone else ""
