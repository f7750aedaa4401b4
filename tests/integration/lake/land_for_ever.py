"""Lands one window of a Delta table again and again, each time with one row more: to be killed."""

from __future__ import annotations

import sys
from itertools import count

from airflow_provider_streams import DeltaSink
from tests.integration.lake.landing import hour, land, rows_of

if __name__ == "__main__":
    sink = DeltaSink(sys.argv[1])
    for rows in count(int(sys.argv[2])):
        land(sink, hour(0), rows_of(0, rows))
        print(rows, flush=True)
