"""Files and variables with credentials that a connection may name on the machine that uses it.

A user who edits a connection also chooses its server. Without a limit, that server could get any file and variable that
Airflow can read. So the deployment lists the allowed ones in `airflow.cfg`; by default, there are none. Arguments in a
DAG's code and variables of the environment are not limited: their authors can read such files anyway.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from airflow.providers.common.compat.sdk import conf

from airflow_provider_streams.airflow_features import amask_secret, supervisor_turn
from airflow_provider_streams.connections.settings import Setting
from airflow_provider_streams.errors import InvalidRequest

SECTION = "streams"
FOLDERS, VARIABLES = "credential_folders", "credential_variables"


def admit(settings: Mapping[str, Setting]) -> None:
    """Refuse settings of a connection that name a file or a variable that is not allowed.

    Raises:
        InvalidRequest: naming the setting of `airflow.cfg`, and never the value.
    """
    for setting in settings.values():
        if setting.option.reads and setting.is_of_connection and setting.value:
            if setting.option.reads != "variable":
                admit_file(setting.origin, setting.value)
            elif setting.value not in _listed(VARIABLES):
                raise _not_listed(setting.origin, "a variable", VARIABLES)


def admit_file(origin: str, path: str) -> None:
    """Refuse a file that a connection names and that is not allowed.

    Args:
        origin: where it is named, for errors.
        path: of the file.

    Raises:
        InvalidRequest: as `admit`.
    """
    if not _is_allowed_file(path):
        raise _not_listed(origin, "a file", FOLDERS)


def _not_listed(origin: str, kind: str, name: str) -> InvalidRequest:
    return InvalidRequest(
        f"{origin} names {kind} that connections may not read: it is not listed in [{SECTION}] "
        f"{name} of airflow.cfg (AIRFLOW__{SECTION.upper()}__{name.upper()}; by default empty). List it "
        "there, or put the secret itself in the connection."
    )


def _is_allowed_file(path: str) -> bool:
    try:
        # links are followed; it does not fail if they go in a circle
        real = Path(os.path.realpath(path))
    except ValueError:  # a name that no file can have
        return False
    return Path(path).is_absolute() and any(real.is_relative_to(folder) for folder in _folders())


def _folders() -> list[Path]:
    found = [Path(text) for text in _listed(FOLDERS)]
    for folder in found:
        if not folder.is_absolute() or folder == Path(folder.anchor):
            raise InvalidRequest(f"[{SECTION}] {FOLDERS}: {str(folder)!r} is not the absolute path of a folder below /")
    return [Path(os.path.realpath(folder)) for folder in found]


def _listed(name: str) -> list[str]:
    return [part.strip() for part in (conf.get(SECTION, name, fallback="") or "").split(",") if part.strip()]


_sending: set[asyncio.Task[None]] = set()


def mask(secret: str) -> None:
    """Hide a secret in Airflow's logs: of this process, of the one that writes its log, and of the API server."""
    from airflow.providers.common.compat.sdk import mask_secret  # noqa: PLC0415 - before a task needs it

    # the API server and the commands log through Airflow's core, which has a masker of its own
    if core := sys.modules.get("airflow._shared.secrets_masker"):
        core.mask_secret(secret)
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        with supervisor_turn():
            mask_secret(secret)
        return
    sending = loop.create_task(amask_secret(secret))  # `mask_secret` would wait for an answer that this loop reads
    _sending.add(sending)
    sending.add_done_callback(_sending.discard)
