"""Airflow itself: versions, the plugin, and a triggerer that is alive."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib import metadata
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import urlopen

from airflow.providers.common.compat.sdk import conf

from airflow_provider_streams.doctor.finding import Finding, Notes

_PLUGIN: Final = "airflow.plugins"
_OURS: Final = "airflow_provider_streams"
_HEALTH: Final = "/api/v2/monitor/health"
_SECONDS: Final = 5.0
_VERSIONS: Final = (
    "apache-airflow-core",
    "airflow-provider-streams",
    "apache-airflow-providers-common-compat",
    "apache-airflow-providers-apache-spark",
)


@dataclass(frozen=True, slots=True)
class Health:
    """What Airflow says of its processes."""

    where: str
    """Who was asked."""
    components: Mapping[str, Mapping[str, Any]]
    """By name: `status`, and the time of the latest heartbeat."""


def check_airflow() -> list[Finding]:
    """Versions, plugin, triggerer."""
    notes = Notes("airflow")
    _versions(notes)
    _plugin(notes)
    _triggerer(notes)
    return notes.findings


def _versions(notes: Notes) -> None:
    found = {name: version for name in _VERSIONS if (version := _version(name))}
    notes.ok("versions", ", ".join(f"{name} {version}" for name, version in found.items()))


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ""


def _plugin(notes: Notes) -> None:
    entries = [one for one in metadata.entry_points(group=_PLUGIN) if one.value.startswith(_OURS)]
    if not entries:
        notes.error(
            "plugin",
            "this Python does not declare the plugin of the coverage page to Airflow",
            "Install the package as a wheel, so that Airflow finds its entry points",
        )
        return
    try:
        for entry in entries:
            entry.load()
    except Exception as error:  # noqa: BLE001 - Airflow would log it and go on without the page
        notes.error("plugin", f"the plugin cannot be loaded: {type(error).__name__}: {error}", "Correct its imports")
        return
    notes.ok("plugin", f"the plugin {entries[0].name} loads in this process")


def _triggerer(notes: Notes) -> None:
    try:
        health = _ask()
    except (OSError, ValueError, RuntimeError) as error:
        notes.warning(
            "triggerer",
            f"Airflow could not be asked for the health of its processes: {error}",
            f"Set [api] base_url, or look at {_HEALTH} yourself: deferred sensors wait for a triggerer",
        )
    else:
        judge_triggerer(notes, health, datetime.now(UTC))


def judge_triggerer(notes: Notes, health: Health, now: datetime) -> None:
    """Whether a triggerer is alive. Pure."""
    told = health.components.get("triggerer") or {}
    status, beat = told.get("status"), str(told.get("latest_triggerer_heartbeat") or "")
    if status == "healthy":
        notes.ok("triggerer", f"it is alive{_age(beat, now)}, says {health.where}")
        return
    if status is None:
        says, advice = f"{health.where} knows of no triggerer", "Start one: `airflow triggerer`"
    else:
        says, advice = f"{health.where} says it is {status}{_age(beat, now)}", "Restart it: `airflow triggerer`"
    notes.warning("triggerer", f"{says}: deferred sensors and watchers stay where they are", advice)


def _age(beat: str, now: datetime) -> str:
    try:
        moment = datetime.fromisoformat(beat)
    except ValueError:
        return ""
    return f", last heartbeat {max(0, (now - moment).total_seconds()):.0f} s ago"


def _ask() -> Health:
    """Ask Airflow's database on a server or the command line, and its public health page in a task."""
    if os.environ.get("_AIRFLOW_PROCESS_CONTEXT") == "server":
        from airflow.api.common.airflow_health import get_airflow_health  # noqa: PLC0415 - where there is a database

        try:
            return Health("Airflow's database", get_airflow_health())
        except Exception as error:
            raise RuntimeError(f"{type(error).__name__} of Airflow's database") from error
    url = conf.get("api", "base_url", fallback="").rstrip("/")
    if urlsplit(url).scheme not in ("http", "https"):
        raise ValueError("[api] base_url does not say where the API server is")
    try:
        with urlopen(f"{url}{_HEALTH}", timeout=_SECONDS) as answer:  # noqa: S310 - the scheme was checked
            return Health(url, json.load(answer))
    except URLError as error:
        raise OSError(f"{url} does not answer ({error.reason})") from error
