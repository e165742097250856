"""What the paper leaves open, what we took, and what else one could take."""

from __future__ import annotations

from normalfan_paper.experiment import Choice

CHOICES = (
    Choice(
        "simplex/drift",
        "How does the loss move within a cone?",
        "every arm but the best takes Gaussian steps of standard deviation γ, reflected into [γ, 1]",
        (
            "all arms together take a step of Euclidean length γ",
            "every arm is drawn again in every round",
            "a common offset takes Gaussian steps of standard deviation γ",
        ),
        ("simplex/within-cone-variation",),
    ),
    Choice(
        "simplex/norm",
        "In which norm is the variation measured?",
        "all three of L1, L2 and L∞ are shown",
        (),
        ("simplex/within-cone-variation", "simplex/tracker-variation", "simplex/pooled"),
    ),
    Choice(
        "simplex/rate",
        "How often does the best arm change in the two crossing regimes?",
        "in one round of two",
        (
            "in one round of 50",
            "in one round of 10",
            "in every round",
            "each trial has a rate of its own, drawn uniformly from [0, 1]",
        ),
        ("simplex/tracker-price", "simplex/tracker-variation", "simplex/pooled", "simplex/geometry-blind"),
    ),
    Choice(
        "simplex/between",
        "What does the loss do between crossings?",
        "it is held",
        ("all costs are drawn again in every round, and the best arm stays",),
        ("simplex/tracker-variation", "simplex/pooled"),
    ),
    Choice(
        "simplex/best-setting",
        "Over what is the best step size chosen?",
        "for each algorithm, regime and number of arms, by the mean regret over seeds and trials",
        ("for each algorithm once",),
        ("simplex/pooled",),
    ),
)
