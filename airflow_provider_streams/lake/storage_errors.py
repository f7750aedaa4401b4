"""What errors of stores and file systems mean: whether waiting helps, and if not, what does."""

from __future__ import annotations

import errno
import html
import re
import socket
import ssl
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from time import time

from airflow_provider_streams.errors import CredentialsExpired, SinkError, StorageFull, TableUnavailable

_REFUSED = re.compile(
    r"\b(401|403|no_?such_?bucket|invalid_?access_?key_?id|signature_?does_?not_?match|access_?denied"
    r"|invalid_?client_?token_?id|container_?not_?found|permission_?denied|unauthenticated)\b",
    re.IGNORECASE,
)
"""What stores say, in their own words or Arrow's, where waiting does not help."""
_NO_BUCKET = re.compile(r"no_?such_?bucket|container_?not_?found", re.IGNORECASE)
_EXPIRED = re.compile(
    r"expired_?token|token_?refresh_?required|\btoken (is|has|was)? ?expired|signature (has )?expired", re.IGNORECASE
)
_UNKNOWN_KEY = re.compile(
    r"invalid_?access_?key_?id|invalid_?client_?token_?id|\binvalid_?token\b"
    r"|(access_denied|status 400)\b.*no response body",
    re.IGNORECASE,
)
"""What stores say of vended credentials that they have forgotten; the answer to a HEAD request has no words."""
_UNTRUSTED = re.compile(
    r"curlcode: (60|77)\b|ssl peer certificate|invalid peer certificate|certificate_verify_failed|unknown ?issuer",
    re.IGNORECASE,
)
_DOCUMENT = re.compile(
    r"\s*(<\?xml\b|<!doctype html\b|<html\b|<error>).*?(</error>|</html>|\Z)", re.IGNORECASE | re.DOTALL
)
"""How stores and proxies answer."""
_TOLD = re.compile(r"<(?:code|message|title)>\s*(.*?)\s*</", re.IGNORECASE | re.DOTALL)
"""The parts of it that people can read."""
_UNTRUSTED_HELP = (
    "the server's certificate is not trusted here. Name its authority in the environment of driver and executors, by "
    "SSL_CERT_FILE for a store and REQUESTS_CA_BUNDLE for a catalog; or name the authority of an Iceberg table's store "
    "by s3.tls-ca-file in the connection"
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
"""What helps where waiting does not. Only stores say the words of the later ones."""
_UNREADABLE = re.compile(
    r"unexpected format in http response|weird server reply|jsondecodeerror|error decoding response body"
    r"|failed to parse (xml|.{0,40}response)|invalid (xml|json in) response",
    re.IGNORECASE,
)
"""What clients say of bytes that are no answer to what they asked."""
_UNREADABLE_HELP = (
    "the answer could not be read, as of a server that stops or of a proxy before it. The next attempt asks again; if "
    "the answer is the same, see that the connection leads to the store or catalog itself"
)
_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
_FULL_WORDS = re.compile(r"no space left on device|storage_?full|insufficient_?storage|quota_?exceeded", re.IGNORECASE)
_MAY_NOT = {errno.EROFS, errno.EACCES, errno.EPERM}
_MAY_NOT_HELP = "let this user write there, or name another folder"
_NUMBER = re.compile(r"\(os error (\d+)\)")
"""How Rust's errors give the number."""
_PASSING = {
    *(errno.EIO, errno.ESTALE, errno.ETIMEDOUT, errno.EAGAIN, errno.EBUSY, errno.EINTR, errno.EHOSTDOWN),
    *(errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENETUNREACH, errno.ENOTCONN, errno.ECONNREFUSED, errno.ECONNRESET),
    *(errno.ECONNABORTED, errno.EPIPE, errno.EADDRNOTAVAIL),
}
"""Errors of network mounts that may pass."""


def failure_of(target: str, words: str, cause: BaseException, *, uses_vended_credentials: bool = False) -> SinkError:
    """The error to raise.

    Args:
        target: the table, or its folder.
        words: what failed, with the cause's own words.
        cause: what was raised.
        uses_vended_credentials: whether a catalog vended the credentials; the next attempt gets new ones.
    """
    said, words = f"{words} {cause}", plain(words)
    number = _number_of(cause)
    if number in _FULL or _FULL_WORDS.search(said):
        return StorageFull(target, words)
    if uses_vended_credentials and (_EXPIRED.search(said) or _UNKNOWN_KEY.search(said)):
        return CredentialsExpired(target, words)
    if number in _MAY_NOT:
        return SinkError(target, f"{words}: {_MAY_NOT_HELP}").mark_foreseeable()
    speaks = number is None and not target.startswith(("file:", "/"))
    if help_ := next((text for known, text in (_REFUSALS if speaks else _ALWAYS) if known.search(said)), None):
        return SinkError(target, f"{words}: {help_}").mark_foreseeable()
    if speaks and _UNREADABLE.search(said):
        return TableUnavailable(target, f"{words}: {_UNREADABLE_HELP}")
    return (TableUnavailable if speaks or number in _PASSING else SinkError)(target, words)


@contextmanager
def errors_at(target: str, what: str) -> Iterator[None]:
    """Raise an `OSError` as the error that `failure_of` gives; `what` says what failed."""
    try:
        yield
    except OSError as error:
        raise failure_of(target, f"{what}: {error}", error) from error


def plain(words: str) -> str:
    """One line; a store's XML or HTML is reduced to its code and message."""
    return " ".join(_DOCUMENT.sub(_readable, words).split())


def _readable(document: re.Match[str]) -> str:
    told = [html.unescape(text) for text in _TOLD.findall(document[0])]
    return f" ({': '.join(told)})" if told else " (and nothing that people can read)"


def have_expired(options: Mapping[str, str]) -> bool:
    """Whether the credentials' own end has passed."""
    times = (value for name, value in options.items() if "expires-at" in name and value.isdigit())
    return any(int(milliseconds) / 1000 <= time() for milliseconds in times)


def _number_of(cause: BaseException) -> int | None:
    """The operating system's error number; None: the error has none."""
    if isinstance(cause, socket.gaierror | ssl.SSLError):
        return None  # they have numbers of their own
    if isinstance(cause, OSError) and cause.errno is not None:
        return cause.errno
    found = _NUMBER.search(str(cause))
    return int(found[1]) if found else None
