"""Runs one job through `hooks.spark.launch` in its own process: `launching.py <spec> <result> [connection] [conf]`."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

from airflow_provider_streams.hooks.spark import launch
from airflow_provider_streams.spark.spec import JobSpec

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    spec_file, result_file, *rest = sys.argv[1:]
    conn_id = rest[0] if rest else None
    conf = json.loads(rest[1]) if len(rest) > 1 else None
    spec = JobSpec.from_json(json.loads(Path(spec_file).read_text()), os.environ)
    try:
        result = {"receipt": launch(spec, conn_id, conf=conf).to_json()}
    except Exception as error:  # noqa: BLE001 - tests look at what it is
        result = {"error": type(error).__name__, "message": str(error)}
    Path(result_file).write_text(json.dumps(result))
