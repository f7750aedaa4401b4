"""What `airflow streams config` does: the settings of a connection, and where each of them comes from."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.option_names import as_options
from airflow_provider_streams.cli.output import answer, answer_data, answer_rows, for_people
from airflow_provider_streams.connections.settings import Setting
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import hook_of
from airflow_provider_streams.systems.registry import known


@command
def config(args: Namespace) -> None:
    """Show settings, secrets masked. Of several systems, those without a connection are named and passed over."""
    asked = args.system or sorted(known())
    if args.conn_id and len(asked) != 1:
        raise InvalidRequest("--conn-id belongs to one system: name it, for example: config pravega --conn-id prod")
    found: dict[str, Mapping[str, Setting] | str] = {}
    for system in asked:
        hook = hook_of(system, args.conn_id or f"{system}_default")
        try:
            found[system] = hook.settings()
        except InvalidRequest as error:
            if len(asked) == 1:
                raise
            found[system] = as_options(str(error), args)
    if not for_people(args.output):
        answer_data({system: _to_json(settings) for system, settings in found.items()}, args.output)
        return
    for system, settings in found.items():
        answer(f"{system}   connection {args.conn_id or system + '_default'}")
        problem, rows = (settings, []) if isinstance(settings, str) else ("no setting", _rows(settings))
        answer_rows(rows, args.output, f"{problem}\n")
        for refused in _problems(settings).values():
            answer(f"{system} refuses this: {refused}\n")


def _to_json(settings: Mapping[str, Setting] | str) -> object:
    if isinstance(settings, str):
        return {"error": settings}
    shown = {name: {"value": setting.shown, "from": setting.origin} for name, setting in settings.items()}
    for name, problem in _problems(settings).items():
        shown[name]["problem"] = problem
    return shown


def _problems(settings: Mapping[str, Setting] | str) -> dict[str, str]:
    if isinstance(settings, str):
        return {}
    return {name: problem for name, one in settings.items() if (problem := one.problem)}


def _rows(settings: Mapping[str, Setting]) -> list[dict[str, str]]:
    return [{"option": name, "value": one.shown or "-", "from": one.origin} for name, one in settings.items()]
