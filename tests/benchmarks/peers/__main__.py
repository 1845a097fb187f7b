"""The tables, in the order in which they are printed."""

from __future__ import annotations

import sys

from tests.benchmarks.peers import packing_table, padding_table, planning_table, sampling_table
from tests.benchmarks.peers.runner import main

TABLES = {
    "padding": padding_table.run,
    "sampling": sampling_table.run,
    "planning": planning_table.run,
    "packing": packing_table.run,
}

if __name__ == "__main__":
    sys.exit(main(TABLES))
