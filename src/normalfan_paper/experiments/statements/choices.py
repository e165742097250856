"""What the paper leaves open, what we took, and what else one could take."""

from __future__ import annotations

from normalfan_paper.experiment import Choice

CHOICES = (
    Choice(
        "statements/toll-node",
        "What does action 0 at the toll node of the early instance do?",
        "it pays γ and joins the expensive line",
        ("it is free and joins the cheap line", "it is free and joins the expensive line"),
        ("statements/thm-varsep/construction",),
    ),
    Choice(
        "statements/ratio",
        "What is the price-to-trigger ratio that stays near two?",
        "all three readings are computed and shown side by side",
        ("price over change", "change over price, lead restored", "late price over early price, change 2Hγ"),
        ("statements/rem-twomdps/two",),
    ),
    Choice(
        "statements/omega",
        "Which constant does Ω hide in the suppression factor?",
        "1 − 1/e, the one that η(g+λ) ≤ 1 gives",
        ("another constant: it moves how many settings fail, while a ceiling stays",),
        ("statements/prop-gate/speed",),
    ),
    Choice(
        "statements/range",
        "Of which round is B the range, in the bound of the gate?",
        "of each round that is counted: B_t inside the sum",
        ("the largest over all rounds, outside", "that of one round, as the formula reads"),
        ("statements/prop-gate",),
    ),
    Choice(
        "statements/mixing",
        "How does an entropic selector start from a vertex, where its divergence is infinite?",
        "one hundredth of the uniform policy is mixed into z",
        ("nothing is mixed in", "a Euclidean divergence, which is finite everywhere"),
        ("statements/prop-bregsel/finite",),
    ),
)
