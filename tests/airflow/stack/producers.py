"""Producers of a real topic and a real stream: each keeps what the server acknowledged, and when."""

from __future__ import annotations

import threading
from abc import abstractmethod
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from airflow_provider_streams.hooks.pravega import PravegaHook
from airflow_provider_streams.systems.pravega.operations import scaling
from airflow_provider_streams.testing.pravega_writer import PravegaWriter

EACH = 20
"""Events between two looks whether to go on."""


@dataclass(frozen=True, slots=True)
class Ack:
    """One event that the server has taken."""

    sent: datetime
    """Before it was sent."""
    taken: datetime
    """After it was acknowledged."""
    place: tuple[int, ...] = ()
    """Of a Pulsar message: its partition, ledger, entry and batch index."""


class Producer(threading.Thread):
    """Writes numbered events until `stop`."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.acks: dict[int, Ack] = {}
        self.failure: BaseException | None = None
        self._ended = threading.Event()

    def run(self) -> None:
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001 - shown by `end`
            self.failure = error

    @abstractmethod
    def work(self) -> None:
        """Write until `is_over`."""

    def is_over(self) -> bool:
        """After a pause between two lots of events: they are spread over time, as the windows are."""
        return self._ended.wait(0.05)

    def stop(self) -> None:
        """Send no more, and wait until all that was sent is acknowledged."""
        self._ended.set()
        if self.ident:
            self.join(600)
        assert not self.is_alive()

    def end(self) -> dict[int, Ack]:
        """Stop; what was acknowledged."""
        self.stop()
        assert self.failure is None, self.failure
        assert sorted(self.acks) == list(range(len(self.acks)))
        return self.acks


class PulsarProducer(Producer):
    """Keyed messages, in batches and single ones by turns."""

    def __init__(self, server: Any, topic: str) -> None:
        super().__init__()
        self._server, self._topic = server, topic

    def work(self) -> None:
        import pulsar

        quiet = pulsar.ConsoleLogger(pulsar.LoggerLevel.Error)
        client = pulsar.Client(self._server.service_url, logger=quiet)
        options = {"send_timeout_millis": 0}  # a busy machine may let a message wait for more than the usual 30 s
        producers = [client.create_producer(self._topic, batching_enabled=one, **options) for one in (True, False)]
        number = 0
        while not self.is_over():
            for _ in range(EACH):
                producer = producers[number // EACH % 2]
                producer.send_async(b"%d" % number, self._noting(number), partition_key=f"k{number % 17}")
                number += 1
        for producer in producers:
            producer.flush()
        client.close()

    def _noting(self, number: int) -> Any:
        sent = datetime.now(UTC)

        def note(result: Any, at: Any) -> None:
            if str(result) != "Result.Ok":  # raised here, it would end the whole process
                self.failure = self.failure or RuntimeError(f"message {number}: {result}")
                return
            place = (at.partition(), at.ledger_id(), at.entry_id(), at.batch_index())
            self.acks[number] = Ack(sent, datetime.now(UTC), place)

        return note


class PravegaProducer(Producer):
    """Keyed events; the stream is split after some of them."""

    def __init__(self, server: Any, stream: str, split_after: int) -> None:
        super().__init__()
        self._hook = PravegaHook(options={"controller": server.controller_uri})
        self._stream, self._split_after = stream, split_after

    def work(self) -> None:
        with PravegaWriter(self._hook.client.endpoint, self._stream) as writer:
            while not self.is_over():
                numbers = range(len(self.acks), len(self.acks) + EACH)
                sent = datetime.now(UTC)
                writer.write([(f"k{number % 17}", b"%d" % number) for number in numbers])
                self.acks |= dict.fromkeys(numbers, Ack(sent, datetime.now(UTC)))
                if numbers.start <= self._split_after < numbers.stop:
                    self._hook.scale(self._stream, scaling.split(0))
        self._hook.close()
