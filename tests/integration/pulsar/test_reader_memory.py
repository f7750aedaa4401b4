"""What a read takes in memory does not grow with its window."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from airflow_provider_streams.model.stream.position import Position

pytestmark = pytest.mark.pulsar

VALUE_BYTES, BATCH, ENTRIES = 10_000, 100, 600
"""600 MB in entries of 1 MB."""

READ = """
import json, pathlib, sys
from airflow_provider_streams.model.plan.plan import Plan
from airflow_provider_streams.systems.pulsar.client.endpoint import Endpoint
from airflow_provider_streams.systems.pulsar.reading.reader import PulsarSplitReader

plan = Plan.from_json(json.load(sys.stdin))
reader = PulsarSplitReader(Endpoint(sys.argv[1]), plan, plan.splits[0])
rows = sum(batch.num_rows for batch in reader)
status = pathlib.Path("/proc/self/status").read_text()
peak_kib = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
print(json.dumps({"rows": rows, "peak_bytes": peak_kib * 1024}))
"""


def peak_of(bench, split):
    """Most memory of a process that reads `split` and lets go each batch."""
    done = subprocess.run(
        [sys.executable, "-c", READ, bench.server.service_url],
        input=json.dumps(bench.plan(split).to_json()),
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    answer = json.loads(done.stdout)
    assert answer["rows"] == BATCH * sum(span.entries for span in split.spans)
    return answer["peak_bytes"]


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the peak is read from /proc")
def test_a_window_six_times_as_large_takes_no_more_memory(bench, noise):
    topic = bench.topic()
    values = [noise[start : start + VALUE_BYTES] for start in range(BATCH)] * ENTRIES
    bench.write(topic, values, batch=BATCH, batching_max_allowed_size_in_bytes=4 << 20)
    whole = bench.split(topic)
    places = [(span.run, entry) for span in whole.spans for entry in range(span.first, span.end)]
    assert len(places) == ENTRIES
    sixth = bench.split(topic, end=Position.of(*places[ENTRIES // 6], -1))
    more = peak_of(bench, whole) - peak_of(bench, sixth)
    kept = (ENTRIES - ENTRIES // 6) * BATCH * VALUE_BYTES
    assert more < kept / 5, f"{more / 1e6:.0f} MB more for {kept / 1e6:.0f} MB more to read"
