"""Time us and the peers side by side.

python -m benchmarks.speed [WORKLOAD …] [--quick] [--json]
"""

from __future__ import annotations

import argparse
import json
import sys

from benchmarks.speed.table import measure, print_table
from benchmarks.speed.workloads import WORKLOADS


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.speed", description=__doc__.splitlines()[0])
    parser.add_argument(
        "workload", nargs="*", help=f"one or more of {', '.join(WORKLOADS)}; all of them by default"
    )
    parser.add_argument("--quick", action="store_true", help="fewer repetitions, rougher numbers")
    parser.add_argument("--json", action="store_true", help="print the rows as JSON instead of a table")
    options = parser.parse_args()
    unknown = [name for name in options.workload if name not in WORKLOADS]
    if unknown:
        parser.error(f"workload {unknown[0]!r} does not exist: choose from {', '.join(WORKLOADS)}")
    rows = measure(options.workload or list(WORKLOADS), quick=options.quick)
    if options.json:
        json.dump(rows, sys.stdout, indent=1)
        print()
    else:
        print_table(rows)


if __name__ == "__main__":
    main()
