"""What `airflow streams config` does: the settings of a connection, and where each of them comes from."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import dataclass

from airflow_provider_streams.cli.action import command
from airflow_provider_streams.cli.option_names import as_options
from airflow_provider_streams.cli.output import answer, answer_data, answer_rows, for_people
from airflow_provider_streams.connections.settings import Setting
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.hooks.base import connection_hook_of
from airflow_provider_streams.systems.registry import known


@command
def config(args: Namespace) -> None:
    """Show settings, secrets masked. Of several systems, those without a connection are named and passed over."""
    asked = args.system or sorted(known())
    if args.conn_id and len(asked) != 1:
        raise InvalidRequest("--conn-id belongs to one system: name it, for example: config pravega --conn-id prod")
    found: dict[str, _Shown] = {}
    for kind in asked:
        hook = connection_hook_of(kind, args.conn_id)
        try:
            found[kind] = _Shown(hook.conn_id, hook.settings(), hook.refusal())
        except InvalidRequest as error:
            if len(asked) == 1:
                raise
            found[kind] = _Shown(hook.conn_id, {}, as_options(str(error), args))
    if not for_people(args.output):
        answer_data({kind: shown.to_json() for kind, shown in found.items()}, args.output)
        return
    for kind, shown in found.items():
        answer(f"{kind}   connection {shown.conn_id}")
        answer_rows(shown.rows(), args.output, f"{shown.refusal}\n")
        for refused in shown.problems.values() if shown.settings else ():
            answer(f"{kind} refuses this: {refused}\n")


@dataclass(frozen=True, slots=True)
class _Shown:
    conn_id: str
    settings: Mapping[str, Setting]
    """Empty, if they cannot be told."""
    refusal: str
    """What its hook says of all of them; empty: nothing."""

    @property
    def problems(self) -> dict[str, str]:
        """What is wrong, by setting; what the hook says of several together is a problem of the address, the first."""
        found = {name: problem for name, one in self.settings.items() if (problem := one.problem)}
        if self.refusal and self.refusal not in found.values():
            address = next(iter(self.settings), "")
            found[address] = ". ".join(one for one in (found.get(address), self.refusal) if one)
        return found

    def rows(self) -> list[dict[str, str]]:
        return [{"option": name, "value": one.shown or "-", "from": one.origin} for name, one in self.settings.items()]

    def to_json(self) -> object:
        if not self.settings:
            return {"error": self.refusal}
        problems = {name: {"problem": problem} for name, problem in self.problems.items()}
        return {
            name: {"value": one.shown, "from": one.origin, **problems.get(name, {})}
            for name, one in self.settings.items()
        }
