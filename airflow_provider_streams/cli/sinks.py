"""The table that a command lands in: `--path FOLDER`, or `--sink KIND:NAME` with `--sink-option NAME=VALUE`."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, Final

from airflow_provider_streams.cli.pairs import pairs_of
from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.model.own_sink import OwnSink
from airflow_provider_streams.model.sink import ParquetSink, Sink

_TRUTHS: Final = {"true": True, "false": False}


def names_sink(args: Namespace) -> bool:
    """Whether a command's arguments say where rows land."""
    return any(getattr(args, name, None) for name in ("path", "sink", "sink_option"))


def sink_of(args: Namespace) -> Sink | None:
    """The sink that a command's arguments name; None: they name none.

    Raises:
        InvalidRequest: there is no such sink, or it cannot be told this.
    """
    path, written = getattr(args, "path", None), getattr(args, "sink", None)
    options = pairs_of("--sink-option", getattr(args, "sink_option", ()))
    if path is not None and (written is not None or options):
        raise InvalidRequest("--path is a Parquet table: leave it out, or --sink and --sink-option")
    if path is not None:
        return ParquetSink(path)
    if written is None:
        if options:
            raise InvalidRequest("--sink-option belongs to --sink")
        return None
    return _sink(*_kind_and_name(written), options)


def _kind_and_name(written: str) -> tuple[str, str]:
    first, _, rest = written.partition(":")
    second, has_name, name = rest.partition(":")
    if has_name and second.isidentifier() and not name.startswith("//"):
        return f"{first}:{second}", name  # of one's own; anything like s3://.. is a name
    if not first or not rest:
        raise InvalidRequest(
            f"--sink takes KIND:NAME, like iceberg:shop.orders, delta:s3://lake/orders or "
            f"my_package.my_sinks:MyWriter:/lake/orders, not {written!r}"
        )
    return first, rest


def _sink(kind: str, name: str, options: Mapping[str, str]) -> Sink:
    from airflow_provider_streams.spark.sinks import writer_type  # noqa: PLC0415 - where a table is

    sink_type: Any = getattr(writer_type(kind), "sink_type", OwnSink)
    if sink_type is OwnSink:
        return OwnSink(kind, name, options)
    names = [one.name for one in fields(sink_type)] if hasattr(sink_type, "__dataclass_fields__") else []
    if not names:
        raise InvalidRequest(f"a sink of kind {kind!r} is no dataclass: name it in a DAG, and read with --dag-id")
    if unknown := sorted(options.keys() - set(names[1:])):
        known = ", ".join(names[1:])
        raise InvalidRequest(f"--sink-option: a sink of kind {kind!r} has no {unknown[0]!r}; it has {known}")
    found: Sink = sink_type(**{names[0]: name, **{key: _value(text) for key, text in options.items()}})
    return found


def _value(text: str) -> str | bool | None:
    """As the sinks take it: a text, a truth, or `none`."""
    return None if text == "none" else _TRUTHS.get(text, text)
