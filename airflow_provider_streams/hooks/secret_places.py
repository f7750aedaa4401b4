"""What a connection may name of the machine that uses it: files and variables with credentials.

Whoever edits a connection chooses the server as well: without a limit, that server could be shown any file and
variable that Airflow can read. So a deployment says in `airflow.cfg` which ones there are for this; by default, none.
Arguments in a DAG's code and variables of the environment need no leave: who writes those can read them anyway.
"""

from __future__ import annotations

import asyncio
import os
import sys
from collections.abc import Mapping
from pathlib import Path

from airflow.sdk.configuration import conf

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.settings import Setting

SECTION = "streams"
FOLDERS, VARIABLES = "credential_folders", "credential_variables"


def admit(settings: Mapping[str, Setting]) -> None:
    """Refuse settings of a connection that name a file or a variable which is not there for it.

    Raises:
        InvalidRequest: naming the setting of `airflow.cfg`, and never the value.
    """
    for setting in settings.values():
        if setting.option.reads and setting.is_of_connection and setting.value:
            _admit_variable(setting) if setting.option.reads == "variable" else _admit_file(setting)


def _admit_variable(setting: Setting) -> None:
    if setting.value not in _listed(VARIABLES):
        raise _refused(setting, "a variable", VARIABLES)


def _admit_file(setting: Setting) -> None:
    try:
        # where links lead, not what they are called; it does not fail where they go in a circle
        real = Path(os.path.realpath(setting.value))
    except ValueError:  # a name that no file can have
        raise _refused(setting, "a file", FOLDERS) from None
    if not Path(setting.value).is_absolute() or not any(real.is_relative_to(folder) for folder in _folders()):
        raise _refused(setting, "a file", FOLDERS)


def _refused(setting: Setting, kind: str, name: str) -> InvalidRequest:
    return InvalidRequest(
        f"{setting.origin} names {kind} that connections may not read: it is none of [{SECTION}] {name} in "
        f"airflow.cfg (AIRFLOW__{SECTION.upper()}__{name.upper()}; by default there are none). Let the deployment "
        "allow it there, or put the secret itself into the connection."
    )


def _folders() -> list[Path]:
    found = [Path(text) for text in _listed(FOLDERS)]
    for folder in found:
        if not folder.is_absolute() or folder == Path(folder.anchor):
            raise InvalidRequest(f"[{SECTION}] {FOLDERS}: {str(folder)!r} is no whole path of a folder below /")
    return [Path(os.path.realpath(folder)) for folder in found]


def _listed(name: str) -> list[str]:
    return [part.strip() for part in (conf.get(SECTION, name, fallback="") or "").split(",") if part.strip()]


_telling: set[asyncio.Task[None]] = set()


def mask(secret: str) -> None:
    """Hide a secret in Airflow's logs: in this process, in the one that writes its log, and in the API server's own."""
    from airflow.sdk.log import amask_secret, mask_secret  # noqa: PLC0415 - before a task needs it

    # the API server and the commands log through Airflow's core, which has a masker of its own
    if core := sys.modules.get("airflow._shared.secrets_masker"):
        core.mask_secret(secret)
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        mask_secret(secret)
        return
    telling = loop.create_task(amask_secret(secret))  # the other call would wait for an answer that this loop reads
    _telling.add(telling)
    telling.add_done_callback(_telling.discard)
