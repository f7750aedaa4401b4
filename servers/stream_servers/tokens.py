"""JSON web tokens signed with a shared key (HS256, HS512): what both systems' test servers accept."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import time
from collections.abc import Mapping
from typing import Literal

_DIGESTS = {"HS256": hashlib.sha256, "HS512": hashlib.sha512}


def sign(
    claims: Mapping[str, object],
    key: bytes,
    *,
    algorithm: Literal["HS256", "HS512"] = "HS256",
    valid_seconds: float | None = None,
) -> str:
    """The claims as a token; `valid_seconds` (negative: already expired) sets when it ends."""
    expiry = {} if valid_seconds is None else {"exp": int(time.time() + valid_seconds)}
    parts = [_encode({"alg": algorithm}), _encode({**claims, **expiry})]
    signature = hmac.new(key, ".".join(parts).encode(), _DIGESTS[algorithm]).digest()
    return ".".join([*parts, _base64(signature)])


def _encode(value: Mapping[str, object]) -> str:
    return _base64(json.dumps(value, separators=(",", ":")).encode())


def _base64(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()
