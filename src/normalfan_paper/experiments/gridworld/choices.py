"""What the paper leaves open, what we took, and what else one could take."""

from __future__ import annotations

from normalfan_paper.experiment import Choice
from normalfan_paper.experiments.gridworld.settings import FLOOR, FREE_CAP, RADIUS, SWEPT_CAP

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
        "that the gain over mirror descent is there with a floor of 0.01 or 0.001, and not without one",
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
        "all three kinds are run, in both directions of the divergence; the step size is an upper bound of "
        "the "
        f"step, {SWEPT_CAP:g} as in the sweep",
        (
            "at every state, averaged over the trajectory, or summed over it",
            "KL(new ‖ old), or KL(old ‖ new) along the same natural gradient, as TRPO's line search has it",
            f"a step up to {FREE_CAP:g}, which hardly ever binds",
        ),
        ("gridworld/trust-region", "gridworld/trust-region-free-step", "gridworld/lowest-free-step"),
        "that with a free step the kind summed over the trajectory loses to the thresholded update and the "
        "kind "
        "at every state beats it",
    ),
    Choice(
        "gridworld/visits",
        "Does mirror descent weigh a state by how often it is visited?",
        "no: rarely visited states learn as fast as the others",
        ("MirrorDescent(visit_weighted=True), which is offered and not run here",),
        (),
    ),
    Choice(
        "gridworld/radii",
        "Which confidence radii β(h,s,a) has the near set?",
        "one threshold for all: under full information nothing is uncertain, and the paper sweeps one number",
        ("ThresholdedMirrorDescent(threshold=c·β), which takes an array and is not run here",),
        (),
    ),
    Choice(
        "gridworld/sweep",
        "Only the ends of the sweeps are given.",
        "η in 0.04, 0.08, 0.15, 0.3, 0.6 and thresholds in 0.02, 0.06, 0.10, 0.14, 0.18; each method "
        "at the setting of least mean regret, scenario by scenario",
        (
            "η = 2.5, 10, 40, 160 for mirror descent and, at the least threshold, for the thresholded update",
            "the previous-face tracker, with equals as they were before",
        ),
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
)
