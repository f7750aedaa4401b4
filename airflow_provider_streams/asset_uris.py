"""Asset URIs of streams: `pulsar://<connection>/<tenant>/<namespace>/<topic>`."""

from __future__ import annotations

from urllib.parse import SplitResult


def sanitize_stream_uri(uri: SplitResult) -> SplitResult:
    """The same stream has the same URI, and it holds no credentials. Airflow calls it for every such asset.

    Raises:
        ValueError: the connection (or host), or the stream's name is missing.
    """
    host = uri.netloc.rpartition("@")[2]
    if not host or not uri.path.strip("/"):
        raise ValueError(f"write a stream's asset as {uri.scheme}://<connection or host>/<name of the stream>")
    return uri._replace(netloc=host)
