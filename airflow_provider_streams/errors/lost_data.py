"""Errors of events that the stream no longer holds, or soon may not."""

from __future__ import annotations

from airflow_provider_streams.errors.base import StreamsError, as_sentence, because


class RetentionAtRisk(StreamsError):
    """The stream may drop events before they are read."""

    foreseeable = True

    def __init__(self, source: object, detail: str) -> None:
        self.source = source
        super().__init__(f"{source}: {as_sentence(detail)} Keep data for longer, place a hold, or read sooner.")


class DataLoss(StreamsError):
    """The stream no longer holds what the window needs."""


class StartTrimmed(DataLoss):
    """The window starts before the first position still held."""

    foreseeable = True

    def __init__(self, shard: str, wanted: object, available: object, detail: str = "") -> None:
        self.shard, self.wanted, self.available = shard, wanted, available
        super().__init__(
            f"{shard}: the window starts at {wanted}, the first position still held is {available}"
            f"{because(detail)}. Move the window, or accept the loss with on_loss='record'."
        )


class StartUnproven(DataLoss):
    """Nothing proves that the window's start is still held."""

    def __init__(self, shard: str, window: object, reason: str) -> None:
        self.shard, self.window, self.reason = shard, window, reason
        super().__init__(
            f"{shard}: nothing proves that all of window {window} is still held: {as_sentence(reason)} "
            "Read it between positions that you know, with Cuts(start, end), or accept it with on_unproven='land'."
        )


class EventsLost(DataLoss):
    """Events inside the window vanished."""

    def __init__(self, shard: str, start: object, end: object, size: str, cause: str) -> None:
        self.shard, self.start, self.end, self.size, self.cause = shard, start, end, size, cause
        super().__init__(
            f"{shard}: {size} of [{start}, {end}) can no longer be read: {as_sentence(cause)} "
            "Accept the loss with on_loss='record', or restore the data."
        )
