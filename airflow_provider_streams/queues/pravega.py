"""Pravega behind `MessageQueueTrigger(scheme="pravega", ..)`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from airflow.providers.common.messaging.providers.base_provider import BaseMessageQueueProvider

if TYPE_CHECKING:
    from airflow.triggers.base import BaseEventTrigger


class PravegaMessageQueueProvider(BaseMessageQueueProvider):
    """The scheme `pravega`: an event while a stream holds more than its reader has covered. Nothing is consumed."""

    scheme = "pravega"

    def trigger_class(self) -> type[BaseEventTrigger]:
        """What looks."""
        from airflow_provider_streams.triggers.pravega_unread import PravegaUnreadTrigger  # noqa: PLC0415

        return PravegaUnreadTrigger
