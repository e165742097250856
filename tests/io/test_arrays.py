"""Other people's arrays: each form gives the values of a plain backward loop over r(s, a, s')."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from scipy import sparse
from sentences import check_refusal

import normalfan as nf
from normalfan.io.cell_tables import every_round


def best_value(P: np.ndarray, R: np.ndarray, terminal: np.ndarray, horizon: int) -> np.ndarray:
    """[S]: the best expected sum of r(s, a, s') and of the terminal value; P and R are [S, A, S]."""
    value = terminal.astype(float)
    for _ in range(horizon):
        value = np.array([[(p * (r + value)).sum() for p, r in zip(*row)] for row in zip(P, R)]).max(axis=1)  # noqa: B905
    return value


def world(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray, int, int]:
    n_states, n_actions, horizon = (int(rng.integers(1, 5)) for _ in range(3))
    counts = rng.integers(0, 3, size=(n_states, n_actions, n_states))
    counts[..., 0] += counts.sum(axis=-1) == 0
    P = counts / counts.sum(axis=-1, keepdims=True)
    R = rng.integers(-2, 3, size=P.shape).astype(float)
    return P, R, rng.integers(-2, 3, size=n_states), horizon, int(rng.integers(n_states))


def by_action(cube: np.ndarray) -> list[Any]:
    return [sparse.csr_matrix(cube[:, a]) for a in range(cube.shape[1])]


def test_every_form_has_the_values_of_a_plain_loop(rng: np.random.Generator) -> None:
    for _ in range(60):
        P, R, terminal, horizon, start = world(rng)
        n_states, n_actions, _ = P.shape
        mean = (P * R).sum(axis=2)
        ass, asr = P.swapaxes(0, 1), R.swapaxes(0, 1)
        s, a = (index.ravel() for index in np.indices((n_states, n_actions)))
        mixed = rng.permutation(len(s))
        pairs = (s[mixed], a[mixed])
        forms: list[tuple[Any, Any, dict[str, Any]]] = [
            (P, R, {"order": "SAS"}),
            (P, mean, {"order": "SAS"}),
            (ass, asr, {"order": "ASS"}),
            (ass, mean, {"order": "ASS"}),
            (list(ass), list(asr), {"order": "ASS"}),
            (by_action(P), by_action(R), {}),
            (by_action(P), asr, {"order": "ASS"}),
            (P[pairs], mean[pairs], {"pairs": pairs}),
            (sparse.csr_array(P[pairs]), mean[pairs], {"pairs": pairs}),
        ]
        expected = best_value(P, R, terminal, horizon)[start]
        for P_form, R_form, options in forms:
            options = {"horizon": horizon, "start": start} | options
            mdp, losses = nf.io.from_arrays(P_form, R_form, terminal=terminal, **options)
            assert nf.price_stream(mdp, losses).values[0] == pytest.approx(expected, abs=1e-12)
        held = nf.io.from_arrays(
            P, R[:, 0, 0], order="SAS", horizon=horizon, start=start
        )  # a reward of states
        plain = best_value(P, np.broadcast_to(R[:, :1, :1], R.shape), 0 * terminal, horizon)[start]
        assert nf.price_stream(*held).values[0] == pytest.approx(plain, abs=1e-12)


def test_rewards_move_and_terminal_values_with_them(rng: np.random.Generator) -> None:
    P, _, _, horizon, start = world(rng)
    rounds = rng.normal(size=(5, *P.shape))
    terminal = rng.normal(size=(5, len(P)))
    given = {"order": "SAS", "horizon": horizon, "start": start, "moving": True}
    mdp, losses = nf.io.from_arrays(P, rounds, terminal=terminal, round_names="abcde", **given)
    motion = nf.price_stream(mdp, losses)
    expected = [best_value(P, R, v, horizon)[start] for R, v in zip(rounds, terminal, strict=True)]
    assert motion.values == pytest.approx(np.array(expected), abs=1e-12)
    assert motion.round_names == tuple("abcde")
    check_refusal(lambda: nf.io.from_arrays(P, [], **given), "R has no round")
    check_refusal(lambda: nf.io.from_arrays(P, rounds, **given | {"moving": False}), "R has shape [5, ")


def test_losses_by_next_state_are_their_expectation(rng: np.random.Generator) -> None:
    """The identity E[ℓ(s, a, s')] by a sum over dense kernels, of one kernel and of one for each step."""
    kernels = rng.dirichlet(np.ones(3), size=(4, 3, 2))
    losses = rng.normal(size=(5, 4, 3, 2, 3))
    terminal = rng.normal(size=3)
    for mdp, used in ((nf.MDP(kernels, 0), kernels), (nf.MDP(kernels[0], 0, 4), kernels[[0] * 4])):
        by_step = np.einsum("hsaj,thsaj->thsa", used, losses)
        same = np.einsum("hsaj,tsaj->thsa", used, losses[:, 0])
        given = nf.io.expected_losses(mdp, losses, axes="THSAS")
        assert np.allclose(every_round(given, mdp), by_step, atol=1e-14)
        given = nf.io.expected_losses(mdp, losses[:, 0], terminal=terminal, round_names="abcde")
        same[:, -1] += used[-1] @ terminal
        assert np.allclose(every_round(given, mdp), same, atol=1e-14)
        assert given.round_names == tuple("abcde")
    check_refusal(lambda: nf.io.expected_losses(mdp, losses), "losses has shape [5, 4, 3, 2]")
    check_refusal(lambda: nf.io.expected_losses(mdp, losses[..., 1:], axes="THSAS"), "losses has shape")
    check_refusal(lambda: nf.io.expected_losses(mdp, losses, axes="THSAS", terminal=[0, 1]), "terminal has")
    check_refusal(
        lambda: nf.io.expected_losses(mdp, losses, axes="THSAS", terminal=[0, np.nan, 1]),
        "terminal[1] is nan",
    )


SQUARE = np.full((2, 2, 2), 0.5)
WIDE = np.full((3, 2, 2), 0.5)
DAMAGED = sparse.csr_array(np.eye(2))
DAMAGED.indices[1] = 9


@pytest.mark.parametrize(
    ("P", "R", "options", "where"),
    [
        (SQUARE, [0, 0], {}, "P has shape [2, 2, 2], but could be both"),
        (WIDE, [0, 0], {"order": "SAS"}, "order is 'SAS'"),
        (WIDE, [0, 0], {"order": "SSA"}, "order is 'SSA'"),
        (WIDE[0], [0, 0], {}, "P has shape [2, 2]"),
        (WIDE, [0, 0, 0], {}, "R has shape [3]"),
        (WIDE, [[0, 0, 0]], {}, "R has shape [1, 3]"),
        (WIDE, [0, np.nan], {}, "R[1] is nan"),
        (WIDE, [0, 0], {"start": "home"}, "start is 'home'"),
        (WIDE * 2, [0, 0], {}, "sums to 2"),
        (by_action(SQUARE), by_action(SQUARE)[:1], {}, "R has shape [1, 2, 2]"),
        (by_action(SQUARE), [0, 0], {"order": "SAS"}, "order is 'SAS'"),
        ([*by_action(SQUARE), sparse.eye(3)], [0, 0], {}, "P[2] has shape [3, 3]"),
        (SQUARE, [0, 0], {"pairs": ([0, 1], [0, 0])}, "P has shape [2, 2, 2], but with pairs"),
        (SQUARE[0], [0, 0], {"pairs": ([0, 1], [0, 0, 0])}, "pairs are"),
        (DAMAGED, [0, 0], {"pairs": ([0, 1], [0, 0])}, "P.indices[1] is 9"),
        (SQUARE[0], [0, 0], {"pairs": ([0.0, 1.0], [0, 0])}, "pairs are float64 [2]"),
        (SQUARE[0], [0, 0], {"pairs": ([0, 2], [0, 0])}, "pairs name states from 0 to 2"),
        (SQUARE[0], [0, 0], {"pairs": ([0, 0], [0, 0])}, "state 0, action 0 more than once"),
        (SQUARE[0], [0, 0, 0], {"pairs": ([0, 1], [0, 0])}, "R has shape [3]"),
    ],
)
def test_what_does_not_fit_is_refused(P: Any, R: Any, options: dict[str, Any], where: str) -> None:
    check_refusal(lambda: nf.io.from_arrays(P, R, **{"horizon": 2, "start": 0} | options), where)
