"""A catalog that lends keys with its tables, as many REST catalogs do: a real one, with a proxy that adds them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from stream_servers import SeaweedServer
from tests.integration.lake.fault_proxy import FaultProxy, Request

USELESS = {"s3.access-key-id": "of-the-connection", "s3.secret-access-key": "-", "s3.session-token": "its session"}
"""The connection's own."""


@dataclass
class LendingCatalog:
    """Adds `lends` to the properties of each table; for each request, the first of `once`, while there are any."""

    properties: dict[str, str]
    keys: dict[str, str]
    """Those that open the store."""
    lends: dict[str, Any]
    once: list[dict[str, Any]] = field(default_factory=list)

    def lend(self, request: Request, body: bytes) -> bytes:
        if "/tables" not in request.target or b'"metadata-location"' not in body:
            return body
        return json.dumps({**json.loads(body), **(self.once.pop(0) if self.once else self.lends)}).encode()


@contextmanager
def lending(server: SeaweedServer) -> Iterator[LendingCatalog]:
    keys = {name: server.storage_options[name] for name in ("s3.access-key-id", "s3.secret-access-key")}
    with FaultProxy(server.catalog_url) as proxy:
        at = {"uri": proxy.url, "oauth2-server-uri": f"{proxy.url}/v1/oauth/tokens"}
        catalog = LendingCatalog(
            {**server.catalog_properties, **USELESS, **at},
            keys,
            {"storage-credentials": [{"prefix": "s3://", "config": keys}]},
        )
        proxy.rewrite = catalog.lend
        yield catalog
