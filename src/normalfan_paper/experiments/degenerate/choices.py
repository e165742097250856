"""What the paper leaves open, what we took, and what else one could take."""

from __future__ import annotations

from normalfan_paper.experiment import Choice

CHOICES = (
    Choice(
        "degenerate/motion",
        "What moves with the switch probability 0.025?",
        "each bit of the hidden string by itself",
        ("the whole face: string and length are redrawn together, and held otherwise",),
        ("degenerate/sticky-level", "degenerate/lexicographic-level", "degenerate/switch"),
        "that bits flipping by themselves come near the paper's levels, and whole faces cannot",
    ),
    Choice(
        "degenerate/redraw",
        "How often does the length of the prefix change?",
        "it is redrawn from 1 to 18 in one round of four",
        ("in one of eight", "in one of two", "in every round"),
        ("degenerate/sticky-level", "degenerate/lexicographic-level", "degenerate/random-level"),
        "that one in four comes near 0.062, 0.109 and 0.110; the level moves with it, the order does not",
    ),
    Choice(
        "degenerate/charge",
        "What does a path pay that leaves the prefix?",
        "γ on each step that the prefix has left; the steps after it are free for all",
        ("γ on each step that the tree has left", "γ for each wrong bit of the prefix"),
        ("degenerate/sticky-level", "degenerate/lexicographic-level", "degenerate/random-level"),
    ),
    Choice(
        "degenerate/sticky",
        "In which geometry does the sticky selector stay near its last choice?",
        "three are shown: the nearest occupancy, the least relative entropy (one hundredth mixed in), as the "
        "proposition allows both, and the nearest action string",
        (),
        ("degenerate/sticky-level", "degenerate/order"),
    ),
    Choice(
        "degenerate/random",
        "What is a uniform point of a face?",
        "both are shown: a vertex by fair coins, and a policy drawn uniformly at every node",
        (),
        ("degenerate/random-mean",),
    ),
)
