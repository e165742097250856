"""What the paper leaves open, what we took, and what else one could take."""

from __future__ import annotations

from normalfan_paper.experiment import Choice

CHOICES = (
    Choice(
        "tree/dwell",
        "When do crossings come?",
        "with the same probability in every round, so that dwell times vary",
        ("at regular intervals",),
        ("tree/predictors",),
    ),
    Choice(
        "tree/suffix",
        "What becomes of the path below the layer of a crossing?",
        "the whole suffix turns, as the appendix says of the separation's construction",
        ("it is redrawn", "it is kept: a single bit flips"),
        ("tree/predictors", "tree/together"),
    ),
    Choice(
        "tree/layer",
        "At which layer does a crossing fall?",
        "at one layer for all crossings of a sequence, drawn for the sequence",
        ("at any, drawn again for each crossing",),
        ("tree/predictors",),
    ),
    Choice(
        "tree/rate",
        "How often does a sequence cross?",
        "in one round of 40, the switch probability of the benchmark with degenerate faces",
        ("at a rate of its own, between one round of 200 and one of 10",),
        ("tree/predictors",),
    ),
    Choice(
        "tree/losses",
        "What does a path pay?",
        "γ on every step from its first wrong one on (node losses)",
        ("γ for each wrong bit (separable losses): mirror descent is then a Hedge for each layer",),
        ("tree/predictors",),
    ),
)
