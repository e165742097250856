"""The exact price against enumeration of all policies, and the reading of numbers by hand."""

from __future__ import annotations

import dataclasses
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from exact_problems import (
    HALF,
    THIRD,
    Tiny,
    enumerated_mask,
    enumerated_price,
    is_cheapest_old_plan,
    tiny_problems,
    with_entry,
)
from hypothesis import given, settings
from scipy import sparse

from normalfan.errors import InputError
from normalfan.exact.certificate import check_certificate
from normalfan.exact.certify import certify
from normalfan.problem.mdp import MDP


@settings(max_examples=120)
@given(tiny_problems())
def test_price_and_face_agree_with_enumeration(tiny: Tiny) -> None:
    certificate = tiny.certify()
    mask = np.array(certificate.mask)
    assert certificate.price == enumerated_price(tiny)
    assert {tuple(place) for place in np.argwhere(mask).tolist()} == enumerated_mask(tiny)
    assert check_certificate(certificate), check_certificate(certificate).reason


@settings(max_examples=60)
@given(tiny_problems(unit=Fraction(1, 10)))
def test_decimals_read_with_a_bounded_denominator_agree_with_enumeration(tiny: Tiny) -> None:
    certificate = tiny.certify(max_denominator=10)
    assert certificate.price == enumerated_price(tiny)
    assert check_certificate(certificate), check_certificate(certificate).reason


@settings(max_examples=60)
@given(tiny_problems())
def test_the_policy_is_old_optimal_cheapest_and_of_lowest_index(tiny: Tiny) -> None:
    certificate = tiny.certify()
    assert is_cheapest_old_plan(tiny, certificate.policy)
    for h, layer in enumerate(certificate.policy):
        for s, chosen in enumerate(layer):
            for lower in range(chosen or 0):
                policy = with_entry(certificate.policy, (h, s), lower)
                assert not check_certificate(dataclasses.replace(certificate, policy=policy))


def test_every_step_moves_by_its_own_kernel() -> None:
    # One action, three states, a walk 0, 1, 2, 0 that no single kernel takes.
    steps = [[1, 1, 1], [2, 2, 2], [0, 0, 0], [0, 0, 0]]
    walk = MDP(np.array(steps)[:, :, None], initial=0)
    certificate = certify(walk, np.zeros((4, 3, 1)), np.zeros((4, 3, 1)))
    assert [layer.index(0) for layer in certificate.policy] == [0, 1, 2, 0]
    assert check_certificate(certificate)


def test_random_floats_have_a_certificate_close_to_the_float_answer() -> None:
    rng = np.random.default_rng(0)
    H, S, A = 5, 6, 3
    kernels = rng.dirichlet(np.ones(S), size=(H, S, A))
    initial = rng.dirichlet(np.ones(S))
    previous, new = rng.random((2, H, S, A))
    certificate = certify(MDP(kernels, initial), previous, new)

    def best_actions(loss: Any) -> Any:
        after, actions = np.zeros(S), np.zeros((H, S), dtype=int)
        for h in reversed(range(H)):
            candidates = loss[h] + kernels[h] @ after
            after, actions[h] = candidates.min(axis=1), candidates.argmin(axis=1)
        return initial @ after, actions

    value, held = 0.0, best_actions(previous)[1]  # random losses have no ties: one old plan
    visits = initial
    for h in range(H):
        value += visits @ new[h, np.arange(S), held[h]]
        visits = visits @ kernels[h, np.arange(S), held[h]]
    assert float(certificate.price) == pytest.approx(value - best_actions(new)[0], abs=1e-12)
    assert check_certificate(certificate)


def test_a_tie_of_decimals_is_a_tie_only_when_read_as_decimals() -> None:
    # Two steps: 0.1 and then 0.2 along one road, 0.3 and then nothing along the other.
    roads = MDP(np.array([[[0, 0], [1, 1], [0, 1]], [[0, 0], [1, 1], [2, 2]]]), initial=2)
    previous, new = np.zeros((2, 2, 3, 2))
    previous[0, 2], previous[1, 0] = [0.1, 0.3], 0.2
    new[0, 2] = [0.0, 1.0]
    assert certify(roads, previous, new).price == 1  # 0.1 + 0.2 > 0.3 in binary
    assert certify(roads, previous, new, max_denominator=10).price == 0


@pytest.mark.parametrize("dtype", [np.int64, np.uint64, list])
def test_integers_beyond_the_floats_are_not_rounded(dtype: Any) -> None:
    def as_given(pair: list[int]) -> Any:
        return [[pair]] if dtype is list else np.array([[pair]], dtype=dtype)

    choice = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    nearly_tied, new = as_given([2**53, 2**53 + 1]), as_given([2**53 + 1, 0])
    assert certify(choice, nearly_tied, new).price == 2**53 + 1
    assert certify(choice, nearly_tied, new, max_denominator=5).price == 2**53 + 1


def test_whole_numbers_in_a_list_with_floats_are_not_rounded() -> None:
    choice = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    assert certify(choice, [[[0, 0.5]]], [[[2**53 + 1, 0.5]]]).price == 2**53 + HALF


def test_rows_and_start_are_divided_by_their_exact_sum() -> None:
    row = np.array([0.25, 0.25, 0.5])
    mdp = MDP(np.broadcast_to(row, (3, 1, 3)).copy(), row, horizon=2)
    loss = np.zeros((2, 3, 1))
    sevenths = (Fraction(2, 7), Fraction(2, 7), Fraction(3, 7))  # 1/3, 1/3, 1/2 over their sum 7/6
    problem = certify(mdp, loss, loss, max_denominator=3).problem
    assert problem.initial == sevenths
    assert problem.kernels == (((tuple(enumerate(sevenths)),) * 3),)

    thirds = MDP(np.full((3, 1, 3), 1 / 3), np.full(3, 1 / 3), horizon=2)
    assert certify(thirds, loss, loss).problem.initial == (THIRD,) * 3


def test_a_probability_must_not_round_to_zero() -> None:
    mdp = MDP(np.array([[[0.999, 0.001]], [[0.0, 1.0]]]), initial=0, horizon=1)
    loss = np.zeros((1, 2, 1))
    assert certify(mdp, loss, loss, max_denominator=1000).price == 0
    with pytest.raises(InputError, match=r"step 0 at state 0, action 0 .* 0\.001"):
        certify(mdp, loss, loss, max_denominator=400)


@pytest.mark.parametrize("limit", [0, -3, True, 2.0, "10"])
def test_max_denominator_must_be_a_positive_whole_number(limit: Any) -> None:
    mdp, loss = MDP(np.array([[0]]), initial=0, horizon=1), np.zeros((1, 1, 1))
    with pytest.raises(InputError, match="max_denominator is"):
        certify(mdp, loss, loss, max_denominator=limit)


def test_max_denominator_may_be_an_integer_of_numpy() -> None:
    mdp, loss = MDP(np.array([[0, 0]]), initial=0, horizon=1), np.array([[[0.1, 0.2]]])
    cert = certify(mdp, loss, loss, max_denominator=np.int64(10))
    assert cert == certify(mdp, loss, loss, max_denominator=10)
    assert check_certificate(cert)


def test_bad_losses_are_named() -> None:
    mdp, loss = MDP(np.array([[0]]), initial=0, horizon=1), np.zeros((1, 1, 1))
    with pytest.raises(InputError, match="previous_loss"):
        certify(mdp, loss * np.nan, loss)
    with pytest.raises(InputError, match=r"^loss has shape"):
        certify(mdp, loss, loss[0])


# --- whose certificate is it? -------------------------------------------------------------------


def test_a_certificate_matches_its_inputs_in_any_representation_and_no_others() -> None:
    nexts = np.array([[1, 0], [0, 1]])
    dense = np.eye(2)[nexts]
    matrix = sparse.csr_array(dense.reshape(4, 2))
    same = [
        MDP(nexts, initial=0, horizon=2),
        MDP(dense, [1.0, 0.0], horizon=2),
        MDP(np.stack([dense, dense]), 0),
        MDP([matrix, matrix], 0),
    ]
    previous, new = np.random.default_rng(1).integers(0, 3, size=(2, 2, 2, 2)) / 10
    certificates = [certify(mdp, previous, new) for mdp in same]
    assert len({certificate.input_hash for certificate in certificates}) == 1
    assert len(certificates[2].problem.kernels) == 1
    assert all(certificates[0].matches(mdp, previous, new) for mdp in same)

    assert not certificates[0].matches(MDP(nexts, initial=1, horizon=2), previous, new)
    assert not certificates[0].matches(MDP(nexts[::-1], initial=0, horizon=2), previous, new)
    assert not certificates[0].matches(same[0], new, previous)
    assert not certificates[0].matches(same[0], previous, new + np.eye(2))


def test_a_certificate_remembers_how_floats_were_read() -> None:
    mdp, loss = MDP(np.array([[0]]), initial=0, horizon=1), np.full((1, 1, 1), 0.1)
    binary, decimal = certify(mdp, loss, loss), certify(mdp, loss, loss, max_denominator=10)
    assert binary.input_hash != decimal.input_hash
    nearby = np.nextafter(loss, 1)
    assert decimal.matches(mdp, nearby, nearby, max_denominator=10)
    assert not binary.matches(mdp, nearby, nearby)


def test_how_numbers_are_read_is_the_callers_choice_not_the_certificates() -> None:
    mdp = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    previous, new = np.array([[[0.0, 0.49]]]), np.array([[[3.0, 0.0]]])
    forged = certify(mdp, previous, new, max_denominator=1)  # reads 0.49 as 0: a tie, and a price of 0
    assert check_certificate(forged)
    assert forged.price == 0
    assert not forged.matches(mdp, previous, new)
