"""Actions that a problem does not allow: how it is told, checked and stored."""

from __future__ import annotations

import numpy as np
import pytest

import normalfan as nf
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import mdp_from_arrays, mdp_to_arrays


def corridor(**options) -> nf.MDP:
    """Stay, or move on for good."""
    return nf.MDP([[0, 1], [1, 1]], initial=0, horizon=2, **options)


def test_masks_are_read_for_one_step_or_for_every_step() -> None:
    mask = np.array([[True, False], [True, True]])
    one, every = corridor(allowed=mask), corridor(allowed=[mask, mask])
    np.testing.assert_array_equal(one.allowed, every.allowed)
    assert one.fingerprint == every.fingerprint != corridor().fingerprint
    assert not one.allowed.flags.writeable
    np.testing.assert_array_equal(one.reachable, [[True, False], [True, False]])
    assert nf.whole_polytope(one).dimension == 0
    assert corridor(allowed=np.ones((2, 2), dtype=bool)).fingerprint == corridor().fingerprint


def test_what_is_not_allowed_costs_infinitely_much_and_nothing_else_changes() -> None:
    loss = np.arange(8.0).reshape(2, 2, 2) * -0.0
    mask = np.array([[True, False], [True, True]])
    read = as_loss(corridor(allowed=mask), loss)
    assert (read == np.inf).tolist() == (~np.broadcast_to(mask, loss.shape)).tolist()
    assert np.signbit(read[0, 0, 0]) == np.signbit(loss[0, 0, 0])
    for wrong in (np.nan, -np.inf):
        loss[0, 0, 1] = wrong
        with pytest.raises(
            nf.InputError, match=rf"loss\[0, 0, 1\] is {wrong}, but every loss must be a number"
        ):
            as_loss(corridor(allowed=mask), loss)


def test_problems_are_stored_with_what_they_allow() -> None:
    mdp = corridor(allowed=[[True, False], [True, True]])
    again = mdp_from_arrays(mdp_to_arrays(mdp))
    assert again.fingerprint == mdp.fingerprint
    np.testing.assert_array_equal(again.allowed, mdp.allowed)
    assert "allowed" not in mdp_to_arrays(corridor())


@pytest.mark.parametrize(
    ("mask", "sentence"),
    [
        ([[1, 0], [1, 1]], "allowed has dtype int64, but must say true or false of every action"),
        ([True, False], r"allowed has shape \[2\], but the problem needs \[2, 2, 2\], or \[2, 2\]"),
        (
            [[True, True], [False, False]],
            "allowed leaves no action at step 1, state shop, but some policy can be there: allow one",
        ),
    ],
)
def test_masks_that_cannot_be_meant_are_refused(mask: list, sentence: str) -> None:
    with pytest.raises(nf.InputError, match=sentence):
        corridor(allowed=mask, labels=nf.Labels(states=("home", "shop")))


def test_a_state_where_nobody_can_be_needs_no_action() -> None:
    assert corridor(allowed=[[True, False], [False, False]]).reachable.sum() == 2
