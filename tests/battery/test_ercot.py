"""The prices that the battery trades on."""

from __future__ import annotations

import numpy as np
from sentences import check_refusal

from normalfan.battery.ercot import HUBS, ercot_prices


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
