"""The table that a command lands in: `--path FOLDER`, or `--sink KIND:NAME` with `--sink-option NAME=VALUE`."""

from __future__ import annotations

import json
from argparse import Namespace
from collections.abc import Mapping, Sequence
from dataclasses import Field, fields, is_dataclass, replace
from typing import Any, Final, cast

from airflow_provider_streams.errors import InvalidRequest
from airflow_provider_streams.lake.registry import writer_type
from airflow_provider_streams.model.changes.auto_cdc import AutoCdc
from airflow_provider_streams.model.sinks.custom_sink import CustomSink
from airflow_provider_streams.model.sinks.sink import ParquetSink, Sink

_TRUTHS: Final = {"true": True, "false": False}


def pairs_of(flag: str, given: Sequence[str]) -> dict[str, str]:
    """The values by name of an option that is written NAME=VALUE and may be repeated; the later wins.

    Raises:
        InvalidRequest: not written NAME=VALUE.
    """
    pairs = {}
    for one in given:
        name, is_pair, value = one.partition("=")
        if not is_pair or not name:
            raise InvalidRequest(f"{flag} takes NAME=VALUE")
        pairs[name] = value
    return pairs


def names_sink(args: Namespace) -> bool:
    """Whether a command's arguments say where rows land."""
    return any(getattr(args, name, None) for name in ("path", "sink", "sink_option"))


def sink_of(args: Namespace) -> Sink | None:
    """The sink that a command's arguments name; None: they name none.

    Raises:
        InvalidRequest: there is no such sink, or it has no such option.
    """
    path, written = getattr(args, "path", None), getattr(args, "sink", None)
    options = sink_options_of(args)
    if path is not None and (written is not None or options):
        raise InvalidRequest(
            "--path names a Parquet table: leave it out next to --sink; next to --sink-option, write "
            f"--sink parquet:{path}"
        )
    if path is not None:
        return ParquetSink(path)
    if written is None:
        return None
    kind, name = _kind_and_name(written)
    sink_type: Any = writer_type(kind).sink_type
    if sink_type is CustomSink:
        return CustomSink(kind, name, options)
    named_by, values = _values(kind, sink_type, options)
    found: Sink = sink_type(**{named_by: name, **values})
    return found


def sink_options_of(args: Namespace) -> dict[str, str]:
    """What `--sink-option` says, by name; without `--sink`, of the reader's own sink."""
    return pairs_of("--sink-option", getattr(args, "sink_option", ()))


def sink_with(sink: Sink, options: Mapping[str, str]) -> Sink:
    """A sink with other options.

    Raises:
        InvalidRequest: it has no such option.
    """
    if isinstance(sink, CustomSink):
        return replace(sink, options={**sink.options, **options})
    _, values = _values(sink.kind, type(sink), options)
    return replace(cast("Any", sink), **values)  # type: ignore[no-any-return]  # a dataclass, as `_values` has seen


def _kind_and_name(written: str) -> tuple[str, str]:
    first, _, rest = written.partition(":")
    second, has_name, name = rest.partition(":")
    if has_name and second.isidentifier() and not name.startswith("//"):
        return f"{first}:{second}", name  # a custom sink; anything like s3://.. is a name
    if not first or not rest:
        raise InvalidRequest(
            f"--sink takes KIND:NAME, like iceberg:shop.orders, delta:s3://lake/orders or "
            f"my_package.my_sinks:MyWriter:/lake/orders, not {written!r}"
        )
    return first, rest


def _values(kind: str, sink_type: Any, options: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """The field that names a sink's table, and the values of its options."""
    known = {one.name: one for one in fields(sink_type)} if is_dataclass(sink_type) else {}
    if not known:
        raise InvalidRequest(
            f"a sink of kind {kind!r} is no dataclass, so the command line cannot build it: "
            "use it in a DAG, and read with --dag-id"
        )
    first, *names = known
    if unknown := sorted(options.keys() - set(names)):
        raise InvalidRequest(f"--sink-option: a sink of kind {kind!r} has no {unknown[0]!r}; it has {', '.join(names)}")
    return first, {name: _value(known[name], text) for name, text in options.items()}


def _value(option: Field[Any], text: str) -> str | bool | AutoCdc | None:
    """As the sink takes it: a text, a boolean, or None for `none` where it may be None; `apply` is written as JSON.

    Raises:
        InvalidRequest: neither `true` nor `false`, or no such JSON, where it must be.
    """
    if option.name == "apply" and text != "none":
        return _applied(text)
    if isinstance(option.default, bool):
        if text.lower() not in _TRUTHS:
            raise InvalidRequest(f"--sink-option: {option.name} is true or false, not {text!r:.100}")
        return _TRUTHS[text.lower()]
    return None if text == "none" and "None" in str(option.type) else text


def _applied(text: str) -> AutoCdc:
    try:
        return AutoCdc(**json.loads(text))
    except (ValueError, TypeError) as error:
        raise InvalidRequest(
            f'--sink-option: apply is JSON of AutoCdc\'s options, like \'{{"keys": ["id"]}}\', not {text!r:.200}: '
            f"{error}"
        ) from None
