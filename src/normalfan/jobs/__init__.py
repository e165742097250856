"""Many independent computations, each kept in a file of its own as soon as it is done.

`run_cells` computes every `Cell` not yet in the `Store`, by an engine: `Serial`, `Processes` or `Cluster`.
A run that ends early continues where it ended when it is started again, by whichever engine.
"""

from normalfan.jobs.cells import Cell, Store
from normalfan.jobs.cluster import Cluster
from normalfan.jobs.fleet import price_fleet
from normalfan.jobs.fleet_members import Members
from normalfan.jobs.run import Processes, Serial, run_cells

__all__ = [
    "Cell",
    "Cluster",
    "Members",
    "Processes",
    "Serial",
    "Store",
    "price_fleet",
    "run_cells",
]
