"""Versions of a schema read as the newest one: what lands is what Java's `GenericDatumReader` resolves.

Events that Java refuses may land where nothing of them is lost, such as a long next to a newer int. Events that we set
aside are counted by their cause.
"""

from __future__ import annotations

import base64
import io
import json
import random
import re
import struct
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import fastavro
import numpy as np
import pyarrow as pa

from airflow_provider_streams.formats.decoder import Decoded, Decoder, Payloads
from airflow_provider_streams.formats.schema.pinned_schemas import decoding_of
from airflow_provider_streams.model.schema.decoding import WriterSchema
from airflow_provider_streams.model.schema.payload import Auto
from stream_servers.bundles import PULSAR
from stream_servers.fetch import fetch
from stream_servers.java import run_java
from stream_servers.pulsar import VERSION
from tests.fuzz.formats import evolutions_made
from tests.fuzz.formats.rounds import Done

ROWS = 3
"""Of each version."""

EVOLUTIONS = 300
"""That one JVM reads."""


_LANDS = re.compile(
    "missing required field|Duplicate field|Can't redefine|Invalid default|No match for|Found null,"
    r"|Found (?:int|long|float|double), expecting|Found E\d, expecting (?:string|union)"
)
"""Why Java refuses events that land with all that they hold: see the documentation."""


class DifferentError(AssertionError):
    """What lands is not what Java reads."""


@dataclass
class Case:
    """An evolution, the oldest version first, and payloads of each."""

    seed: int
    versions: list[dict[str, Any]]
    rows: list[list[bytes]]


@dataclass
class Compared:
    """How events ended."""

    same: int = 0
    refused_by_java: Counter[str] = field(default_factory=Counter)
    set_aside: Counter[str] = field(default_factory=Counter)


def compare(seeds: range, compared: Compared) -> None:
    """Random evolutions, one JVM for all.

    Raises:
        DifferentError: a value differs from Java's.
    """
    cases = [_case(seed) for seed in seeds]
    theirs = iter(_by_java(cases))
    for case in cases:
        decoder = _decoder(case.versions)
        for number, rows in enumerate(case.rows):
            _compare(case, _decoded(decoder, number, rows), next(theirs), compared)


def round_(seed: int, done: Done) -> None:
    """One seed in some hundred, for all of them: a JVM takes longer to start than to read."""
    if seed % EVOLUTIONS:
        return
    compared = Compared()
    compare(range(seed, seed + EVOLUTIONS), compared)
    done.taken["resolution"] += compared.same
    done.refused["resolution"] += compared.set_aside.total() + compared.refused_by_java.total()
    done.rounds += 1


def _case(seed: int) -> Case:
    dice = random.Random(seed)
    versions = evolutions_made.versions(dice)
    rows = []
    for version in versions:
        parsed = fastavro.parse_schema(version)
        rows.append([_written(parsed, evolutions_made.datum(dice, version)) for _ in range(ROWS)])
    return Case(seed, versions, rows)


def _written(parsed: Any, value: Any) -> bytes:
    out = io.BytesIO()
    fastavro.schemaless_writer(out, parsed, value)
    return out.getvalue()


def _by_java(cases: list[Case]) -> Iterator[list[Any]]:
    """Of each version of each case its rows."""
    with tempfile.TemporaryDirectory() as folder:
        asked = Path(folder, "cases")
        with asked.open("w") as file:
            for case in cases:
                for version, rows in zip(case.versions, case.rows, strict=True):
                    texts = [base64.b64encode(row).decode() for row in rows]
                    one = {"writer": json.dumps(version), "reader": json.dumps(case.versions[-1]), "rows": texts}
                    print(json.dumps(one), file=file)
        libraries = [f"{fetch(PULSAR)}/apache-pulsar-{VERSION}/lib/*"]
        told = run_java(Path(__file__).with_name("Resolve.java"), [str(asked)], libraries, seconds=600)
    return (json.loads(line) for line in told.splitlines() if line.startswith("["))


def _decoder(versions: list[dict[str, Any]]) -> Decoder:
    known = {"t": {str(number): WriterSchema("avro", json.dumps(one)) for number, one in enumerate(versions)}}
    return Decoder(decoding_of(Auto(), None, known, "message"), "t")


def _decoded(decoder: Decoder, number: int, rows: list[bytes]) -> Decoded:
    named = pa.array([struct.pack(">q", number)] * len(rows), pa.binary())
    return decoder.decode(Payloads(pa.array(rows, pa.binary()), None, named))


def _compare(case: Case, found: Decoded, theirs: list[Any], compared: Compared) -> None:
    for ours, cause, java in zip(found.value.to_pylist(), found.causes.to_pylist(), theirs, strict=True):
        if isinstance(java, str):
            if cause is None and not _LANDS.search(java):
                raise DifferentError(f"seed {case.seed}: {ours} lands, and java says {java}")
            compared.refused_by_java[java.partition(":")[0]] += 1
        elif cause is not None:
            compared.set_aside[cause] += 1
        elif not _same(case.versions[-1], ours, java):
            texts = "\n".join(json.dumps(one) for one in case.versions)
            raise DifferentError(f"seed {case.seed}, an event of:\n{texts}\nours {ours}\njava {java}")
        else:
            compared.same += 1


def _same(of: Any, ours: Any, java: Any) -> bool:
    """Whether a column's value is what Java has for the newest schema."""
    if ours is None or java is None:
        return ours is java
    match of if isinstance(of, str) else "union" if isinstance(of, list) else of["type"]:
        case "union":
            return _same_branch([one for one in of if one != "null"], ours, java)
        case "record":
            return all(_same(one["type"], ours[one["name"]], java[one["name"]]) for one in of["fields"])
        case "array":
            return len(ours) == len(java) and all(_same(of["items"], *pair) for pair in zip(ours, java, strict=True))
        case "map":
            return dict(ours).keys() == java.keys() and all(_same(of["values"], one, java[key]) for key, one in ours)
        case "bytes" | "fixed":
            return base64.b64encode(ours).decode() == java
        case "float":
            # a column that older numbers widened to a double has digits that Java's float has not
            return bool(np.float32(ours) == np.float32(java))
    return bool(ours == java)


def _same_branch(branches: list[Any], ours: Any, java: Any) -> bool:
    if len(branches) == 1:
        return _same(branches[0], ours, java)
    (name,) = java
    if not isinstance(ours, dict):
        return bool(ours == java[name])  # of int and long, or of float and double: one column holds both
    (member,) = [one for one, value in ours.items() if value is not None]
    branch = next(one for one in branches if (one if isinstance(one, str) else one.get("name", one["type"])) == name)
    return member == f"member_{name.lower()}" and _same(branch, ours[member], java[name])
