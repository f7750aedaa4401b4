"""Runs one job, or a chunk, in a process of its own: `launching.py <spec> <result> [connection]`; see `test_launch`."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
from pathlib import Path

from airflow_provider_streams.hooks.spark import cancel, launch, launch_chunk
from airflow_provider_streams.spark.batch_spec import ChunkSpec, results_to_json
from airflow_provider_streams.spark.spec import JobSpec

if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    signal.signal(signal.SIGTERM, lambda *_: cancel())  # as Airflow's task runner calls `on_kill`
    spec_file, result_file, *rest = sys.argv[1:]
    conn_id = (rest[0] or None) if rest else None
    settings = json.loads(os.environ.pop("TEST_SPARK_SETTINGS", "null"))
    told = json.loads(Path(spec_file).read_text())
    try:
        if "plans" in told:
            chunk = ChunkSpec.from_json(told, os.environ)
            result = {"results": results_to_json(launch_chunk(chunk, conn_id, settings))}
        else:
            result = launch(JobSpec.from_json(told, os.environ), conn_id, settings).to_json()
    except Exception as error:  # noqa: BLE001 - tests look at what it is
        result = {"error": type(error).__name__, "message": str(error)}
    Path(result_file).write_text(json.dumps(result))
