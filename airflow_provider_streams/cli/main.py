# PYTHON_ARGCOMPLETE_OK - so that a shell that completes every Python program finds it
"""The commands of `airflow streams` as a program of their own: Airflow finds a provider's commands since 3.2 only."""

from __future__ import annotations

from collections.abc import Sequence

import argcomplete
from airflow.cli import cli_parser
from airflow.cli.cli_config import DefaultHelpParser, GroupCommand
from airflow.configuration import write_default_airflow_configuration_if_needed

from airflow_provider_streams.cli.parser import get_streams_cli_commands


def main(argv: Sequence[str] | None = None) -> None:
    """Run one command, as `airflow streams` would."""
    (group,) = (one for one in get_streams_cli_commands() if isinstance(one, GroupCommand))
    parser = DefaultHelpParser(
        prog="airflow-streams", description=group.help, formatter_class=cli_parser.LazyRichHelpFormatter
    )
    cli_parser._add_group_command(group, parser)  # noqa: SLF001 - there is no public name for it
    argcomplete.autocomplete(parser)  # as Airflow does; answers only a shell that asks
    args = parser.parse_args(argv)
    write_default_airflow_configuration_if_needed()
    args.func(args)
