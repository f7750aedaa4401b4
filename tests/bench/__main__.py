"""`make bench`: measures side by side in one run; figures are for comparing lines, not machines."""

from __future__ import annotations

import argparse

from tests.bench import (
    backfill_bench,
    cdc_bench,
    decode_formats,
    growth_bench,
    journal_bench,
    landing_bench,
    page_bench,
    pravega_bench,
    pulsar_bench,
    typed_bench,
)

BENCHES = {
    "pulsar": pulsar_bench.run,
    "pravega": pravega_bench.run,
    "landing": landing_bench.run,
    "typed": typed_bench.run,
    "backfill": backfill_bench.run,
    "formats": decode_formats.run,
    "growth": growth_bench.run,
    "journal": journal_bench.run,
    "page": page_bench.run,
    "cdc": cdc_bench.run,
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
