"""Requests to servers without TLS."""

from __future__ import annotations

import ssl

NO_AUTHORITIES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
"""For httpx's `verify`: trusts no server. By default, each call loads all certificates, for longer than it takes."""
