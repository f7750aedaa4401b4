"""What the words of a store or file system that fails mean: whether waiting helps, and if not, what does."""

from __future__ import annotations

import errno
import html
import re
import socket
import ssl
from collections.abc import Mapping
from time import time

from airflow_provider_streams.errors import CredentialsExpired, SinkError, StoreFull, TableUnavailable

_REFUSED = re.compile(
    r"\b(401|403|no_?such_?bucket|invalid_?access_?key_?id|signature_?does_?not_?match|access_?denied"
    r"|invalid_?client_?token_?id|container_?not_?found|permission_?denied|unauthenticated)\b",
    re.IGNORECASE,
)
"""What stores say, in words of their own or of Arrow's, where waiting helps nobody."""
_NO_BUCKET = re.compile(r"no_?such_?bucket|container_?not_?found", re.IGNORECASE)
_EXPIRED = re.compile(
    r"expired_?token|token_?refresh_?required|\btoken (is|has|was)? ?expired|signature (has )?expired", re.IGNORECASE
)
_UNKNOWN_KEY = re.compile(
    r"invalid_?access_?key_?id|invalid_?client_?token_?id|\binvalid_?token\b"
    r"|(access_denied|status 400)\b.*no response body",
    re.IGNORECASE,
)
"""What stores say of credentials that they lent and have forgotten; to a HEAD request they can say nothing."""
_UNTRUSTED = re.compile(
    r"curlcode: (60|77)\b|ssl peer certificate|invalid peer certificate|certificate_verify_failed|unknown ?issuer",
    re.IGNORECASE,
)
_DOCUMENT = re.compile(
    r"\s*(<\?xml\b|<!doctype html\b|<html\b|<error>).*?(</error>|</html>|\Z)", re.IGNORECASE | re.DOTALL
)
"""How stores answer, and proxies before them."""
_TOLD = re.compile(r"<(?:code|message|title)>\s*(.*?)\s*</", re.IGNORECASE | re.DOTALL)
"""What is for people in it."""
_UNTRUSTED_HELP = (
    "the server's certificate is not trusted here. Name its authority in the environment of driver and executors, by "
    "SSL_CERT_FILE for a store and REQUESTS_CA_BUNDLE for a catalog; or that of an Iceberg table's store by "
    "s3.tls-ca-file in the connection"
)
_ALWAYS = (
    (_EXPIRED, "the credentials have expired, put new ones where they come from"),
    (_UNTRUSTED, _UNTRUSTED_HELP),
)
_REFUSALS = (
    *_ALWAYS,
    (_NO_BUCKET, "make it at the store that the connection leads to, or name another one"),
    (_REFUSED, "see that the keys are right, and may list, read, write and delete there"),
)
"""What helps where waiting does not; the later ones are a store's own words, and nobody else's."""
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FULL_WORDS = re.compile(r"no space left on device|storage_?full|insufficient_?storage|quota_?exceeded", re.IGNORECASE)
_NUMBER = re.compile(r"\(os error (\d+)\)")
"""How Rust's errors tell it."""
_PASSING = {
    *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.EHOSTDOWN),
    *(errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.ENOTCONN, errno.ECONNREFUSED, errno.ECONNRESET),
    *(errno.ECONNABORTED, errno.EPIPE, errno.EADDRNOTAVAIL),
}
"""Of a file system that is mounted over a network."""


def failure_of(target: str, words: str, cause: BaseException, *, is_lent: bool = False) -> SinkError:
    """The error that says what happened.

    Args:
        target: the table, or its folder.
        words: what failed, with the cause's own words.
        cause: what was raised.
        is_lent: whether the credentials are those of a catalog, which lends new ones to the next attempt.
    """
    said, words = f"{words} {cause}", plain(words)
    number = _number_of(cause)
    if number in _FULL or _FULL_WORDS.search(said):
        return StoreFull(target, words)
    if is_lent and (_EXPIRED.search(said) or _UNKNOWN_KEY.search(said)):
        return CredentialsExpired(target, words)
    speaks = number is None and not target.startswith(("file:", "/"))
    if help_ := next((text for known, text in (_REFUSALS if speaks else _ALWAYS) if known.search(said)), None):
        return SinkError(target, f"{words}: {help_}")
    return (TableUnavailable if speaks or number in _PASSING else SinkError)(target, words)


def plain(words: str) -> str:
    """One line; of a document that a store answered, the code and the message."""
    return " ".join(_DOCUMENT.sub(_told, words).split())


def _told(document: re.Match[str]) -> str:
    told = [html.unescape(text) for text in _TOLD.findall(document[0])]
    return f" ({': '.join(told)})" if told else " (and no more that is for people)"


def have_expired(options: Mapping[str, str]) -> bool:
    """Whether credentials say of themselves that their time is over."""
    times = (value for name, value in options.items() if "expires-at" in name and value.isdigit())
    return any(int(milliseconds) / 1000 <= time() for milliseconds in times)


def _number_of(cause: BaseException) -> int | None:
    """Of the system's own kinds of errors; None: it is none of them."""
    if isinstance(cause, socket.gaierror | ssl.SSLError):
        return None  # they count their own
    if isinstance(cause, OSError) and cause.errno is not None:
        return cause.errno
    found = _NUMBER.search(str(cause))
    return int(found[1]) if found else None
