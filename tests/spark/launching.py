"""Runs one job, or a chunk, in a process of its own: `launching.py <spec> <result> [connection] [conf]`."""

from __future__ import annotations

import json
import logging
import os
import sys
from pathlib import Path

from airflow_provider_streams.hooks.spark import launch, launch_chunk
from airflow_provider_streams.spark.chunk import ChunkSpec, results_to_json
from airflow_provider_streams.spark.spec import JobSpec

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    spec_file, result_file, *rest = sys.argv[1:]
    conn_id = rest[0] if rest else None
    conf = json.loads(rest[1]) if len(rest) > 1 else None
    told = json.loads(Path(spec_file).read_text())
    try:
        if "plans" in told:
            chunk = ChunkSpec.from_json(told, os.environ)
            result = {"results": results_to_json(launch_chunk(chunk, conn_id, conf=conf))}
        else:
            result = {"receipt": launch(JobSpec.from_json(told, os.environ), conn_id, conf=conf).to_json()}
    except Exception as error:  # noqa: BLE001 - tests look at what it is
        result = {"error": type(error).__name__, "message": str(error)}
    Path(result_file).write_text(json.dumps(result))
