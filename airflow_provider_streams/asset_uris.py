"""Asset URIs of streams and of tables in catalogs: `pulsar://<connection>/<tenant>/<namespace>/<topic>`."""

from __future__ import annotations

from urllib.parse import SplitResult


def sanitize_stream_uri(uri: SplitResult) -> SplitResult:
    """The same stream or table has the same URI, and it holds no credentials. Airflow calls it for every such asset.

    Raises:
        ValueError: the connection (or host), or the name is missing.
    """
    host = uri.netloc.rpartition("@")[2]
    if not host or not uri.path.strip("/"):
        raise ValueError(f"write this asset as {uri.scheme}://<connection or host>/<name of the stream or table>")
    return uri._replace(netloc=host)
