"""A grid battery that trades on day-ahead electricity prices: a problem, and two years of real prices.

The prices are those of ERCOT's market, 2021 and 2022; data/ERCOT.md has their source and licence.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from importlib import resources
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy import sparse

from normalfan.errors import InputError, check_choice
from normalfan.problem.arrays import FloatArray, IntArray, read_numbers, read_only
from normalfan.problem.factored import FactoredLosses
from normalfan.problem.losses import LossStream, rewards
from normalfan.problem.mdp import MDP, Labels

__all__ = ["Battery", "ercot_prices"]

HUBS = ("HB_HUBAVG", "HB_HOUSTON", "HB_NORTH", "HB_SOUTH", "HB_WEST")
HOURS = 24
CLOCK = tuple(f"{hour:02d}:00" for hour in range(HOURS))
# Of full power; negative discharges. To rest comes first: it is what an impossible request amounts to.
POWERS = (0.0, 0.5, 1.0, -0.5, -1.0)


@dataclass(frozen=True, slots=True)
class Battery:
    """A battery that trades a day's electricity prices; by default it stores four hours of full power.

    The state is the charge, in equal levels; a step is an hour, in which it charges or discharges at full or
    half power, or rests; a request beyond empty or full moves what there is. A day starts empty, and what is
    left at its end is worth nothing. The loss of hour h is price_h · (energy bought − energy sold) + wear ·
    (energy discharged): a stream of days is a `FactoredLosses` of 24 prices and one feature for the wear.

    Examples
    --------
    >>> import normalfan as nf
    >>> battery, day = Battery(), np.repeat([20.0, 80.0], 12)                # cheap morning, costly evening
    >>> nf.price_stream(battery.mdp(), battery.losses([day, day[::-1]])).prices.round(0)
    array([   0., 7252.])
    """

    capacity: float = 100.0  # MWh
    power: float = 25.0  # MW; half of it must move a whole number of levels an hour
    levels: int = 41  # of charge, empty and full included
    charging: float = 0.93  # MWh stored for each MWh bought
    discharging: float = 0.93  # MWh sold for each MWh taken out
    leak: float = 0.01  # the chance, each hour, of losing one level
    wear: float = 5.0  # $ for each MWh taken out

    def __post_init__(self) -> None:
        for name in ("charging", "discharging"):
            if not 0 < getattr(self, name) <= 1:
                raise InputError(
                    f"Battery.{name} is {getattr(self, name)}, but an efficiency lies above 0 and at most 1: "
                    f"give 0.93 for a loss of 7 %."
                )
        if not 0 <= self.leak <= 1:
            raise InputError(f"Battery.leak is {self.leak}, but a chance lies between 0 and 1: try 0.01.")
        if self.levels < 2 or self._half_power < 1 or self._half_power % 1:
            raise InputError(
                f"Battery.levels is {self.levels}, but half power must move a whole number of levels an "
                f"hour, and moves {self._half_power:g}: choose levels − 1 a multiple of 2·capacity/power."
            )

    @property
    def level(self) -> float:
        """MWh in one level."""
        return self.capacity / (self.levels - 1)

    @property
    def _half_power(self) -> float:
        return round(self.power / 2 / self.level, 9)

    def mdp(self) -> MDP:
        """The charge through a day, from empty, with names for hours, charges and actions."""
        transitions: Any = np.arange(self.levels)[:, None] + self._moved()
        if self.leak > 0:
            kept, lost = (np.eye(self.levels)[np.maximum(transitions.ravel() - less, 0)] for less in (0, 1))
            transitions = sparse.csr_array((1 - self.leak) * kept + self.leak * lost)
        moves = [("charge" if power > 0 else "discharge", abs(power) * self.power) for power in POWERS]
        names = tuple(f"{verb} {size:g} MW" if size else "rest" for verb, size in moves)
        states = tuple(f"{i * self.level:g} MWh" for i in range(self.levels))
        labels = Labels(steps=CLOCK, states=states, actions=names)
        return MDP(transitions, 0, HOURS, labels=labels)

    def features(self) -> FloatArray:
        """[25, 24, levels, 5]: MWh bought in each hour, then the wear in $."""
        moved = self._moved() * self.level
        bought = np.where(moved > 0, moved / self.charging, moved * self.discharging)
        features = np.zeros((HOURS + 1, HOURS, *moved.shape))
        features[range(HOURS), range(HOURS)] = bought
        features[HOURS] = self.wear * np.maximum(-moved, 0)
        return features

    def losses(self, prices: npt.ArrayLike, *, round_names: Sequence[str] | None = None) -> FactoredLosses:
        """The losses, in $, of days of hourly prices [T, 24] in $/MWh."""
        days = read_numbers("prices", prices)
        if days.ndim != 2 or days.shape[1] != HOURS:
            raise InputError(
                f"prices have shape {list(days.shape)}, but must be [T, {HOURS}]: "
                f"give one row a day and one column an hour."
            )
        coefficients = np.hstack([days, np.ones((len(days), 1))])
        names = [f"price {hour}" for hour in CLOCK] + ["wear"]
        return FactoredLosses(coefficients, self.features(), round_names=round_names, feature_names=names)

    def rewards(self, prices: npt.ArrayLike, *, round_names: Sequence[str] | None = None) -> LossStream:
        """The same days as what they earn."""
        lost = self.losses(prices, round_names=round_names)
        names = {"round_names": round_names, "feature_names": lost.feature_names}
        return rewards(FactoredLosses(lost.coefficients, -lost.features, **names))

    def _moved(self) -> IntArray:
        """[levels, 5]: by how many levels each action moves each charge."""
        charge = np.arange(self.levels)[:, None]
        asked = np.rint(np.array(POWERS) * 2 * self._half_power).astype(np.int64)
        moved: IntArray = np.clip(charge + asked, 0, self.levels - 1) - charge
        return moved


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

    check_choice("hub", hub, HUBS)
    source = resources.files("normalfan") / "data" / "ercot_day_ahead_2021_2022.parquet"
    with source.open("rb") as file:
        hours = polars.read_parquet(file.read(), columns=["date", "h", hub])
    hours = hours.filter(polars.len().over("date") == HOURS).sort("date", "h")
    prices = hours[hub].to_numpy().astype(np.float64).reshape(-1, HOURS)
    return DayAheadPrices(hub, tuple(map(str, hours["date"].gather_every(HOURS))), read_only(prices))
