"""Inputs that could be misread: each is read right, or refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sentences import check_refusal

import normalfan as nf
from normalfan.problem.mdp import mdp_from_arrays, mdp_to_arrays

ARMS = nf.MDP([[0, 0, 0]], initial=0, horizon=1)
THIRDS = np.zeros((4, 2, 4))
THIRDS[0, :, 1:] = [[1 / 3, 1 / 3, 1 / 3], [0.5, 0.25, 0.25]]
THIRDS[[1, 2, 3], :, [1, 2, 3]] = 1

# --- rows ------------------------------------------------------------------------------------------------


def in_every_form(rows: np.ndarray) -> Iterator[Any]:
    """The kernel [S, A, S] as every representation that holds probabilities."""
    flat = rows.reshape(-1, rows.shape[-1])
    yield from (rows, np.asfortranarray(rows), np.stack([rows] * 3))
    yield from (sparse.csr_array(flat), sparse.csc_array(flat), sparse.coo_array(flat))


def both_ways(mdp: nf.MDP) -> Iterator[tuple[nf.PricedMotion, nf.Certificate]]:
    """Every plan costs 2 at first, so that all are tied; then one of the two first actions costs 7."""
    tied = np.zeros(mdp.shape)
    tied[1:] = 1.0
    for first in ((0.0, 7.0), (7.0, 0.0)):
        new = tied.copy()
        new[0, 0] = first
        yield nf.price_stream(mdp, [tied, new]), nf.certify(mdp, tied, new)


@pytest.mark.parametrize("rows", [THIRDS.astype("f4"), THIRDS * (1 - 5e-10), THIRDS * (1 + 1e-13)])
def test_rows_that_are_off_by_rounding_do_not_break_ties(rows: np.ndarray) -> None:
    start = np.array([1, 0, 0, 0], rows.dtype)
    problems = [nf.MDP(form, start, 3) for form in in_every_form(rows)]
    assert len({mdp.fingerprint for mdp in problems}) == 1
    for mdp in problems:
        sums = mdp.transitions.csr(0).sum(axis=1)
        np.testing.assert_allclose(sums, 1.0, rtol=0, atol=4 * 2.0**-52)
        for motion, certificate in both_ways(mdp):
            assert motion.prices[1] == 0 == certificate.price


def test_an_error_in_one_row_only_does_not_break_a_tie() -> None:
    rows = np.zeros((3, 2, 3))
    rows[0] = [[0, 0.5, 0.5 - 5e-10], [0, 0.5, 0.5]]
    rows[[1, 2], :, [1, 2]] = 1
    for motion, certificate in both_ways(nf.MDP(rows, 0, 2)):
        assert motion.prices[1] == 0 == certificate.price


def test_float32_rows_of_a_thousand_states_are_accepted(rng: np.random.Generator) -> None:
    exact = rng.dirichlet(np.ones(1000), size=(1000, 2))
    narrow = exact.astype("f4")
    narrow /= narrow.sum(axis=-1, keepdims=True)
    for rows in (exact.astype("f4"), narrow):
        kernels = nf.MDP(rows, 0, 3).transitions.kernels  # type: ignore[attr-defined]
        np.testing.assert_allclose(kernels.sum(axis=-1), 1.0, rtol=0, atol=16 * 2.0**-52)


@pytest.mark.parametrize("missing", [1e-4, 2e-6])
def test_rows_that_lack_something_are_refused_in_every_form(missing: float) -> None:
    rows = THIRDS.copy()
    rows[2, 1] *= 1 - missing
    for form in in_every_form(rows):
        check_refusal(lambda form=form: nf.MDP(form, 0, 3), "2, 1] sums to")  # type: ignore[misc]
    check_refusal(lambda: nf.MDP(THIRDS, [1 - missing, 0, 0, 0], 3), "initial sums to")
    policy = np.full((3, 4, 2), 0.5)
    policy[1, 2, 0] -= missing
    check_refusal(lambda: nf.occupancy(nf.MDP(THIRDS, 0, 3), policy), "policy[1, 2] sums to")


def test_float16_thirds_are_too_far_off() -> None:
    check_refusal(lambda: nf.MDP(THIRDS.astype("f2"), 0, 3), "transitions[0, 0] sums to 0.9997")


def test_starts_and_policies_are_divided_by_their_sums() -> None:
    thirds = np.full(3, 1 / 3, "f4")
    mdp = nf.MDP([[0, 1, 2]] * 3, thirds, 2)
    np.testing.assert_array_equal(mdp.initial, np.full(3, 1 / 3))
    visits = nf.occupancy(mdp, np.broadcast_to(thirds, mdp.shape))
    np.testing.assert_allclose(visits.sum(axis=(1, 2)), 1.0, rtol=0, atol=1e-15)


def test_rows_that_sum_to_one_keep_their_bits(rng: np.random.Generator) -> None:
    rows = rng.dirichlet(np.ones(40), size=(40, 3))
    kernels = nf.MDP(rows, 0, 2).transitions.kernels  # type: ignore[attr-defined]
    np.testing.assert_array_equal(kernels[0], rows)
    once = nf.MDP(rows.astype("f4"), 0, 2)
    again = nf.MDP(once.transitions.kernels[0], 0, 2)  # type: ignore[attr-defined]
    assert again.fingerprint == once.fingerprint


# --- who owns the arrays ---------------------------------------------------------------------------------

NEXTS = np.array([[0, 1], [1, 1]], dtype=np.int32)
HALVES = np.full((2, 2, 2), 0.5)


@pytest.mark.parametrize(
    "source",
    [HALVES, np.stack([HALVES] * 2), NEXTS, np.stack([NEXTS] * 2)],
    ids=lambda array: str(array.shape),
)
def test_a_problem_owns_its_arrays(source: np.ndarray) -> None:
    given, start = source.copy(), np.array([0.5, 0.5])
    mdp = nf.MDP(given, start, 2)
    given[:], start[:] = 99, 99  # the caller's arrays stay writeable
    assert mdp.fingerprint == nf.MDP(source, [0.5, 0.5], 2).fingerprint
    inside = getattr(mdp.transitions, "kernels", getattr(mdp.transitions, "nexts", None))
    assert not inside.flags.writeable
    assert not mdp.initial.flags.writeable


def test_a_problem_owns_its_sparse_matrices() -> None:
    given = sparse.csr_array(HALVES.reshape(4, 2))
    mdp = nf.MDP(given, 0, 2)
    given.data[:], given.indices[:] = 9, 0
    assert mdp.fingerprint == nf.MDP(HALVES, 0, 2).fingerprint
    kernel = mdp.transitions.csr(0)
    assert not any(own.flags.writeable for own in (kernel.data, kernel.indices, kernel.indptr))


def test_a_source_may_fill_one_buffer_again_and_again(rng: np.random.Generator) -> None:
    losses = rng.random((6, 1, 1, 3))

    def reader() -> Iterator[np.ndarray]:
        buffer = np.empty((1, 1, 3))
        for row in losses:
            buffer[:] = row
            yield buffer

    expected = nf.price_stream(ARMS, losses)
    found = nf.price_stream(ARMS, reader())
    np.testing.assert_array_equal(found.prices, expected.prices)
    np.testing.assert_array_equal(found.variation(), expected.variation())
    np.testing.assert_array_equal(
        nf.run(ARMS, nf.learners.FaceTracker(ARMS), reader()).prices, expected.prices
    )
    held, meant = (nf.replan.holding_costs(ARMS, source).costs for source in (reader(), losses))
    np.testing.assert_array_equal(held, meant)


# --- damaged sparse matrices -----------------------------------------------------------------------------


def damaged(form: str, part: str, at: int, entry: int) -> Callable[[], nf.MDP]:
    def build() -> nf.MDP:
        matrix = sparse.csr_array(HALVES.reshape(4, 2)).asformat(form)
        matrix = matrix.copy()
        (matrix.coords[1] if part == "coords" else getattr(matrix, part))[at] = entry
        return nf.MDP(matrix, 0, 2)

    return build


@pytest.mark.parametrize("entry", [2, -1, -3, 5, 4000, 10**6, 2**31 - 1])
@pytest.mark.parametrize("form", ["csr", "csc", "coo", "bsr"])
def test_indices_outside_are_refused(form: str, entry: int) -> None:
    part = "coords" if form == "coo" else "indices"
    at, shown = (0, "[0]") if form == "bsr" else (1, "[1]")
    outside = 4 if (form, entry) == ("csc", 2) else entry
    check_refusal(damaged(form, part, at, outside), f"{shown} is {outside}")


@pytest.mark.parametrize(
    ("at", "entry", "where"), [(0, 1, "indptr[0] is 1"), (2, -5, "indptr[2] is -5"), (4, 9, "indptr[4] is 9")]
)
def test_broken_pointers_are_refused(at: int, entry: int, where: str) -> None:
    check_refusal(damaged("csr", "indptr", at, entry), where)


def test_pointers_of_the_wrong_number_are_refused() -> None:
    matrix = sparse.csr_array(HALVES.reshape(4, 2))
    matrix.indptr = matrix.indptr[:-1]
    check_refusal(lambda: nf.MDP(matrix, 0, 2), "indptr has shape [4]")


def test_sparse_features_are_checked_too() -> None:
    features = sparse.csr_array(np.ones((1, 3)))
    features.indices[2] = 3
    check_refusal(lambda: nf.FactoredLosses(np.ones((2, 1)), features), "features.indices[2] is 3")
    check_refusal(lambda: nf.FactoredLosses(np.ones((2, 1)), sparse.csr_array([[1j, 0, 0]])), "complex")


@pytest.mark.parametrize("entry", [2, -3, 10**6])
def test_a_stored_problem_with_indices_outside_is_refused(entry: int) -> None:
    stored = mdp_to_arrays(nf.MDP(sparse.csr_array([[1.0, 0], [0, 1], [0, 1], [1, 0]]), 0, 3))
    stored["indices"] = np.array([0, entry, 1, 0])
    check_refusal(lambda: mdp_from_arrays(stored), f"indices[1] is {entry}")
    stored["indices"] = np.array([0, 1.5, 1, 0])
    check_refusal(lambda: mdp_from_arrays(stored), "indices of dtype float64")
    stored["indptr"] = np.array([[0, 1, 2, 3, -4]])
    stored["indices"] = np.zeros(4, dtype=int)
    check_refusal(lambda: mdp_from_arrays(stored), "indptr[4] is -4")


# --- what is not an array of numbers ---------------------------------------------------------------------

LOSS = np.array([[[0.0, 1.0, 2.0]]])
MASKED = np.ma.masked_greater(np.stack([LOSS, LOSS]), 1.5)
BEYOND = LOSS.astype(np.longdouble)
BEYOND[0, 0, 2] = np.longdouble("1e4000")
has_wide_floats = pytest.mark.skipif(
    np.finfo(np.longdouble).max == np.finfo(float).max, reason="long doubles are doubles here"
)

ODD = {
    "masked": (MASKED[1], "0, 0, 2] is masked"),
    "masked in a list": ([[MASKED[1, 0, 0]]], "0, 0, 2] is masked"),
    "ragged": ([[[0.0, 1.0, 2.0], [1.0]]], "different lengths"),
    "complex": (LOSS + 0j, "complex"),
    "objects": (LOSS.astype(object), "object"),
    "text": ([[["a", "b", "c"]]], "<U1"),
    "wide": pytest.param(BEYOND, "0, 0, 2] is 1e+4000", marks=has_wide_floats),
}


@pytest.mark.parametrize(("odd", "where"), ODD.values(), ids=ODD)
def test_what_is_no_array_of_numbers_is_refused_everywhere(odd: Any, where: str) -> None:
    for provoke in (
        lambda: nf.certify(ARMS, LOSS, odd),
        lambda: nf.certify(ARMS, odd, LOSS),
        lambda: nf.price(nf.optimal_face(ARMS, LOSS), odd),
        lambda: nf.price_stream(ARMS, iter([LOSS, odd])),
        lambda: nf.price_stream(ARMS, [odd]),
        lambda: nf.Monitor(ARMS).update(odd),
    ):
        check_refusal(provoke, where)


def test_a_masked_stream_and_rounds_of_two_shapes_are_refused() -> None:
    check_refusal(lambda: nf.price_stream(ARMS, MASKED), "losses[0, 0, 0, 2] is masked")
    check_refusal(lambda: nf.price_stream(ARMS, [LOSS, LOSS[..., :2]]), "different lengths")
    assert nf.price_stream(ARMS, np.ma.masked_greater(np.stack([LOSS, LOSS]), 9)).prices.tolist() == [0, 0]


# --- integers that have two meanings ---------------------------------------------------------------------

ONE_HOT = np.array([[[0, 1], [1, 0]], [[0, 1], [0, 1]]])


def test_integers_that_may_be_probabilities_or_next_states_are_refused() -> None:
    check_refusal(lambda: nf.MDP(ONE_HOT, 0, 2), "as floats, or next states without horizon")
    probabilities, nexts = nf.MDP(ONE_HOT.astype(float), 0, 2), nf.MDP(ONE_HOT, 0)
    assert (probabilities.n_states, nexts.horizon) == (2, 2)
    assert probabilities.fingerprint != nexts.fingerprint
    assert nf.MDP(1 - NEXTS[None].repeat(2, axis=0), 0, 2).horizon == 2  # not one-hot: next states


def test_such_next_states_come_back_from_a_file() -> None:
    mdp = nf.MDP(ONE_HOT, 0)
    assert mdp_from_arrays(mdp_to_arrays(mdp)).fingerprint == mdp.fingerprint


def test_actions_first_is_recognised_where_it_can_be(rng: np.random.Generator) -> None:
    kernel = rng.dirichlet(np.ones(3), size=(2, 3))  # [A, S, S]
    check_refusal(lambda: nf.MDP(kernel, 0, 4), "np.swapaxes(transitions, 0, 1)")
    check_refusal(lambda: nf.MDP(np.stack([kernel] * 4), 0), "np.swapaxes(transitions, 1, 2)")
    assert nf.MDP(np.swapaxes(kernel, 0, 1), 0, 4).n_actions == 2
