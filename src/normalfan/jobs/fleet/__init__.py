"""Many decision problems, each with its own stream of losses: what did each day cost each member?

members   who is in the fleet: a table with a row for each, or one model and a dataset of streams
cells     slices of members, each a cell of a sweep
task      prices the members of a cell, on a worker
totals    what each member and the whole fleet came to, read lazily from the results

from normalfan.jobs.fleet import members_of_table, price_fleet
from normalfan.jobs import Processes

result = price_fleet(members_of_table("fleet.parquet"), "results", Processes())
"""

from normalfan.jobs.fleet.members import Members, members_of_dataset, members_of_table
from normalfan.jobs.fleet.price import FleetResult, price_fleet

__all__ = ["FleetResult", "Members", "members_of_dataset", "members_of_table", "price_fleet"]
