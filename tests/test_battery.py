"""The battery against a trader written out by hand, and the prices that it trades on."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from sentences import check_refusal

import normalfan as nf
from normalfan.battery import HOURS, HUBS, POWERS, Battery, ercot_prices


def best_by_hand(battery: Battery, day: np.ndarray) -> float:
    """The least expected cost of a day, straight from the data sheet, charge in MWh."""
    level = battery.capacity / (battery.levels - 1)
    worth = [0.0] * battery.levels
    for hour in reversed(range(HOURS)):
        now = []
        for i in range(battery.levels):
            options = []
            for power in POWERS:
                wanted = i * level + power * battery.power
                stored = min(max(wanted, 0.0), battery.capacity)
                moved = stored - i * level
                cost = day[hour] * (moved / battery.charging if moved > 0 else moved * battery.discharging)
                cost += battery.wear * max(-moved, 0.0)
                j = round(stored / level)
                options.append(cost + (1 - battery.leak) * worth[j] + battery.leak * worth[max(j - 1, 0)])
            now.append(min(options))
        worth = now
    return worth[0]


@pytest.mark.parametrize(
    "battery",
    [Battery(), Battery(100.0, 50.0, 5, leak=0.3, wear=40.0), Battery(20.0, 10.0, 21, 1.0, 0.8, 0.0, 0.0)],
)
def test_values_are_those_of_a_trader_by_hand(battery: Battery) -> None:
    days = np.random.default_rng(7).normal(40, 60, size=(4, HOURS))
    values = nf.price_stream(battery.mdp(), battery.losses(days)).values
    assert values == pytest.approx([best_by_hand(battery, day) for day in days], rel=1e-12)


def test_names_of_the_battery() -> None:
    labels = Battery().mdp().labels
    assert labels.step(17) == "17:00"
    assert labels.state(40) == "100 MWh"
    assert [labels.action(a) for a in range(5)] == [
        "rest",
        "charge 12.5 MW",
        "charge 25 MW",
        "discharge 12.5 MW",
        "discharge 25 MW",
    ]


@pytest.mark.parametrize(
    ("wrong", "where"),
    [
        (lambda: Battery(charging=1.2), "Battery.charging is 1.2"),
        (lambda: Battery(leak=-0.1), "Battery.leak is -0.1"),
        (lambda: Battery(levels=40), "Battery.levels is 40"),
        (lambda: Battery().losses(np.zeros((3, 23))), "[3, 23]"),
    ],
)
def test_refusals(wrong: Callable[[], object], where: str) -> None:
    check_refusal(wrong, where)


def test_the_prices_are_whole_days_with_the_storm() -> None:
    day_ahead = ercot_prices()
    assert day_ahead.prices.shape == (728, 24)
    assert len(day_ahead.dates) == 728
    costliest = int(day_ahead.prices.max(axis=1).argmax())
    assert day_ahead.dates[costliest].startswith("2021-02-1")
    assert day_ahead.prices.max() > 8000
    assert {"2021-03-14", "2022-03-13"}.isdisjoint(day_ahead.dates)
    assert not np.array_equal(ercot_prices(HUBS[1]).prices, day_ahead.prices)


def test_an_unknown_hub_is_refused() -> None:
    check_refusal(lambda: ercot_prices("HB_NOWHERE"), "HB_NOWHERE")
