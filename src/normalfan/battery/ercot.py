"""Real electricity prices: ERCOT's day-ahead market, 2021 and 2022. Source and licence: data/ERCOT.md."""

from __future__ import annotations

from dataclasses import dataclass
from importlib import resources

import numpy as np

from normalfan.errors import InputError
from normalfan.problem.arrays import FloatArray, read_only

HUBS = ("HB_HUBAVG", "HB_HOUSTON", "HB_NORTH", "HB_SOUTH", "HB_WEST")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class DayAheadPrices:
    """Hourly electricity prices at one hub; see `ercot_prices`."""

    hub: str
    dates: tuple[str, ...]  # [T]  in ISO format
    prices: FloatArray  # [T, 24]  in $/MWh

    def __repr__(self) -> str:
        return f"DayAheadPrices: {self.hub}, {len(self.dates)} days from {self.dates[0]} to {self.dates[-1]}"


def ercot_prices(hub: str = "HB_HUBAVG") -> DayAheadPrices:
    """Read the day-ahead prices of ERCOT at a hub, 2021 and 2022.

    Days on which the clock jumps forward have 23 hours and are left out; storm Uri is included.

    Parameters
    ----------
    hub : str
        HB_HUBAVG, HB_HOUSTON, HB_NORTH, HB_SOUTH or HB_WEST.

    Returns
    -------
    DayAheadPrices

    Raises
    ------
    InputError
        If there is no such hub.

    Examples
    --------
    >>> ercot_prices("HB_WEST")
    DayAheadPrices: HB_WEST, 728 days from 2021-01-01 to 2022-12-31
    """
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
