"""What is run: the paper's table, the settings beyond it, and the choices that the paper leaves open.

A cell is one scenario, one seed (or a few) and one *part*:

    sweep         mirror descent and the thresholded update, in the paper's sweep and beyond; the tracker
    optimistic    optimistic mirror descent over the same step sizes
    trust         one kind of trust region with one cap on its step, for eight seeds at a time
    recorded      some of the sweep's settings with a look at every episode
    alternative   a reduced sweep under another choice: floor, place of the penalty, noise, scale, driver
"""

from __future__ import annotations

from itertools import product
from typing import Any

from normalfan_paper.experiment import Choice, Scale, Settings
from normalfan_paper.simulation import MirrorSetting

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
CAPS = (0.6, 10.0)  # of a trust region's step: the largest of the sweep, and one that hardly ever binds
FLOOR = 1e-3
# The previous-face tracker as a limit of mirror descent: all mass on what the last loss made optimal, and
# among equals as it was before.
TRACKING = MirrorSetting(1e6, driven_by="optimal", floor=1e-9)
BINS, LAYER_BLOCKS = 50, 6
SEEDS_AT_ONCE = 8
ALTERNATIVE_SEEDS = 4

# What is changed, by the name of the alternative; OURS is the sweep's.
OURS = "ours"
ALTERNATIVES: dict[str, dict[str, Any]] = {
    "floor 0": {"floor": 0.0},
    "floor 0.01": {"floor": 1e-2},
    "penalty inside": {"penalty_inside_step": True},
    "noise 0.1": {"noise": 0.1},
    "noise 0.3": {"noise": 0.3},
    "losses ×0.1": {"scale": 0.1},
    "optimal values": {"driven_by": "optimal"},
}


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
    few = range(min(scale.seeds, ALTERNATIVE_SEEDS))
    found: list[Settings] = []
    for scenario in SCENARIOS:
        for part, seed in product(("sweep", "optimistic", "recorded"), range(scale.seeds)):
            found.append({"part": part, "scenario": scenario, "seeds": [seed], "variant": OURS, **common})
        for kind, cap, first in product(KINDS, CAPS, range(0, scale.seeds, SEEDS_AT_ONCE)):
            seeds = list(range(first, min(first + SEEDS_AT_ONCE, scale.seeds)))
            trust = {"kind": kind, "cap": cap}
            found.append(
                {"part": "trust", "scenario": scenario, "seeds": seeds, "variant": OURS, **trust, **common}
            )
        for variant, seed in product(ALTERNATIVES, few):
            found.append(
                {"part": "alternative", "scenario": scenario, "seeds": [seed], "variant": variant, **common}
            )
    return found


CHOICES = (
    Choice(
        "gridworld/losses",
        "The dynamics, the losses and how they move are named but not defined.",
        "deterministic moves, start at the centre, off the grid means staying, losses in [0, 1]; a goal on a "
        "circle of period 600, a field that turns as slowly, a fifth of the cells costly and redrawn every "
        "100 episodes, two opposite goals whose weights swing with period 300; seeds vary periods by a third",
        ("losses a tenth as large",),
        ("gridworld/scale",),
    ),
    Choice(
        "gridworld/floor",
        "Is there a least probability of an action? None is named, and without one log-odds grow "
        "without bound.",
        f"{FLOOR:g}, mixed into every policy after every step",
        ("0", "0.01"),
        ("gridworld/floor",),
    ),
    Choice(
        "gridworld/penalty",
        "The text's penalty stands outside the step size, the proof's inside.",
        "outside, as in the text",
        ("inside",),
        ("gridworld/penalty-place",),
    ),
    Choice(
        "gridworld/trust-region",
        f"Which divergence does α = {RADIUS:g} bound, and what does the step size do in a trust region?",
        "all three kinds are run; the step size is an upper bound of the step, 0.6 or 10, whichever "
        "is better",
        ("at every state", "averaged over the trajectory", "summed over the trajectory"),
        ("gridworld/trust-region",),
    ),
    Choice(
        "gridworld/sweep",
        "Only the ends of the sweeps are given.",
        "η in 0.04, 0.08, 0.15, 0.3, 0.6 and thresholds in 0.02, 0.06, 0.10, 0.14, 0.18; each method "
        "at the setting of least mean regret, scenario by scenario",
        ("η = 2.5, 10, 40, 160 for mirror descent and, at the least threshold, for the thresholded update",
         "the previous-face tracker, with equals as they were before"),
        ("gridworld/step-sizes", "gridworld/tracker"),
    ),
    Choice(
        "gridworld/information",
        "Does the learner see the loss it is judged on?",
        "yes, after the episode; the near set is that of the loss just seen",
        ("Gaussian noise of 0.1 or 0.3 on every loss seen",),
        ("gridworld/noise",),
    ),
    Choice(
        "gridworld/walls",
        "What is occupancy mass near the walls?",
        "expected share of steps on actions with 0 < A* ≤ 0.1",
        ("A* ≤ 0.1", "states that have an action with 0 < A* ≤ 0.1"),
        ("gridworld/wall-mass",),
    ),
)  # fmt: skip
