"""Pulsar behind `MessageQueueTrigger(scheme="pulsar", ..)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.common.messaging.providers.base_provider import BaseMessageQueueProvider

if TYPE_CHECKING:
    from airflow.triggers.base import BaseEventTrigger


class PulsarMessageQueueProvider(BaseMessageQueueProvider):
    """The scheme `pulsar`: messages of a subscription, acknowledged once Airflow has stored them as an event."""

    scheme = "pulsar"

    def trigger_class(self) -> type[BaseEventTrigger]:
        """What reads them."""
        from airflow_provider_streams.triggers.pulsar_messages import PulsarMessagesTrigger  # noqa: PLC0415

        return PulsarMessagesTrigger
