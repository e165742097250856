"""Many independent computations, each kept in a file of its own as soon as it is done.

    cells     what is to be computed: a function named by its module, settings, digests of what it reads
    store     a folder with one Parquet file per finished cell, named by the cell's content
    engines   Serial, Processes (this machine), Cluster (a Dask cluster, by the address of its scheduler)

A run that ends early, for whatever reason, continues where it ended when it is started again: a cell whose
file exists is not computed a second time, by whichever engine.

    from normalfan.jobs import Cell, Processes, Store, run_sweep

    cells = [Cell("mypackage.study:simulate", {"seed": seed}) for seed in range(1000)]
    outcome = run_sweep(cells, Store("results"), Processes())
"""

from normalfan.jobs.cell import Cell
from normalfan.jobs.cluster import Cluster
from normalfan.jobs.engines import Processes, Serial
from normalfan.jobs.outcome import Failure, Outcome
from normalfan.jobs.run import run_sweep
from normalfan.jobs.store import Store

__all__ = ["Cell", "Cluster", "Failure", "Outcome", "Processes", "Serial", "Store", "run_sweep"]
