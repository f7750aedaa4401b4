"""Secrets that stand elsewhere, in a file or a variable: read anew at every use, so that a renewed one counts at once.

What a connection may name, `hooks.secret_places` decides before.
"""

from __future__ import annotations

import os
import re
import unicodedata
from pathlib import Path

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.redaction import conceal

_LONGEST = 64 * 1024
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
"""What surely is a name and no token that somebody wrote into the wrong field."""
_TOKEN = re.compile(r"[!-~]*")
_ENDS_LINE = {"Cc", "Zl", "Zp", "Cs"}


def token_of_file(option: str, path: str) -> str:
    """The token in a file, without the blanks around it; concealed.

    Args:
        option: which setting names it.
        path: the file.

    Raises:
        InvalidRequest: it cannot be read, or holds no token.
    """
    value = conceal(read_file(option, path).strip())
    if not value:
        raise InvalidRequest(f"no token in {option} {shown_place('file', path)}")
    return as_token(option, value)


def token_of_variable(option: str, name: str) -> str:
    """The token in an environment variable, as `token_of_file`.

    Raises:
        InvalidRequest: there is none in it.
    """
    value = conceal(os.environ.get(name, "").strip())
    if not value:
        raise InvalidRequest(f"{option}: no token in the environment variable {shown_place('variable', name)}")
    return as_token(option, value)


def read_file(option: str, path: str) -> str:
    """The text of a file with credentials.

    Raises:
        InvalidRequest: it cannot be read, or is longer than any.
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
        InvalidRequest: it holds a line break, a blank, or another character that no token has. It is not shown.
    """
    if not _TOKEN.fullmatch(value):
        raise InvalidRequest(
            f"{option} holds a line break, a blank or another character that no token has: give the token alone, on "
            "one line"
        )
    return value


def check_credentials(username: str, password: str) -> None:
    """See that both can be sent as a user and a password, with a colon between them; the password is concealed.

    Raises:
        InvalidRequest: one holds a line break or a control character, or the user's name a colon. None is shown.
    """
    conceal(password)
    for option, value in (("username", username), ("password", password)):
        if any(unicodedata.category(one) in _ENDS_LINE for one in value):
            raise InvalidRequest(f"{option} holds a line break or a control character")
    if ":" in username:
        raise InvalidRequest("username must hold no colon: what follows it would be taken for the password")


def shown_place(kind: str, name: str) -> str:
    """The name of a file or a variable for a person; what surely is no such name may be a token in the wrong field."""
    if kind == "variable":
        return name if not name or _VARIABLE.fullmatch(name) else "(which is no name of a variable)"
    return name if not name or (name.startswith("/") and name.isprintable()) else "(which is no absolute path)"
