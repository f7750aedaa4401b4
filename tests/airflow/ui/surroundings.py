"""What surrounds the page in its tests: how far back streams reach, without a stream, and a time that stands still."""

from __future__ import annotations

import os
from datetime import datetime, timedelta

from airflow.plugins_manager import AirflowPlugin

from airflow_provider_streams.errors import SystemUnavailable
from airflow_provider_streams.model.stream.hold import Hold
from airflow_provider_streams.plugin import retention_horizon
from airflow_provider_streams.plugin.retention_horizon import Horizon

DAYS = {"web/clicks": 0.75, "shop/orders": 29.5, "shop/": 21.0, "factory/": 14.0}
"""By a part of a source's name."""


def now() -> datetime:
    """As the test says that started the server."""
    return datetime.fromisoformat(os.environ["STREAMS_PAGE_TIME"])


def reach(key: str) -> Horizon:
    """Of a source; the fleet's system does not answer."""
    days = next((days for part, days in DAYS.items() if part in key), None)
    if days is None:
        raise SystemUnavailable(key, "no server answers")
    moment = now().replace(minute=0, second=0, microsecond=0) - timedelta(days=days)
    held = Hold("orders-daily", "shop_orders.read", moment + timedelta(days=1), bytes=48_000_000)
    return Horizon(moment, holds=(held,) if "orders/events" in key else ())


class Surroundings(AirflowPlugin):
    """Installed before the page's routes are imported, and by their import."""

    name = "surroundings"

    @classmethod
    def on_load(cls, *_args: object, **_kwargs: object) -> None:
        """Airflow calls it once."""
        retention_horizon.ask_system = reach
        from airflow_provider_streams.plugin import api

        api.app.dependency_overrides[api.current_time] = now
