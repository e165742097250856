"""Names for indices: carried, stored, refused when they do not fit."""

from __future__ import annotations

import numpy as np
import pytest
from sentences import check_refusal

import normalfan as nf
from normalfan.problem.factored import FactoredLosses
from normalfan.problem.losses import ArrayLosses, names_of_rounds
from normalfan.problem.mdp import Labels, mdp_from_arrays, mdp_to_arrays

NEXTS = np.array([[0, 1], [1, 0]])
FULL = Labels(steps=("dawn", "dusk"), states=("a", "b"), actions=("left", "right"))


def test_names_travel_with_the_problem_and_take_no_part_in_it() -> None:
    named, plain = nf.MDP(NEXTS, 0, 2, labels=FULL), nf.MDP(NEXTS, 0, 2)
    assert (named.labels.step(1), named.labels.state(0), named.labels.action(1)) == ("dusk", "a", "right")
    assert (plain.labels.step(1), plain.labels.state(0), plain.labels.action(1)) == ("1", "0", "1")
    assert named.fingerprint == plain.fingerprint


@pytest.mark.parametrize("labels", [FULL, Labels(states=("a", "b")), Labels()])
def test_names_are_stored(labels: Labels) -> None:
    stored = mdp_to_arrays(nf.MDP(NEXTS, 0, 2, labels=labels))
    assert mdp_from_arrays(stored).labels == labels


@pytest.mark.parametrize(
    ("labels", "where"),
    [
        (Labels(states=("a", "b", "c")), "labels.states hold 3"),
        (Labels(actions=("go", "go")), "labels.actions[1]"),
        (Labels(steps=()), "labels.steps hold 0"),
    ],
)
def test_names_that_do_not_fit_are_refused(labels: Labels, where: str) -> None:
    check_refusal(lambda: nf.MDP(NEXTS, 0, 2, labels=labels), where)


def test_how_a_problem_is_shown() -> None:
    named = nf.MDP(NEXTS, 0, 2, labels=Labels(states=("a", "b<c")))
    assert repr(FULL) == "Labels(2 steps, 2 states, 2 actions)"
    assert repr(named.labels) == "Labels(2 states)"
    assert "<td>state a</td>" in named._repr_html_()
    assert "<td>state b&lt;c</td>" in nf.MDP(NEXTS, 1, 2, labels=named.labels)._repr_html_()
    assert "<td>2 states</td>" in nf.MDP(NEXTS, [0.5, 0.5], 2)._repr_html_()


def test_rounds_may_have_names() -> None:
    losses = ArrayLosses(np.zeros((2, 2, 2, 2)), round_names=["monday", "tuesday"])
    assert names_of_rounds(losses) == names_of_rounds(nf.rewards(losses)) == ("monday", "tuesday")
    assert names_of_rounds(ArrayLosses(np.zeros((2, 2, 2, 2)))) is None
    check_refusal(
        lambda: FactoredLosses(np.zeros((2, 1)), np.zeros((1, 2, 2, 2)), round_names=["monday"]),
        "round_names hold 1",
    )
