"""Many independent computations, each kept in a file of its own as soon as it is done.

    cell      what is to be computed: a function named by its module, settings, digests of what it reads
    store     a folder with one Parquet file per finished cell, named by the cell's content
    engines   `Serial`, `Processes` (this machine), `Cluster` (a Dask cluster, by its scheduler's address)
    run       `run_cells`: every cell that is not in the store, by an engine
    fleet     `price_fleet`: many problems, each with a stream of its own, priced as cells

A run that ends early continues where it ended when it is started again, by whichever engine.
"""

from normalfan.jobs.cell import Cell
from normalfan.jobs.cluster import Cluster
from normalfan.jobs.engines import Processes, Serial
from normalfan.jobs.fleet import FleetResult, price_fleet
from normalfan.jobs.fleet_members import Members
from normalfan.jobs.run import Outcome, run_cells
from normalfan.jobs.store import Store

__all__ = [
    "Cell",
    "Cluster",
    "FleetResult",
    "Members",
    "Outcome",
    "Processes",
    "Serial",
    "Store",
    "price_fleet",
    "run_cells",
]
