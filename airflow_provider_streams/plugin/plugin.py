"""What Airflow loads: the page in its navigation, and the routes below `/streams`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import urlsplit

from airflow.plugins_manager import AirflowPlugin
from airflow.providers.common.compat.sdk import conf

from airflow_provider_streams.timetables.window_schedule_timetable import WindowScheduleTimetable
from airflow_provider_streams.version import __version__

URL_PREFIX = "/streams"

_Message = MutableMapping[str, Any]


class StreamsApp:
    """The routes, imported when the first request comes.

    Every Airflow process loads every plugin, but only the api-server serves requests: the others never import FastAPI.
    """

    async def __call__(
        self,
        scope: _Message,
        receive: Callable[[], Awaitable[_Message]],
        send: Callable[[_Message], Awaitable[None]],
    ) -> None:
        """Serve one request (ASGI)."""
        # a first import takes a while, which the server's loop should not wait for
        app = await asyncio.to_thread(_load)
        await app(scope, receive, send)


def _load() -> Any:
    from airflow_provider_streams.plugin.api import app  # noqa: PLC0415 - see StreamsApp

    return app


def script_url() -> str:
    """Where a browser finds the page's script: below the path of `[api] base_url`, as all of Airflow.

    Airflow 3.1 and 3.2 import it from a script of their own, so a path that does not begin with `/` leads nowhere.
    """
    root = urlsplit(conf.get("api", "base_url", fallback="")).path.rstrip("/")
    return f"{root}{URL_PREFIX}/static/main.js?v={__version__}"


class StreamsPlugin(AirflowPlugin):
    """The page `Streams` under Browse, and the timetable of window schedules."""

    name = "streams"
    timetables: list[Any] = [WindowScheduleTimetable]  # noqa: RUF012
    # AirflowPlugin declares both as lists
    fastapi_apps: list[Any] = [{"app": StreamsApp(), "url_prefix": URL_PREFIX, "name": "Streams"}]  # noqa: RUF012
    react_apps: list[Any] = [  # noqa: RUF012
        {
            "name": "Streams",
            "bundle_url": script_url(),
            "destination": "nav",
            "url_route": "streams",
            "category": "browse",
        }
    ]
