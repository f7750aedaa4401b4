"""Secrets that stand elsewhere, in a file or a variable: from where they may be read, and what they may hold.

Every use reads anew, so that a renewed token counts at once; and every read asks anew where a path leads, on whichever
machine it is: a link may be another one than when somebody looked at it.
"""

from __future__ import annotations

import os
import re
import stat
import unicodedata
from collections.abc import Sequence
from pathlib import Path

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.redaction import conceal

_LONGEST = 64 * 1024
_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")
"""What surely is a name and no token that somebody wrote into the wrong field."""
_MACHINE = (Path("/proc"), Path("/sys"))
"""What lies there tells of the machine and its processes, and is no file that somebody stored."""
_ENDS_LINE = {"Cc", "Zl", "Zp", "Cs"}
_TOKEN = re.compile(r"[!-~]*")


def token_of_file(option: str, path: str, folders: Sequence[str] = ()) -> str:
    """The token in a file, without the blanks around it; concealed.

    Args:
        option: which setting names it.
        path: the file.
        folders: it must lie in one of these; none: anywhere.

    Raises:
        InvalidRequest: it cannot be read, may not be, or holds no token.
    """
    value = read_file(option, path, folders).strip()
    if not value:
        raise InvalidRequest(f"no token in {option} {_shown(path)}")
    return conceal(as_token(option, value))


def token_of_variable(option: str, name: str) -> str:
    """The token in an environment variable, as `token_of_file`.

    Raises:
        InvalidRequest: there is none in it.
    """
    value = os.environ.get(name, "").strip()
    if not value:
        shown = name if _VARIABLE.fullmatch(name) else "that it names"
        raise InvalidRequest(f"{option}: no token in the environment variable {shown}")
    return conceal(as_token(option, value))


def read_file(option: str, path: str, folders: Sequence[str] = ()) -> str:
    """The text of a file with credentials; as `token_of_file`.

    Raises:
        InvalidRequest: it cannot be read, or may not be.
    """
    real = admitted(option, path, folders)
    try:
        # a pipe would wait for its other end
        descriptor = os.open(real, os.O_RDONLY | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise InvalidRequest(f"{option} {_shown(path)} is no file")
            content = file.read(_LONGEST + 1)
        if len(content) > _LONGEST:
            raise InvalidRequest(f"{option} {_shown(path)} is longer than {_LONGEST} bytes: is it the right file?")
        return content.decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"{option} {_shown(path)} cannot be read: {type(error).__name__}") from None


def admitted(option: str, path: str, folders: Sequence[str] = ()) -> Path:
    """Where a file with credentials really lies, if it may be read.

    Raises:
        InvalidRequest: it lies in none of the folders, or where no files are stored.
    """
    try:
        real = Path(os.path.realpath(path))  # which does not fail where links go in a circle
    except ValueError:  # a name that no file can have
        raise InvalidRequest(f"{option} names no stored file") from None
    if any(real.is_relative_to(folder) for folder in _MACHINE):
        raise InvalidRequest(f"{option} names no stored file")
    if folders and not any(_lies_in(real, folder) for folder in folders):
        raise InvalidRequest(f"{option} leads to a file outside of credential_folders ({', '.join(folders)})")
    return real


def _lies_in(real: Path, folder: str) -> bool:
    there = Path(os.path.realpath(folder))
    return there != Path(there.anchor) and real.is_relative_to(there)


def _shown(path: str) -> str:
    """A path for a message; what is no whole path may be a token in the wrong field."""
    return path if path.startswith("/") and path.isprintable() else "(which is no absolute path)"


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


def as_password(option: str, value: str) -> str:
    """The value, if it can be sent as a password or a user's name.

    Raises:
        InvalidRequest: it holds a line break or a control character. It is not shown.
    """
    if any(unicodedata.category(one) in _ENDS_LINE for one in value):
        raise InvalidRequest(f"{option} holds a line break or a control character")
    return value
