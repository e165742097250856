"""Backups: values, advantages, policy evaluation, occupancy measures.

    Q_h = ℓ_h + expect V_{h+1},      V_h = min_a Q_h,      A_h = Q_h − V_h ≥ 0,     backward from V_{H+1} = 0
    q_h(s,a) = d_h(s) π_h(a|s),      d_{h+1} = push q_h,                            forward from the start

meet in J(π) − J* = ⟨q^π, A⟩, on which prices rest. An action that is not allowed has ℓ = A = ∞; where none is
(no policy is there, then) V = 0. Compiled kernels are tested against this readable form.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.ties import TieRule
from normalfan.problem import arrays
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray
from normalfan.problem.mdp import MDP, follow


@dataclass(frozen=True, slots=True)
class Backup:
    """The optimal values of a loss, and how much worse each action is than the best."""

    loss: FloatArray  # [H, S, A]
    values: FloatArray  # [H+1, S]
    advantages: FloatArray  # [H, S, A], never negative; ∞ where the loss is

    def value(self, mdp: MDP) -> float:
        """J*, the expected loss of an optimal policy."""
        return float(mdp.initial @ self.values[0])

    def tied(self, mdp: MDP, ties: TieRule) -> BoolArray:
        """[H, S, A]: the actions that count as optimal."""
        # Not "<=": where losses overflow advantages are NaN, and some action must still be kept.
        return ~(self.advantages > ties.thresholds(mdp, self.loss, self.values, self.advantages))

    def settled(self, mdp: MDP, ties: TieRule) -> FloatArray:
        """The advantages with those that count as none set to zero."""
        return np.where(self.tied(mdp, ties), 0.0, self.advantages)


def optimal_backup(mdp: MDP, loss: FloatArray) -> Backup:
    """The backup of a loss [H, S, A], or of n at once [H, S, A, n]: its arrays then have that axis, too."""
    values = np.zeros((mdp.horizon + 1, mdp.n_states, *loss.shape[3:]))
    advantages = np.empty(loss.shape)
    for h in range(mdp.horizon - 1, -1, -1):
        q = loss[h] + mdp.transitions.expect(h, values[h + 1])
        values[h] = np.where((loss[h] == np.inf).all(axis=1), 0.0, q.min(axis=1))
        advantages[h] = q - values[h, :, None]
    return Backup(loss, values, advantages)


def finite_backup(mdp: MDP, loss: FloatArray, name: str = "loss") -> Backup:
    """The backup of a user's loss [H, S, A], whose sums must be finite."""
    with np.errstate(over="ignore", invalid="ignore"):  # said below, in words
        backup = optimal_backup(mdp, loss)
    check_sums(backup.values, name)
    return backup


def check_sums(values: FloatArray, name: str = "loss") -> None:
    if not np.isfinite(values).all():
        raise InputError(
            f"{name} adds up beyond the range of float64, but sums of all steps must fit: use a larger unit."
        )


def restricted_backup(mdp: MDP, mask: BoolArray, cost: FloatArray) -> tuple[FloatArray, IntArray]:
    """W_h(s) = min over a in the mask of cost_h(s,a) + E W_{h+1}, and the action; 0 and -1 without one."""
    kept = np.asarray(mask.any(axis=2))
    # A mask that is canonical for other dynamics would be priced as if the plan cost nothing from there on.
    if not kept.all() and (follow(mdp, mask)[1] & ~kept).any():
        raise InputError(
            "the mask keeps no action at a state that it leads to, but a plan must say what it does wherever "
            "it can be: pass a mask of this problem, such as optimal_face(mdp, loss).mask."
        )
    values = np.zeros((mdp.horizon + 1, mdp.n_states))
    actions = np.empty((mdp.horizon, mdp.n_states), dtype=np.int64)
    for h in range(mdp.horizon - 1, -1, -1):
        ahead = np.where(mask[h], cost[h] + mdp.transitions.expect(h, values[h + 1]), np.inf)
        best = ahead.argmin(axis=1)
        values[h] = np.where(kept[h], ahead[np.arange(mdp.n_states), best], 0.0)
        actions[h] = np.where(kept[h], best, -1)
    return values, actions


def occupancy(mdp: MDP, policy: npt.ArrayLike) -> FloatArray:
    """How often a policy is in each step, state and action: q_h(s,a) = Pr(s_h = s, a_h = a).

    Parameters
    ----------
    mdp : MDP
    policy : array_like [H, S, A]
        A distribution over actions for every step and state.

    Returns
    -------
    ndarray [H, S, A]

    Raises
    ------
    InputError
        If `policy` has another shape, or a row is not a distribution.

    Examples
    --------
    >>> import normalfan as nf
    >>> corridor = nf.MDP([[0, 1], [1, 1]], initial=0, horizon=2)         # stay, or move on for good
    >>> nf.occupancy(corridor, [[[0.5, 0.5], [1, 0]], [[1, 0], [1, 0]]]).tolist()
    [[[0.5, 0.5], [0.0, 0.0]], [[0.5, 0.0], [0.5, 0.0]]]
    """
    probabilities = as_policy(mdp, policy)
    visits = np.empty(mdp.shape)
    reached = mdp.initial
    for h in range(mdp.horizon):
        visits[h] = reached[:, None] * probabilities[h]
        reached = mdp.transitions.push(h, visits[h])
    return arrays.read_only(visits)


def as_policy(mdp: MDP, policy: npt.ArrayLike) -> FloatArray:
    """A policy [H, S, A], validated: a distribution over actions at every step and state."""
    numbers = arrays.read_numbers("policy", policy)
    remedy = "give a distribution over actions for every step and state"
    arrays.check_shape("policy", numbers.shape, mdp.shape, remedy)
    return arrays.read_distributions("policy", numbers)


def allowed_policy(mdp: MDP, policy: FloatArray, advantages: FloatArray) -> FloatArray:
    """A policy [H, S, A] without what has infinite advantage; where that is all, the cheapest way on."""
    allowed = advantages < np.inf
    if not policy[~allowed].any():
        return policy
    chosen, ahead = np.where(allowed, policy, 0.0), np.zeros(mdp.n_states)
    for h in range(mdp.horizon - 1, -1, -1):
        onward = np.where(allowed[h], advantages[h], 0.0) + mdp.transitions.expect(h, ahead)
        cheapest = np.eye(mdp.n_actions)[np.where(allowed[h], onward, np.inf).argmin(axis=1)]
        chosen[h] = np.where(chosen[h].any(axis=1, keepdims=True), chosen[h], cheapest)
        chosen[h] /= chosen[h].sum(axis=1, keepdims=True)
        ahead = (chosen[h] * onward).sum(axis=1)
    return chosen


def uniform_policy(mdp: MDP, allowed: BoolArray | None = None) -> FloatArray:
    """[H, S, A]: all actions that the problem, or `allowed`, allows equally likely; if there is none, all."""
    allowed = mdp.allowed if allowed is None else allowed
    if allowed is None:
        return np.full(mdp.shape, 1.0 / mdp.n_actions)
    weights = np.where(allowed.any(axis=2, keepdims=True), allowed, 1.0)
    return np.asarray(weights / weights.sum(axis=2, keepdims=True))


def as_deterministic_policy(mdp: MDP, actions: IntArray, allowed: BoolArray | None = None) -> FloatArray:
    """Actions [H, S] as a policy [H, S, A]; a state whose action is -1 plays all that are allowed alike."""
    chosen = actions[:, :, None]
    return np.where(chosen < 0, uniform_policy(mdp, allowed), chosen == np.arange(mdp.n_actions))


def policy_of_actions(mdp: MDP, actions: npt.NDArray[np.generic]) -> FloatArray:
    """The policy [H, S, A] that takes these actions [H, S]; nothing is said where they are -1."""
    arrays.check_shape("against", actions.shape, mdp.shape[:2], "give an action for every step and state")
    known = np.isin(actions, range(-1, mdp.n_actions))
    rule = f"an action is an index from 0 to {mdp.n_actions - 1} (-1: none, as the plan is never there)"
    arrays.check_entries("against", actions, known, f"{rule}: check the numbering")
    return np.asarray(actions[:, :, None] == range(mdp.n_actions), dtype=np.float64)


def completed_plan(mdp: MDP, policy: FloatArray, source: str) -> FloatArray:
    """A policy [H, S, A], but uniform in rows of zeros; refused if it can be there, or is never allowed."""
    silent = np.asarray(~policy.any(axis=2))
    reached = mdp.initial > 0
    for h in range(mdp.horizon):
        stuck = silent[h] & reached
        if stuck.any():
            state = mdp.labels.state(int(stuck.argmax()))
            raise InputError(
                f"{source} has no action for state {state} at step {mdp.labels.step(h)}, but the plan can be "
                f"there: add it."
            )
        moves = (policy[h] > 0) & reached[:, None]
        if mdp.allowed is not None and (never := moves & ~mdp.allowed[h]).any():
            s, a = arrays.first_index(never)
            raise InputError(
                f"{source} takes action {mdp.labels.action(a)} in state {mdp.labels.state(s)} at step "
                f"{mdp.labels.step(h)}, but the model never allows it there: choose another action."
            )
        reached = mdp.transitions.push(h, moves.astype(float)) > 0
    return as_policy(mdp, np.where(silent[:, :, None], uniform_policy(mdp), policy))
