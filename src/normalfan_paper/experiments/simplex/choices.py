"""What the paper leaves open, what we took, and what else one could take."""

from __future__ import annotations

from normalfan_paper.experiment import Choice

MAPPED = ("simplex/tracker-variation", "simplex/pooled", "simplex/all-at-once")

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
        ("simplex/within-cone-variation", *MAPPED),
        "that this drift comes near 2.6e3 in L∞",
    ),
    Choice(
        "simplex/norm",
        "In which norm is the variation measured?",
        "all three of L1, L2 and L∞ are shown",
        (),
        ("simplex/within-cone-variation", *MAPPED),
    ),
    Choice(
        "simplex/rate",
        "How often does the best arm change in the two crossing regimes?",
        "in one round of two",
        ("in one round of 500", "of 250", "of 50", "of 10", "in every round"),
        MAPPED,
        "of our rate nothing; that 0.004 comes nearer, from an earlier search",
    ),
    Choice(
        "simplex/between",
        "What does the loss do between crossings?",
        "it is held",
        (
            "the other arms take Gaussian steps of standard deviation γ in every round",
            "their costs are drawn again in every round",
        ),
        MAPPED,
    ),
    Choice(
        "simplex/wall",
        "What do the other arms do while two change places at a wall?",
        "they take Gaussian steps of standard deviation γ/10, like the two",
        ("steps of standard deviation γ", "they are drawn again in every round"),
        MAPPED,
        "of ours nothing; that steps of γ come nearer, from an earlier search",
    ),
)
