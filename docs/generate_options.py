"""Writes `pages/reference/options.md` from the code: `python docs/generate_options.py`. A test compares them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from airflow_provider_streams.provider_info import get_provider_info
from airflow_provider_streams.spark.datasource.options import READ_OPTIONS
from airflow_provider_streams.systems.connection.option import Option
from airflow_provider_streams.systems.registry import SYSTEMS, declaration_of

PAGE = Path(__file__).parent / "pages" / "reference" / "options.md"


def page() -> str:
    """The whole page."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield "# Options"
    yield ""
    yield "Generated from the code by `docs/generate_options.py`: every option stands here once."
    for system in sorted(SYSTEMS):
        yield f"\n## Reaching {system.title()}\n"
        yield f'Extras of a connection of type `{system}`, and options of `spark.read.format("{system}")`.'
        yield from _table(declaration_of(system).options)
        for service in declaration_of(system).services:
            yield f"\n## Reaching a {service.title}\n"
            yield f"Extras of a connection of type `{service.name}`."
            yield from _table(service.options)
    yield "\n## What to read, without Airflow\n"
    yield "Options of `spark.read.format(..)`, of every system."
    yield from _table(READ_OPTIONS)
    for system in sorted(SYSTEMS):
        yield f"\n### Sources of {system.title()}"
        yield from _table(declaration_of(system).source_options)
    yield "\n## Airflow's configuration, section `[streams]`\n"
    yield "| option | default | meaning |"
    yield "|---|---|---|"
    for name, option in get_provider_info()["config"]["streams"]["options"].items():
        default = f"`{option['default']}`" if option["default"] else ""
        yield f"| `{name}` | {default} | {option['description']} |"


def _table(options: Iterable[Option]) -> Iterator[str]:
    yield ""
    yield "| option | default | meaning | also accepted |"
    yield "|---|---|---|---|"
    for option in options:
        default = f"`{option.default}`" if option.default else ""
        aliases = ", ".join(f"`{alias}`" for alias in option.aliases)
        secret = " **Secret.**" if option.secret else ""
        yield f"| `{option.name}` | {default} | {option.help.replace('|', '&#124;')}{secret} | {aliases} |"


if __name__ == "__main__":
    PAGE.write_text(page())
    sys.stdout.write(f"{PAGE} is written\n")
