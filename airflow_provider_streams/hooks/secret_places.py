"""What a connection may name of the machine that uses it: files and variables with credentials.

Whoever edits a connection chooses the server as well: without a limit, that server could be shown any file and
variable that Airflow can read. So a deployment says in `airflow.cfg` which ones there are for this; by default, none.
Arguments in a DAG's code and variables of the environment need no leave: who writes those can read them anyway.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import PurePath

from airflow.sdk.configuration import conf

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.settings import Layer, Setting, layer
from airflow_provider_streams.systems.base import CREDENTIAL_FOLDERS, Option
from airflow_provider_streams.systems.secret_places import admitted

SECTION = "streams"
FOLDERS, VARIABLES = CREDENTIAL_FOLDERS.name, "credential_variables"


def configured(known: Iterable[Option]) -> Layer:
    """What `airflow.cfg` says about the options of a system; it wins over everything else.

    Raises:
        InvalidRequest: a folder that is none, or is every folder.
    """
    folders = ",".join(_folders())
    return layer({FOLDERS: folders} if CREDENTIAL_FOLDERS in known and folders else {}, f"airflow.cfg [{SECTION}]")


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
    folders = _folders()
    path = PurePath(setting.value)
    if not folders or not path.is_absolute() or ".." in path.parts:
        raise _refused(setting, "a file", FOLDERS)
    try:
        admitted(setting.option.name, setting.value, folders)
    except InvalidRequest:
        raise _refused(setting, "a file", FOLDERS) from None


def _refused(setting: Setting, kind: str, name: str) -> InvalidRequest:
    return InvalidRequest(
        f"{setting.origin} names {kind} that connections may not read: it is none of [{SECTION}] {name} in "
        f"airflow.cfg (AIRFLOW__{SECTION.upper()}__{name.upper()}; by default there are none). Let the deployment "
        "allow it there, or put the secret itself into the connection."
    )


def _folders() -> list[str]:
    found = _listed(FOLDERS)
    for folder in found:
        path = PurePath(folder)
        if not path.is_absolute() or ".." in path.parts or len(path.parts) == 1:
            raise InvalidRequest(f"[{SECTION}] {FOLDERS}: {folder!r} is no whole path of a folder below /")
    return found


def _listed(name: str) -> list[str]:
    return [part.strip() for part in (conf.get(SECTION, name, fallback="") or "").split(",") if part.strip()]


def mask(secret: str) -> None:
    """Hide a secret in Airflow's logs: in this process, in the one that writes its log, and in the API server's own."""
    from airflow.sdk.log import mask_secret  # noqa: PLC0415 - before a task needs it

    mask_secret(secret)
    # the API server and the commands log through Airflow's core, which has a masker of its own
    if core := sys.modules.get("airflow._shared.secrets_masker"):
        core.mask_secret(secret)
