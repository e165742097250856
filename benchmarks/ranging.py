"""How far prices may move: the battery's ranges beside HiGHS, bisection and attacks; writes ranging.json.

    python benchmarks/ranging.py

HiGHS solves the day as a linear program over occupancies, in which each price is the cost of one variable
(the energy bought in its hour), and ranges that cost: `getRanging`. It ranges a basis, which is another
question: never wider than the truth, and narrower wherever the basis changes and the plan does not.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import highspy
import numpy as np
from scipy import sparse

import normalfan as nf
from normalfan.battery import Battery, ercot_prices

HERE = Path(__file__).parent
RANGED, COMPARED, ATTACKED, ATTACKS = 100, 25, 20, 10_000  # days, days, days, tries a day
HOURS = 24


def least_milliseconds(work: Callable[[], Any], repeats: int = 20) -> float:
    """The least time of several runs: what others do on the machine only adds."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return 1e3 * min(times)


def ends_by_bisection(mdp: nf.MDP, losses: nf.FactoredLosses, found: nf.Ranging, t: int) -> float:
    """The largest relative error of the finite ends within tolerance."""
    theta = losses.coefficients[t]
    units = np.eye(len(theta))[:HOURS]
    moves, ends = np.concatenate([-units, units]), np.abs(found.within - found.now[:, None]).T.reshape(-1)
    moves, ends = moves[np.isfinite(ends)], ends[np.isfinite(ends)]
    low, high = np.zeros(len(ends)), np.full(len(ends), 4 * ends.max())
    for _ in range(45):
        middle = (low + high) / 2
        moved = theta + middle[:, None] * moves
        pairs = np.stack([np.broadcast_to(theta, moved.shape), moved], axis=1).reshape(-1, len(theta))
        priced = nf.price_stream(mdp, nf.FactoredLosses(pairs, losses.features), detail="prices")
        fits = priced.prices[1::2] <= found.tolerance
        low, high = np.where(fits, middle, low), np.where(fits, high, middle)
    return float((np.abs(ends - low) / np.maximum(np.abs(moves @ theta), 1.0)).max())


def worst_attack(
    mdp: nf.MDP, losses: nf.FactoredLosses, t: int, rng: np.random.Generator
) -> dict[str, float]:
    """The largest cost of errors inside the radius, as a share of the tolerance."""
    names = losses.feature_names[:HOURS]
    found = nf.radius(mdp, losses, at=t, directions=names)
    plan = nf.ranging(mdp, losses, at=t, directions=names).today.policy
    taken = losses.features @ nf.occupancy(mdp, plan).reshape(-1)
    moved = np.tile(losses.coefficients[t], (ATTACKS, 1))
    inside, corners = (
        rng.uniform(-1, 1, (ATTACKS // 2, HOURS)),
        rng.choice([-1.0, 1.0], (ATTACKS // 2, HOURS)),
    )
    moved[:, :HOURS] *= 1 + found.lower * np.concatenate([inside, corners])
    values = nf.price_stream(mdp, nf.FactoredLosses(moved, losses.features), detail="prices").values
    paid = moved @ taken - values
    return {"ratio": found.lower / found.upper, "worst": float(paid.max() / found.tolerance)}


def occupancy_program(mdp: nf.MDP, losses: nf.FactoredLosses, t: int) -> highspy.Highs:
    """The linear program of a day: occupancies, and a variable for each feature, costing its coefficient."""
    H, S, A = mdp.shape
    theta, n = losses.coefficients[t], H * S * A
    move = mdp.transitions.csr(0).T
    here = sparse.kron(sparse.eye_array(S), np.ones((1, A)))
    flow = sparse.kron(sparse.eye_array(H), here) - sparse.kron(sparse.eye_array(H, k=-1), move)
    rows = sparse.block_array([[flow, None], [losses.features, -sparse.eye_array(len(theta))]], format="csc")
    start = np.zeros(rows.shape[0])
    start[:S] = mdp.initial
    model = highspy.HighsLp()
    model.num_col_, model.num_row_ = n + len(theta), rows.shape[0]
    model.col_cost_ = np.concatenate([np.zeros(n), theta])
    model.col_lower_ = np.concatenate([np.zeros(n), np.full(len(theta), -highspy.kHighsInf)])
    model.col_upper_ = np.full(n + len(theta), highspy.kHighsInf)
    model.row_lower_ = model.row_upper_ = start
    model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
    model.a_matrix_.start_, model.a_matrix_.index_, model.a_matrix_.value_ = (
        rows.indptr,
        rows.indices,
        rows.data,
    )
    solver = highspy.Highs()
    solver.setOptionValue("output_flag", False)
    solver.passModel(model)
    return solver


def highs_ends(mdp: nf.MDP, losses: nf.FactoredLosses, t: int) -> tuple[np.ndarray, float, float]:
    """The ends [24, 2] that the solver gives, the milliseconds of the solve and those of the ranging."""
    solver = occupancy_program(mdp, losses, t)
    start = time.perf_counter()
    solver.run()
    solved = time.perf_counter()
    _, ranged = solver.getRanging()
    done = time.perf_counter()
    first = int(np.prod(mdp.shape))
    ends = [np.array(side.value_)[first : first + HOURS] for side in (ranged.col_cost_dn, ranged.col_cost_up)]
    return np.stack(ends, axis=1), 1e3 * (solved - start), 1e3 * (done - solved)


def compare(mdp: nf.MDP, losses: nf.FactoredLosses, days: list[int]) -> dict[str, Any]:
    names = losses.feature_names[:HOURS]
    narrower = wider = 0
    solves, rangings = [], []
    for t in days:
        ends, solve, ranging = highs_ends(mdp, losses, t)
        solves.append(solve)
        rangings.append(ranging)
        truth = nf.ranging(mdp, losses, at=t, directions=names, tolerance=0.0).optimal
        slack = 1e-6 * np.maximum(np.abs(losses.coefficients[t, :HOURS, None]), 1.0)
        with np.errstate(invalid="ignore"):  # both are endless
            short = (np.where(np.abs(ends) > 1e15, np.sign(ends) * np.inf, ends) - truth) * [1.0, -1.0]
        narrower += int((np.nan_to_num(short, nan=0.0) > slack).sum())
        wider += int((np.nan_to_num(short, nan=0.0) < -slack).sum())
    return {
        "days": len(days),
        "ends": 2 * HOURS * len(days),
        "narrower_than_the_truth": narrower,
        "wider_than_the_truth": wider,
        "solve_milliseconds": float(np.median(solves)),
        "ranging_milliseconds": float(np.median(rangings)),
        "least_solve_milliseconds": min(solves),
        "least_ranging_milliseconds": min(rangings),
    }


def main() -> None:
    prices = ercot_prices()
    mdp, losses = Battery().mdp(), Battery().losses(prices.prices, round_names=prices.dates)
    names = losses.feature_names[:HOURS]
    day = prices.dates.index("2021-07-01")
    spread = np.linspace(0, len(prices.dates) - 1, RANGED).astype(int).tolist()

    def ends(tolerance: float | str) -> nf.Ranging:
        return nf.ranging(mdp, losses, at=day, directions=names, tolerance=tolerance)

    ends(0.0)
    times = {
        "ends_optimal_and_tolerated": least_milliseconds(lambda: ends("1%")),
        "radius": least_milliseconds(lambda: nf.radius(mdp, losses, at=day, directions=names)),
        "breakpoints_of_one_price": least_milliseconds(
            lambda: nf.breakpoints(mdp, losses, at=day, direction=names[3], within=(-300, 300))
        ),
        "window_of_two_prices": least_milliseconds(
            lambda: nf.regions(mdp, losses, at=day, directions=[names[3], names[17]], window=300.0), 5
        ),
    }
    plans = nf.regions(mdp, losses, at=day, directions=[names[3], names[17]], window=300.0)
    results: dict[str, Any] = {
        "command": "python benchmarks/ranging.py",
        "milliseconds": times,
        "plans_in_the_window": len(plans.polygons),
        "highs": compare(mdp, losses, spread[:: RANGED // COMPARED]),
    }
    print(json.dumps(results, indent=2), flush=True)
    results["bisection"] = {
        tolerance: max(
            ends_by_bisection(
                mdp, losses, nf.ranging(mdp, losses, at=t, directions=names, tolerance=tolerance), t
            )
            for t in spread
        )
        for tolerance in ("0%", "1%")
    }
    print(results["bisection"], flush=True)
    rng = np.random.default_rng(0)
    attacks = [worst_attack(mdp, losses, t, rng) for t in spread[:: RANGED // ATTACKED]]
    results["attacks"] = {
        "days": ATTACKED,
        "tries_a_day": ATTACKS,
        "largest_cost_over_tolerance": max(attack["worst"] for attack in attacks),
        "lower_over_upper_bound_median": float(np.median([attack["ratio"] for attack in attacks])),
        "lower_over_upper_bound_least": min(attack["ratio"] for attack in attacks),
    }
    (HERE / "ranging.json").write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
