"""Writes `pages/reference/commands.md` from the code: `python docs/generate_commands.py`. A test compares them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from airflow_provider_streams.cli.parser import get_streams_cli_commands

PAGE = Path(__file__).parent / "pages" / "reference" / "commands.md"


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    commands = dict(_commands("", get_streams_cli_commands()))
    yield "# Options of the commands"
    yield ""
    yield "Generated from the code by `docs/generate_commands.py`. [Command line](cli.md) explains the commands."
    yield "\n## Commands\n"
    yield "| command | does |"
    yield "|---|---|"
    for name, command in commands.items():
        yield f"| `airflow streams {name}` | {_cell(command.help)} |"
    yield "\n## Options\n"
    yield "| option | commands | meaning |"
    yield "|---|---|---|"
    for argument, users in sorted(_options(commands).items()):
        names = "all commands" if len(users) == len(commands) else ", ".join(f"`{name}`" for name in users)
        yield f"| {argument[0]} | {names} | {argument[1]} |"


def _commands(prefix: str, commands: Any) -> Iterator[tuple[str, Any]]:
    """Each command under its whole name, groups opened."""
    for command in commands:
        name = f"{prefix} {command.name}".strip()
        if hasattr(command, "subcommands"):
            yield from _commands("" if command.name == "streams" else name, command.subcommands)
        else:
            yield name, command


def _options(commands: dict[str, Any]) -> dict[tuple[str, str], list[str]]:
    """The commands that take each option, an option being its words and its meaning."""
    found: dict[tuple[str, str], list[str]] = {}
    for name, command in commands.items():
        for argument in command.args:
            found.setdefault((_words(argument), _meaning(argument)), []).append(name)
    return found


def _words(argument: Any) -> str:
    """An option as it is written, with its value."""
    flags = [flag for flag in argument.flags if flag.startswith("-")]
    if not flags:
        return f"`{argument.kwargs.get('metavar', argument.flags[0])}`"
    value = argument.kwargs.get("metavar", flags[-1].lstrip("-").replace("-", "_").upper())
    takes = "action" not in argument.kwargs or argument.kwargs["action"] == "append"
    return ", ".join(f"`{flag}`" for flag in flags) + (f" `{value}`" if takes else "")


def _meaning(argument: Any) -> str:
    choices = argument.kwargs.get("choices")
    text = _cell(argument.kwargs.get("help", ""))
    return text + (f" ({', '.join(f'`{choice}`' for choice in choices)})" if choices else "")


def _cell(text: str) -> str:
    return text.replace("|", "&#124;").replace("<", "&lt;").replace("%%", "%")


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE} is written\n")
