"""How far back the streams of the page's tests reach, without a stream system: days back, by a part of the name."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from airflow.plugins_manager import AirflowPlugin

from airflow_provider_streams.errors import SystemUnavailable
from airflow_provider_streams.model.hold import Hold
from airflow_provider_streams.plugin import horizon
from airflow_provider_streams.plugin.horizon import Horizon

DAYS = {"web/clicks": 0.75, "shop/orders": 29.5, "shop/": 21.0, "factory/": 14.0}


def reach(key: str) -> Horizon:
    """Of a source; the fleet's system does not answer."""
    days = next((days for part, days in DAYS.items() if part in key), None)
    if days is None:
        raise SystemUnavailable(key, "nobody answers")
    moment = datetime.now(UTC).replace(minute=0, second=0, microsecond=0) - timedelta(days=days)
    held = Hold("orders-daily", "shop_orders.read", moment + timedelta(days=1), bytes=48_000_000)
    return Horizon(moment, holds=(held,) if "orders/events" in key else ())


class Reach(AirflowPlugin):
    """Installed before the page's routes are imported."""

    name = "reach"

    @classmethod
    def on_load(cls, *_args: object, **_kwargs: object) -> None:
        """Airflow calls it once."""
        horizon.ask_system = reach
