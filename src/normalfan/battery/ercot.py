"""Two years of real electricity prices: ERCOT's day-ahead market, 2021 and 2022.

Hourly settlement prices in $/MWh at the hubs, one row a day. Days on which the clock jumps forward have 23
hours and are left out. Storm Uri is in it: 8,995 $/MWh in February 2021. Source and licence: data/ERCOT.md.
"""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

import numpy as np

from normalfan.errors import InputError
from normalfan.problem.arrays import FloatArray, read_only

HUBS = ("HB_HUBAVG", "HB_HOUSTON", "HB_NORTH", "HB_SOUTH", "HB_WEST")


@dataclass(frozen=True, slots=True, eq=False)
class DayAheadPrices:
    """Days of hourly prices at one hub."""

    hub: str
    dates: tuple[str, ...]  # [T]
    prices: FloatArray  # [T, 24], $/MWh


def ercot_prices(hub: str = "HB_HUBAVG") -> DayAheadPrices:
    """The 728 whole days of 2021 and 2022 at a hub."""
    import polars

    if hub not in HUBS:
        raise InputError(f"hub is {hub!r}, but must be one of {', '.join(HUBS)}: choose one of them.")
    source = resources.files("normalfan.battery") / "data" / "ercot_day_ahead_2021_2022.parquet"
    with source.open("rb") as file:
        days = (
            polars.read_parquet(file.read(), columns=["date", "h", hub])
            .sort("date", "h")
            .group_by("date", maintain_order=True)
            .agg(hub)
            .filter(polars.col(hub).list.len() == 24)
        )
    prices = np.array(days[hub].to_list(), dtype=np.float64)
    return DayAheadPrices(hub, tuple(str(date) for date in days["date"]), read_only(prices))
