"""The constructions in the paper's proofs, as problems and losses one can run.

Each builder returns an `Instance`, a problem and its losses [T, H, S, A], or a pair of them. Layers in
the text count from 1 as in the paper, steps h in the arrays from 0.

Where the paper leaves a construction incomplete the builder completes it and says how; where a
construction fails as written the builder builds it as written.

    >>> late, early = variation_separation(horizon=5, gamma=1.0, kappa=0.25)
    >>> from normalfan.exact.certify import certify
    >>> certify(late.mdp, *late.losses).price, certify(early.mdp, *early.losses).price
    (Fraction(1, 1), Fraction(15, 4))
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.problem.arrays import FloatArray, first_index, read_numbers
from normalfan.problem.mdp import MDP


class Instance(NamedTuple):
    """A problem and a sequence of losses for it."""

    mdp: MDP
    losses: FloatArray  # [T, H, S, A]


def one_state(horizon: int, n_actions: int) -> MDP:
    """A single state: the polytope is a product of simplices, one per step."""
    return MDP(np.zeros((1, n_actions), dtype=np.int64), 0, horizon)


def large_variation(rounds: int, stride: float, horizon: int = 1) -> Instance:
    """Proposition "Large variation, zero price": a loss that travels inside one cone.

    Action 0 always costs 1 less than action 1, while a common offset jumps between 0 and `stride`. The
    variation is `stride` a round in L∞ and 2·H·`stride` in L1; the face never moves and every price is
    0. So is the weighted estimate Σ‖v_{t−1} − v_t‖·‖ℓ_t − ℓ_{t−1}‖_*: what grows without bound is the
    variation, and with it any bound that multiplies it by a fixed diameter.
    """
    offsets = stride * (np.arange(rounds) % 2)
    losses = offsets[:, None, None, None] + np.broadcast_to([0.0, 1.0], (horizon, 1, 2))
    return Instance(one_state(horizon, 2), losses)


def variation_separation(horizon: int, gamma: float, kappa: float) -> tuple[Instance, Instance]:
    """Theorem "Loss variation cannot see the crossing layer": the late and the early instance.

    In both, one entry of the loss changes, by R = γ(H−1). The late price is γ, the early one
    γ(H−1) − κ.

    *Late.* One state a layer. Action 1 costs κ on every layer but the last; on the last it costs R − γ
    in the first round and −γ in the second. At H = 2 this fails as written: R − γ = 0 ties the last
    layer's actions, F₁ is an edge that holds the new optimum, and the price is 0 instead of γ.

    *Early.* From the root (layer 1) action 0 commits to the expensive line, with a bonus κ, and
    action 1 leads to the toll node, on layer 2. There action 1 pays the toll, R and then 0, and goes on
    to the cheap line, where all is free. The paper does not say what action 0 does at the toll node:
    here it joins the expensive line and pays γ like it, or else it would undercut the committed path.
    Nor does it say what the second action does on the lines: here it costs γ more and stays, or else F₁
    would not be a vertex.
    """
    _check(horizon >= 2, f"horizon is {horizon}, but the theorem speaks of at least 2 layers")
    _check(0 < kappa < gamma, f"kappa is {kappa}, but must lie between 0 and gamma = {gamma}")
    trigger = gamma * (horizon - 1)

    late = np.zeros((2, horizon, 1, 2))
    late[:, :-1, 0, 1] = kappa
    late[:, -1, 0, 1] = [trigger - gamma, -gamma]

    root, toll, expensive, cheap = range(4)
    nexts = np.array([[expensive, toll], [expensive, cheap], [expensive, expensive], [cheap, cheap]])
    early = np.zeros((2, horizon, 4, 2))
    early[:, 0, root, 0] = -kappa
    early[:, 1, toll] = [[gamma, trigger], [gamma, 0.0]]
    early[:, 1:, expensive] = [gamma, 2 * gamma]
    early[:, 2:, cheap] = [0.0, gamma]
    return Instance(one_state(horizon, 2), late), Instance(MDP(nexts, root, horizon), early)


def single_mdp_separation(horizon: int, gamma: float, kappa: float) -> tuple[Instance, Instance]:
    """A counterexample to the remark "Why two MDPs are needed": the same gap within one problem.

    One state, one step, two actions. Of the two sequences, (0, R−γ) → (0, −γ) has the price γ and
    (0, κ) → (0, κ−R) the price R − κ; both change one entry by R = γ(H−1), `horizon` being no more
    than a name for the ratio wanted. The prices differ by the factor H − 1 − κ/γ of the theorem.
    """
    _check(horizon >= 3, f"horizon is {horizon}, but the first sequence starts on a wall below 3")
    _check(0 < kappa < gamma, f"kappa is {kappa}, but must lie between 0 and gamma = {gamma}")
    trigger = gamma * (horizon - 1)
    arms = one_state(1, 2)
    cheap = np.array([[0.0, trigger - gamma], [0.0, -gamma]]).reshape(2, 1, 1, 2)
    costly = np.array([[0.0, kappa], [0.0, kappa - trigger]]).reshape(2, 1, 1, 2)
    return Instance(arms, cheap), Instance(arms, costly)


def lower_bound_adversary(gamma: float, rounds: int, *, rng: np.random.Generator) -> Instance:
    """Proposition "Unpredictable priced crossings are unavoidable": a fair coin picks the free action."""
    free = rng.integers(2, size=rounds)
    losses = np.full((rounds, 1, 1, 2), gamma)
    losses[np.arange(rounds), 0, 0, free] = 0.0
    return Instance(one_state(1, 2), losses)


def degenerate_selection(gamma: float = 1.0) -> tuple[Instance, Instance]:
    """Proposition "Degenerate faces require selection": equal prices, different regret.

    A binary tree of two layers. In the first round only the root's action 1 costs, so F₁ holds the
    paths 00 and 01: the suffix is free. In the second round the root's action 0 costs γ and one suffix
    costs γ more, the second in one sequence and the first in the other. The best point of F₁ pays γ in
    both. (The paper says that the new faces share their best *point* in F₁; what they share is its
    value.) A selector that takes the first suffix pays γ in one sequence and 2γ in the other.
    """
    tree = layered_tree_mdp(2)
    losses = np.zeros((2, 2, *tree.shape))  # sequence, round
    losses[:, 0, 0, 0, 1] = gamma
    losses[:, 1, 0, 0, 0] = gamma
    for sequence, wrong_suffix in enumerate((1, 0)):
        losses[sequence, 1, 1, :, wrong_suffix] = gamma
    return Instance(tree, losses[0]), Instance(tree, losses[1])


def layered_tree(horizon: int, gamma: float, paths: npt.ArrayLike) -> Instance:
    """The binary tree of H layers with one optimal path a round: Corollary "Causal anisotropy".

    `paths` [T, H] holds the optimal action string b_t of each round. Every step off b_t costs γ, and
    whoever has left it is off to the end: ℓ_t(path) = γ · (H − common prefix with b_t). The tree has
    2^(H−1) states and is meant for small H.
    """
    strings = read_numbers("paths", paths)
    shape_fits = strings.ndim == 2 and strings.shape[1] == horizon
    _check(shape_fits, f"paths has shape {list(strings.shape)}, but must be [T, {horizon}]")
    odd = (strings != 0) & (strings != 1)
    if odd.any():
        place = first_index(odd)
        raise InputError(
            f"paths{list(place)} is {strings[place]}, but an action is 0 or 1: check the strings."
        )
    tree = layered_tree_mdp(horizon)
    losses = np.full((len(strings), *tree.shape), float(gamma))
    rounds = np.arange(len(strings))
    node = np.zeros(len(strings), dtype=np.int64)
    for h in range(horizon):
        action = strings[:, h].astype(np.int64)
        losses[rounds, h, node, action] = 0.0
        node = 2 * node + action
    return Instance(tree, losses)


def layered_tree_mdp(horizon: int) -> MDP:
    """The tree alone: at step h the state is the action string so far, read as a binary number."""
    _check(horizon >= 1, f"horizon is {horizon}, but a tree has at least 1 layer")
    n_states = 2 ** (horizon - 1)
    nexts = (2 * np.arange(n_states)[:, None] + np.arange(2)) % n_states
    return MDP(nexts, 0, horizon)


def _check(fits: bool, complaint: str) -> None:
    if not fits:
        raise InputError(f"{complaint}: choose another.")
