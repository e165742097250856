"""One cell: a scenario's losses are drawn, learners are run on them, and totals are kept."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan.pricing.stream import price_stream
from normalfan.problem.arrays import FloatArray
from normalfan.problem.losses import ArrayLosses
from normalfan.problem.mdp import MDP
from normalfan_paper.environments.gridworlds import (
    boundary_crossing,
    changing_obstacles,
    gridworld,
    moving_goal,
    rotating_field,
)
from normalfan_paper.experiment import Settings
from normalfan_paper.experiments.gridworld.settings import (
    ALTERNATIVES,
    BINS,
    ETAS,
    ETAS_BEYOND,
    FLOOR,
    LAYER_BLOCKS,
    PAIR,
    PAIRED,
    POOL,
    RADIUS,
    SCENARIOS,
    TRACKING,
    alternative_settings,
    recorded_settings,
    sweep_settings,
    trust_method,
)
from normalfan_paper.simulation.combined_runs import simulate_combination
from normalfan_paper.simulation.mirror_runs import (
    MirrorSetting,
    record_mirror_descent,
    simulate_mirror_descent,
    simulate_noisy_mirror_descent,
)
from normalfan_paper.simulation.trust_runs import TrustSetting, simulate_trust_region

if TYPE_CHECKING:
    import polars

LOSSES: dict[str, Callable[..., FloatArray]] = dict(
    zip(SCENARIOS, (moving_goal, rotating_field, changing_obstacles, boundary_crossing), strict=True)
)
COLUMNS = (
    "part",
    "scenario",
    "episodes",
    "variant",
    "seed",
    "method",
    "eta",
    "threshold",
    "penalty",
    "measure",
    "bin",
    "value",
)
Line = tuple[Any, ...]  # COLUMNS from "seed" on


def run_cell(settings: Settings) -> polars.DataFrame:
    """The rows of one cell: a measure of a method's run with one setting, for one seed."""
    import polars as pl

    mdp = problem(settings)
    lines = PARTS[settings["part"]](mdp, settings)
    cell = tuple(settings[column] for column in COLUMNS[:4])
    text, whole, number = pl.String, pl.Int64, pl.Float64
    kinds = (text, text, whole, text, whole, text, number, number, number, text, whole, number)
    return pl.DataFrame(
        [cell + line for line in lines], schema=dict(zip(COLUMNS, kinds, strict=True)), orient="row"
    )


def problem(settings: Settings) -> MDP:
    centre = settings["side"] // 2
    return gridworld(settings["side"], settings["horizon"], (centre, centre))


def scenario_losses(settings: Settings, seed: int) -> FloatArray:
    """[T, S, A]: every seed is a problem of its own."""
    place = SCENARIOS.index(settings["scenario"])
    rng = np.random.default_rng(np.random.SeedSequence([place, seed]))
    return LOSSES[settings["scenario"]](settings["side"], settings["episodes"], rng=rng)


def _sweep(mdp: MDP, settings: Settings) -> Iterable[Line]:
    (seed,) = settings["seeds"]
    stream = ArrayLosses(scenario_losses(settings, seed), axes="TSA")
    motion = price_stream(mdp, stream, detail="prices")
    runs = [*(replace(setting, floor=FLOOR) for setting in sweep_settings()), TRACKING]
    paid = simulate_mirror_descent(mdp, stream, runs)
    yield from _totals(seed, runs, paid, motion.values)
    first = float(paid[0, 0] - motion.values[0])  # every learner begins with the uniform policy
    yield _line(seed, "tracker", first + motion.total, measure="first round and price")


def _optimistic(mdp: MDP, settings: Settings) -> Iterable[Line]:
    (seed,) = settings["seeds"]
    stream = ArrayLosses(scenario_losses(settings, seed), axes="TSA")
    runs = [MirrorSetting(eta, optimistic=True, floor=FLOOR) for eta in (*ETAS, *ETAS_BEYOND[:3])]
    paid = simulate_mirror_descent(mdp, stream, runs)
    yield from _totals(seed, runs, paid, _best_values(mdp, stream))


def _trust(mdp: MDP, settings: Settings) -> Iterable[Line]:
    seeds = settings["seeds"]
    losses = np.stack([scenario_losses(settings, seed) for seed in seeds])
    whole = np.broadcast_to(losses[:, :, None], (*losses.shape[:2], *mdp.shape))
    run = TrustSetting(FLOOR, settings["cap"], RADIUS, settings["kind"], settings["direction"])
    paid = simulate_trust_region(mdp, whole, [run] * len(seeds))
    for seed, own, spent in zip(seeds, losses, paid, strict=True):
        regret = spent.sum() - _best_values(mdp, ArrayLosses(own, axes="TSA")).sum()
        yield _line(seed, trust_method(run.kind, run.direction), float(regret), eta=run.eta)


def _recorded(mdp: MDP, settings: Settings) -> Iterable[Line]:
    (seed,) = settings["seeds"]
    stream = ArrayLosses(scenario_losses(settings, seed), axes="TSA")
    runs = [replace(setting, floor=FLOOR) for setting in recorded_settings()]
    record = record_mirror_descent(mdp, stream, runs)
    by_episode = {
        "regret": record.regret_by_step.sum(axis=2),
        "near walls": record.near_walls / mdp.horizon,
        "near optimal": record.near_optimal / mdp.horizon,
        "thin states": record.at_thin_states / mdp.horizon,
    }
    layers = record.regret_by_step.sum(axis=1)  # [runs, H]
    for i, run in enumerate(runs):
        for measure, series in by_episode.items():
            for k, part in enumerate(np.array_split(series[i], min(BINS, series.shape[1]))):
                yield _line(seed, _method(run), float(part.mean()), run, measure, k)
        for k, block in enumerate(np.array_split(layers[i], min(LAYER_BLOCKS, layers.shape[1]))):
            yield _line(seed, _method(run), float(block.sum()), run, "regret by layers", k)


def _alternative(mdp: MDP, settings: Settings) -> Iterable[Line]:
    (seed,) = settings["seeds"]
    changes = dict(ALTERNATIVES[settings["variant"]])
    noise, scale = changes.pop("noise", None), changes.pop("scale", 1.0)
    means = scale * scenario_losses(settings, seed)
    judged = ArrayLosses(means, axes="TSA")
    runs = [replace(setting, **{"floor": FLOOR, **changes}) for setting in alternative_settings()]
    best = _best_values(mdp, judged)
    if noise is None:
        yield from _totals(seed, runs, simulate_mirror_descent(mdp, judged, runs), best)
        return
    runs.append(TRACKING)
    if noise:
        place = SCENARIOS.index(settings["scenario"])
        rng = np.random.default_rng(np.random.SeedSequence([place, seed, 1]))
        seen = ArrayLosses(means + noise * rng.standard_normal(means.shape), axes="TSA")
        paid, apparent = simulate_noisy_mirror_descent(mdp, seen, runs, judged=judged)
    else:
        paid = apparent = simulate_mirror_descent(mdp, judged, runs)
    yield from _totals(seed, runs, paid, best)
    yield from _combined(seed, runs, apparent, paid, best)


PARTS: dict[str, Callable[[MDP, Settings], Iterable[Line]]] = {
    "sweep": _sweep,
    "optimistic": _optimistic,
    "trust": _trust,
    "recorded": _recorded,
    "alternative": _alternative,
}


def _combined(
    seed: int, runs: Sequence[MirrorSetting], seen: FloatArray, paid: FloatArray, best: FloatArray
) -> Iterable[Line]:
    """Two combinations without a share and with one of 1/T: regret, promise, and how near it came to it."""
    pools = {
        PAIR: [replace(PAIRED, floor=FLOOR), TRACKING],
        POOL: [*(replace(setting, floor=FLOOR) for setting in alternative_settings()), TRACKING],
    }
    for name, members in pools.items():
        places = [runs.index(member) for member in members]
        for share in (0.0, 1.0 / len(best)):
            run = simulate_combination(seen[places], paid[places], share=share)
            method = f"combined, {name}" + (", with a share" if share else "")
            yield _line(seed, method, float((run.paid - best).sum()))
            yield _line(seed, method, run.bound, measure="bound")
            yield _line(seed, method, run.slack, measure="slack of the bound")
            least = (paid[places] - best).sum(axis=1).min()
            yield _line(seed, method, float(least), measure="best member's regret")


def _best_values(mdp: MDP, stream: ArrayLosses) -> FloatArray:
    return price_stream(mdp, stream, detail="prices").values


def _totals(seed: int, runs: Sequence[MirrorSetting], paid: FloatArray, best: FloatArray) -> Iterable[Line]:
    for run, regret in zip(runs, (paid - best).sum(axis=1), strict=True):
        yield _line(seed, "tracker" if run is TRACKING else _method(run), float(regret), run)


def _line(
    seed: int,
    method: str,
    value: float,
    run: MirrorSetting | None = None,
    measure: str = "total regret",
    place: int | None = None,
    *,
    eta: float | None = None,
) -> Line:
    if run is None or run is TRACKING:
        return seed, method, eta, None, None, measure, place, value
    thresholded = np.isfinite(run.threshold)
    edge, penalty = (run.threshold, run.penalty) if thresholded else (None, None)
    return seed, method, run.eta, edge, penalty, measure, place, value


def _method(run: MirrorSetting) -> str:
    if run.optimistic:
        return "optimistic"
    return "thresholded" if np.isfinite(run.threshold) else "mirror descent"
