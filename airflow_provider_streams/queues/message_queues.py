"""The schemes of `MessageQueueTrigger(scheme=.., ..)`, each with the trigger that serves it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.common.messaging.providers.base_provider import BaseMessageQueueProvider

if TYPE_CHECKING:
    from airflow.triggers.base import BaseEventTrigger


class PulsarMessageQueueProvider(BaseMessageQueueProvider):
    """The scheme `pulsar`: messages of a subscription, acknowledged once Airflow has stored them as an event."""

    scheme = "pulsar"

    def trigger_class(self) -> type[BaseEventTrigger]:
        """Reads and acknowledges."""
        from airflow_provider_streams.triggers.pulsar_messages import PulsarMessagesTrigger  # noqa: PLC0415

        return PulsarMessagesTrigger


class PravegaMessageQueueProvider(BaseMessageQueueProvider):
    """The scheme `pravega`: an event while a stream holds more than its reader has covered. Nothing is consumed."""

    scheme = "pravega"

    def trigger_class(self) -> type[BaseEventTrigger]:
        """Counts unread bytes."""
        from airflow_provider_streams.triggers.pravega_unread import PravegaUnreadTrigger  # noqa: PLC0415

        return PravegaUnreadTrigger
