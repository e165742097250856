"""What is run: the paper's table, the settings beyond it, and the choices that the paper leaves open.

A cell is one scenario, one seed (or a few) and one *part*:

    alternative   a reduced sweep under another choice: floor, place of the penalty, scale, noise in the
                  losses seen; where the choice is about noise also the tracker, and combinations of them all
    sweep         mirror descent and the thresholded update, in the paper's sweep and beyond; the tracker
    trust         one kind of trust region, one direction of its divergence and one cap on its step, for eight
                  seeds at a time; the second direction for a few only
    optimistic    optimistic mirror descent over the same step sizes
    recorded      some of the sweep's settings with a look at every episode
"""

from __future__ import annotations

from itertools import product
from typing import Any

from normalfan_paper.experiment import Scale, Settings
from normalfan_paper.simulation.mirror_runs import MirrorSetting

SCENARIOS = ("moving goal", "rotating field", "changing obstacles", "boundary crossing")
SHARP = ("changing obstacles", "boundary crossing")  # the optimum jumps; in the other two it drifts
SIDE, HORIZON, EPISODES = 15, 30, 3000
QUICK_SIDE, QUICK_HORIZON, QUICK_EPISODES = 7, 12, 500

ETAS = (0.04, 0.08, 0.15, 0.3, 0.6)
ETAS_BEYOND = (2.5, 10.0, 40.0, 160.0)
THRESHOLDS = (0.02, 0.06, 0.10, 0.14, 0.18)
PENALTIES = (0.35, 0.7)
RADIUS = 0.12
KINDS = ("per state", "average", "trajectory")
DIRECTIONS = ("new from old", "old from new")  # KL(new ‖ old), KL(old ‖ new)
SWEPT_CAP, FREE_CAP = ETAS[-1], 10.0  # of a trust region's step: the sweep's largest; one that hardly binds
CAPS = (SWEPT_CAP, FREE_CAP)
FLOOR = 1e-3
# The previous-face tracker as a limit of mirror descent: all mass on what the last loss made optimal, and
# among equals as it was before.
TRACKING = MirrorSetting(1e6, driven_by="optimal", floor=1e-9)
BINS, LAYER_BLOCKS = 50, 6
SEEDS_AT_ONCE = 8
ALTERNATIVE_SEEDS = 4  # of other readings and of what goes beyond the paper

# What is changed, by the name of the alternative; OURS is the sweep's.
OURS = "ours"
ALTERNATIVES: dict[str, dict[str, Any]] = {
    "no noise": {"noise": 0.0},
    "noise 0.1": {"noise": 0.1},
    "noise 0.3": {"noise": 0.3},
    "floor 0": {"floor": 0.0},
    "floor 0.01": {"floor": 1e-2},
    "penalty inside": {"penalty_inside_step": True},
    "losses ×0.1": {"scale": 0.1},
}

# Combinations of learners: who is combined.
PAIR, POOL = "tracker and thresholded", "tracker and all settings"
PAIRED = MirrorSetting(ETAS[-1], THRESHOLDS[2], PENALTIES[1])  # beside the tracker: the middle threshold


def trust_method(kind: str, direction: str) -> str:
    """What a trust region is called in the data."""
    return f"trust region, {kind}, {direction}"


def thresholded_beyond() -> list[MirrorSetting]:
    """The thresholded update at step sizes beyond the sweep, at the heavier penalty."""
    return [MirrorSetting(eta, THRESHOLDS[0], PENALTIES[1]) for eta in ETAS_BEYOND]


def sweep_settings() -> list[MirrorSetting]:
    """The paper's sweep of mirror descent and the thresholded update, and beyond; no floor yet."""
    plain = [MirrorSetting(eta) for eta in (*ETAS, *ETAS_BEYOND)]
    thresholded = [MirrorSetting(*setting) for setting in product(ETAS, THRESHOLDS, PENALTIES)]
    return plain + thresholded + thresholded_beyond()


def alternative_settings() -> list[MirrorSetting]:
    """Those of the sweep that an alternative is run with."""
    plain = [MirrorSetting(eta) for eta in (*ETAS[2:], *ETAS_BEYOND)]
    thresholded = [MirrorSetting(*s) for s in product(ETAS[3:], THRESHOLDS[::2], PENALTIES)]
    return plain + thresholded + thresholded_beyond()


def recorded_settings() -> list[MirrorSetting]:
    """Mirror descent and the thresholded update at the sweep's largest step, where both are best."""
    eta = ETAS[-1]
    strong = [MirrorSetting(eta, threshold, PENALTIES[1]) for threshold in THRESHOLDS]
    weak = [MirrorSetting(eta, threshold, PENALTIES[0]) for threshold in THRESHOLDS[::4]]
    return [MirrorSetting(eta), *strong, *weak]


def cells(scale: Scale) -> list[Settings]:
    size = (QUICK_SIDE, QUICK_HORIZON, QUICK_EPISODES) if scale.quick else (SIDE, HORIZON, EPISODES)
    common = dict(zip(("side", "horizon", "episodes"), size, strict=True))
    found: list[Settings] = []

    def add(part: str, scenario: str, seeds: list[int], variant: str = OURS, **more: Any) -> None:
        cell = {"part": part, "scenario": scenario, "seeds": seeds, "variant": variant}
        found.append(cell | more | common)

    few = min(scale.seeds, ALTERNATIVE_SEEDS)
    for variant, scenario, seed in product(ALTERNATIVES, SCENARIOS, range(few)):
        add("alternative", scenario, [seed], variant)
    for direction, cap, kind, scenario in product(DIRECTIONS, CAPS, KINDS, SCENARIOS):
        number = scale.seeds if direction == DIRECTIONS[0] else few
        for first in range(0, number, SEEDS_AT_ONCE):
            seeds = list(range(first, min(first + SEEDS_AT_ONCE, number)))
            add("trust", scenario, seeds, kind=kind, direction=direction, cap=cap)
    for part, scenario, seed in product(("sweep", "optimistic", "recorded"), SCENARIOS, range(scale.seeds)):
        add(part, scenario, [seed])
    return found
