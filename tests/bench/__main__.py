"""`make bench`: measures side by side in one run; figures are for comparing lines, not machines."""

from __future__ import annotations

import argparse

from tests.bench import backfill_bench, journal_bench, page_bench, pravega_bench, pulsar_bench

BENCHES = {
    "pulsar": pulsar_bench.run,
    "pravega": pravega_bench.run,
    "backfill": backfill_bench.run,
    "journal": journal_bench.run,
    "page": page_bench.run,
}


def main() -> None:
    """Run the benchmarks that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("system", nargs="*", default=list(BENCHES))
    parser.add_argument("--scale", type=float, default=1.0, help="of the number of events")
    arguments = parser.parse_args()
    for system in arguments.system:
        BENCHES[system](arguments.scale)


if __name__ == "__main__":
    main()
