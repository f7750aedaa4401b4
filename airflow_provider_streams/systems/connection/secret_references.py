"""Secrets in a file or a variable. They are read at every use, so a renewed one counts at once.

`connections.allowed_secret_sources` decides before what a connection may name.
"""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.redaction import register_secret

_LONGEST = 64 * 1024
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
"""A name for sure, and not a token that a user wrote into the wrong field."""
_TOKEN = re.compile(r"[!-~]*")
_ENDS_LINE = {"Cc", "Zl", "Zp", "Cs"}


def token_of_file(option: str, path: str) -> str:
    """The token in a file that an option names, without the blanks around it; masked from here on.

    Raises:
        InvalidRequest: the file cannot be read, or holds no token.
    """
    value = register_secret(read_file(option, path).strip())
    if not value:
        raise InvalidRequest(f"{option} {shown_place('file', path)} holds no token")
    return as_token(option, value)


def token_of_variable(option: str, name: str) -> str:
    """As `token_of_file`, in an environment variable."""
    value = register_secret(os.environ.get(name, "").strip())
    if not value:
        raise InvalidRequest(f"{option}: the environment variable {shown_place('variable', name)} holds no token")
    return as_token(option, value)


def read_file(option: str, path: str) -> str:
    """The text of a file with credentials.

    Raises:
        InvalidRequest: it cannot be read, or is longer than such a file can be.
    """
    try:
        file = Path(path)
        if not file.is_file():  # a pipe would wait for its other end
            raise InvalidRequest(f"{option} {shown_place('file', path)} is no file")
        with file.open("rb") as opened:
            content = opened.read(_LONGEST + 1)
        if len(content) > _LONGEST:
            raise InvalidRequest(
                f"{option} {shown_place('file', path)} is longer than {_LONGEST} bytes: is it the right file?"
            )
        return content.decode()
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidRequest):
            raise
        raise InvalidRequest(f"{option} {shown_place('file', path)} cannot be read: {type(error).__name__}") from None


def as_token(option: str, value: str) -> str:
    """The value, if it can be sent as a token.

    Raises:
        InvalidRequest: it is a JSON object, or holds a character that no token has. It is not shown.
    """
    if value.lstrip().startswith("{"):
        raise InvalidRequest(f"{option} holds a JSON object and not a token: give the token alone")
    if not _TOKEN.fullmatch(value):
        raise InvalidRequest(
            f"{option} holds a line break, a blank or another character that no token has: give the token alone, on "
            "one line"
        )
    return value


def check_credentials(username: str, password: str) -> None:
    """Check that both can be sent as `user:password`; the password is masked from here on.

    Raises:
        InvalidRequest: one holds a line break or a control character, or the user's name a colon. Neither is shown.
    """
    register_secret(password)
    for option, value in (("username", username), ("password", password)):
        if any(unicodedata.category(one) in _ENDS_LINE for one in value):
            raise InvalidRequest(f"{option} holds a line break or a control character")
    if ":" in username:
        raise InvalidRequest("username must hold no colon: the server would take the rest for the password")


def shown_place(kind: str, name: str) -> str:
    """The name of a file or a variable as a message may show it: anything else may be a token in the wrong field."""
    if kind == "variable":
        return name if not name or _VARIABLE.fullmatch(name) else "(not the name of a variable)"
    return name if not name or (name.startswith("/") and name.isprintable()) else "(not an absolute path)"
