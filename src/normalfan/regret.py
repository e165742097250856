"""A learner against a stream of losses, and its dynamic regret: what the losses cost, what the learner lost.

With A the optimal advantages (zero where tied) and W the values of the restricted backup on the last face,

    regret r = ⟨q, A⟩,      price Γ = ρ·W_1,      selection error ε = ⟨q, A + E W_{h+1} − W_h⟩

of a play q. For one on the last face r = Γ + ε (Theorem "Exact face-regret decomposition"); the three are
computed separately, so that their equality is a check: docs/details/regret.md. Off the face r − Γ may be
negative, and round 0 has no last face.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, get_args

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError, check_choice
from normalfan.geometry.bellman import as_deterministic_policy, occupancy, restricted_backup, uniform_policy
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.learner import Clairvoyant, Learner, Moving, as_played
from normalfan.plots import new_figure, round_axis
from normalfan.pricing.blocks import overflow
from normalfan.pricing.dynamics import MovingStream
from normalfan.pricing.kernels import reachable_problem, whole_problem
from normalfan.pricing.motion import NORMS, in_norm
from normalfan.pricing.stream import block_rounds
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray, read_only
from normalfan.problem.losses import Losses, LossStream, as_stream, each_round, names_of_rounds
from normalfan.problem.mdp import MDP
from normalfan.progress import progress_bar
from normalfan.text import counted, html_table, number

if TYPE_CHECKING:
    import polars

    from normalfan._kernels.accounting import Comparator

Keep: TypeAlias = Literal["nothing", "policies", "occupancies"]

ON_FACE_TOLERANCE = 1e-9  # the expected number of steps off the face up to which a play counts as on it


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class RunLog:
    """Every round of a run: what `run` returns. In round 0 all that compares with a past round is 0.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> nf.run(arms, nf.learners.FaceTracker(arms), [[[[0.0, 1.0]]], [[[1.0, 0.0]]]])
    RunLog: 2 rounds, regret 1.5, loss 1.5, 0 off the face
    """

    regrets: FloatArray  # [T] r_t = ⟨q_t, A_t⟩, of the play q_t under the optimal advantages A_t of the loss
    losses_paid: FloatArray  # [T] ⟨q_t, ℓ_t⟩, the expected loss of the play
    values: FloatArray  # [T] J*_t, the best expected loss
    prices: FloatArray  # [T] Γ_t, the least regret of staying on the optimal face of the round before
    selections: FloatArray  # [T] ε_t, the selection error; negative only where the play left that face
    on_face: BoolArray  # [T] the play was on that face
    off_face_masses: FloatArray  # [T] expected number of steps at which it was not
    dimensions: IntArray  # [T] of the optimal face of the round
    variations: FloatArray  # [T, 3] ‖ℓ_t − ℓ_{t−1}‖ in L1, L2 and L∞; see `variation`
    path_lengths: FloatArray  # [T] L1 distance from the last comparator, the first vertex of the optimal face
    causal_path_lengths: FloatArray  # [T] expected number of steps after the two comparators first disagree
    clairvoyant: bool  # the learner was shown each loss before it acted
    kept: Keep  # what `plays` holds
    plays: FloatArray | None  # [T, H, S, A] policies or occupancies; None if nothing was kept
    round_names: tuple[str, ...] | None = None  # [T] what the rounds are called; None if numbered

    @property
    def n_rounds(self) -> int:
        """How many rounds were played."""
        return len(self.regrets)

    @property
    def total_regret(self) -> float:
        """The dynamic regret: the sum of all regrets, rounded once at the end."""
        return math.fsum(self.regrets)

    def variation(self, norm: str | float = "l1") -> FloatArray:
        """[T]: ‖ℓ_t − ℓ_{t−1}‖ in "l1", "l2" or "linf" (1, 2 and inf mean the same); 0 in round 0."""
        return in_norm(self.variations, norm)

    def __repr__(self) -> str:
        rounds, regret, paid, off = self._in_short()
        return f"RunLog: {rounds}, regret {regret}, loss {paid}, {off} off the face"

    def _repr_html_(self) -> str:
        head = ("run", "regret", "loss", "rounds off the face")
        return html_table("A learner's run", head, [self._in_short()])

    def _in_short(self) -> tuple[str, str, str, str]:
        paid, off = math.fsum(self.losses_paid), np.count_nonzero(~self.on_face)
        return counted(self.n_rounds, "round"), number(self.total_regret), number(paid), f"{off:,}"


def run(
    mdp: MDP | Sequence[MDP],
    learner: Learner,
    losses: Losses,
    *,
    dynamics_of_round: npt.ArrayLike | None = None,
    ties: TieRule = DEFAULT_TIES,
    keep: Keep = "nothing",
    progress: bool = False,
) -> RunLog:
    """Play a learner against a stream of losses and account for every round.

    Parameters
    ----------
    mdp : MDP or sequence of MDP
        Several, if the dynamics move: the problem of a round is played, and then seen with its loss.
    learner : Learner
        Built for the same problem; see `normalfan.learners`. Of several, for one of them, and with a method
        `move(mdp)`, as `FaceTracker` has.
    losses : array [T, H, S, A], LossStream or iterable of arrays [H, S, A]
        From an iterable a round is taken only when the one before is over: an adversary may see the learner.
    dynamics_of_round : array_like of int [T], optional
        Which of several problems each round has.
    ties : TieRule
        What the accounts call optimal; give the learner the same rule if it has one.
    keep : {"nothing", "policies", "occupancies"}
        Whether the log keeps the plays, T·H·S·A numbers, and in which form.
    progress : bool

    Returns
    -------
    RunLog

    Raises
    ------
    InputError
        If the learner is of another problem or plays no policy, or a loss has another shape or is no number.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> losses = [[[[0.0, 1.0]]], [[[0.0, 1.0]]], [[[1.0, 0.0]]]]
    >>> nf.run(arms, nf.learners.FaceTracker(arms), losses).regrets      # uniform, then right, then wrong
    array([0.5, 0. , 1. ])
    """
    check_choice("keep", keep, get_args(Keep))
    problems = (mdp,) if isinstance(mdp, MDP) else tuple(mdp)
    if all(learner.mdp is not one and learner.mdp.fingerprint != one.fingerprint for one in problems):
        raise InputError(
            "the learner was built for another problem than the one it is run on: build it from the same MDP."
        )
    stream, rounds = _rounds(problems, losses, dynamics_of_round)
    seer = learner if isinstance(learner, Clairvoyant) else None
    accountant = _Accountant(problems, ties)
    entries: list[dict[str, Any]] = []
    plays: list[FloatArray] = []
    with progress_bar("playing", stream.n_rounds, progress) as advance:
        for t, (today, loss) in enumerate(rounds):
            read_only(loss)
            if seer is not None:
                _move(learner, today)
                seer.foresee(loss)
            policy = learner.act(t)
            try:
                played = as_played(today, policy)
            except InputError as error:
                raise InputError(f"in round {t}, of {type(learner).__name__}: {error}") from error
            entry, allowed = accountant.account(today, t, loss, played)
            entries.append(entry)
            _move(learner, today)
            if keep != "nothing":
                policy = policy if allowed is played else allowed
                plays.append(np.array(policy) if keep == "policies" else occupancy(today, policy))
            learner.observe(t, loss)
            advance(1)
    return RunLog(
        **{name: read_only(np.array([entry[name] for entry in entries])) for name in entries[0]},
        clairvoyant=seer is not None,
        kept=keep,
        plays=read_only(np.stack(plays)) if plays else None,
        round_names=names_of_rounds(stream),
    )


def _rounds(
    problems: tuple[MDP, ...], losses: Losses, dynamics_of_round: npt.ArrayLike | None
) -> tuple[LossStream, Iterator[tuple[MDP, FloatArray]]]:
    """The losses as a stream, and each round's problem and loss, one by one."""
    is_moving = len(problems) > 1 or dynamics_of_round is not None
    moving = MovingStream(problems, losses, dynamics_of_round) if is_moving else None
    mdp, stream = problems[0], as_stream(losses) if moving is None else moving.losses
    # From an unknown number of rounds one by one: the next may depend on what the learner does.
    at_once = 1 if stream.n_rounds is None else block_rounds(mdp, stream)
    if moving is not None:
        return stream, moving.rounds(at_once)
    return stream, ((mdp, loss) for loss in each_round(mdp, stream, at_once))


def _move(learner: Learner, mdp: MDP) -> None:
    """Tell a learner of dynamics that are not its own."""
    if learner.mdp is mdp or learner.mdp.fingerprint == mdp.fingerprint:
        return
    if not isinstance(learner, Moving):
        raise InputError(
            f"{type(learner).__name__} has no method move(mdp), but the dynamics move: "
            f"play FaceTracker, or give it one."
        )
    learner.move(mdp)


class _Accountant:
    """Keeps the accounts of a run, round by round."""

    def __init__(self, problems: tuple[MDP, ...], ties: TieRule) -> None:
        self.ties = ties
        # If dynamics move, a plan may lead to states that no policy could reach where it was made.
        self.only = reachable_problem(problems[0]) if len(problems) == 1 else None
        self.last: tuple[FloatArray, BoolArray, Comparator] | None = None  # loss, ties, first vertex

    def account(
        self, mdp: MDP, t: int, loss: FloatArray, policy: FloatArray
    ) -> tuple[dict[str, Any], FloatArray]:
        """What a round adds to the columns of a `RunLog`, and the policy [H, S, A] that counts as played."""
        from normalfan._kernels import accounting as compiled
        from normalfan._kernels.variation import moved_by

        problem = self.only or whole_problem(mdp)
        values, advantages, tied = compiled.settle(problem, loss, self.ties.rule(mdp))
        value = float(mdp.initial @ values[0])
        if not math.isfinite(value):
            raise overflow(t)
        kept, dimension = compiled.follow_plan(problem, tied, loss)
        old_loss, old_tied, old_comparator = self.last or (loss, tied, None)
        if self.last is not None:
            kept, _ = compiled.follow_plan(problem, old_tied, loss)  # the last face, in today's dynamics
        if (loss == np.inf).any():
            policy = _allowed_play(mdp, policy, loss, np.where(tied, 0.0, advantages), kept)
        found = compiled.account(problem, policy, loss, advantages, tied, kept)
        if self.last is None:
            found = found._replace(prices=0.0, selections=0.0, off_face_masses=0.0)
        comparator, apart, redirected = compiled.compare(problem, tied, uniform_policy(mdp), old_comparator)
        entry = {
            **found._asdict(),
            "values": value,
            "on_face": found.off_face_masses <= ON_FACE_TOLERANCE,
            "dimensions": dimension,
            "variations": moved_by(loss, old_loss),
            "path_lengths": apart,
            "causal_path_lengths": redirected,
        }
        self.last = np.array(loss), tied, comparator
        return entry, policy


def _allowed_play(
    mdp: MDP, policy: FloatArray, loss: FloatArray, advantages: FloatArray, kept: BoolArray
) -> FloatArray:
    """A policy [H, S, A] with the chance of what is not allowed moved to what the old plan does instead."""
    forbidden = loss == np.inf
    _, actions = restricted_backup(mdp, kept, np.where(kept, advantages, 0.0))
    instead = as_deterministic_policy(mdp, actions, ~forbidden)
    moved = np.where(forbidden, policy, 0.0).sum(axis=2, keepdims=True)
    return np.asarray(np.where(forbidden, 0.0, policy) + moved * instead)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Decomposition:
    """Regret = price + selection in every round after the first, where `on_face` is true.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0, 0]], initial=0, horizon=1)
    >>> losses = [[[[0.0, 0.0, 3.0]]], [[[2.0, 1.0, 0.0]]]]     # the best of the tie pays 1, the first 2
    >>> nf.decompose(nf.run(arms, nf.learners.FaceTracker(arms), losses))
    Decomposition: 2 rounds, regret 3 = first round 1 + price 1 + selection 1
    """

    log: RunLog  # the run whose regret is split
    regret: FloatArray  # [T] r_t, against the best of each round
    price: FloatArray  # [T] Γ_t, the least regret of staying on the previous face; 0 in round 0
    selection: FloatArray  # [T] ε_t, what the choice on the face lost; negative only where `on_face` is false
    on_face: BoolArray  # [T] whether the play was on the previous face; true in round 0

    @property
    def exact(self) -> bool:
        """Whether every play was on the previous face, so that the theorem applies to the whole run."""
        return bool(self.on_face.all())

    @property
    def residual(self) -> FloatArray:
        """[T]: regret − price − selection, which is rounding; 0 in round 0."""
        rest = self.regret - self.price - self.selection
        rest[0] = 0.0
        return rest

    @property
    def first_regret(self) -> float:
        """The regret of round 0, which has no previous face."""
        return float(self.regret[0])

    @property
    def total_regret(self) -> float:
        """The dynamic regret of the run."""
        return self.log.total_regret

    @property
    def total_price(self) -> float:
        """The sum of the prices."""
        return math.fsum(self.price)

    @property
    def total_selection(self) -> float:
        """The sum of the selection errors."""
        return math.fsum(self.selection)

    def cumulative(self) -> dict[str, FloatArray]:
        """Regret, price, selection, variations and path lengths, summed up to each round: arrays [T]."""
        return {name: np.cumsum(column) for name, column in self._amounts().items()}

    def to_frame(self) -> polars.DataFrame:
        """One row for each round, called by its name if the rounds have names."""
        import polars

        rounds = {"round": self.log.round_names or range(self.log.n_rounds)}
        flags = {"on_face": self.on_face, "dimension": self.log.dimensions}
        return polars.DataFrame(rounds | self._amounts() | flags)

    def plot(self) -> Any:
        """Draw regret, price and selection error, summed up to each round; returns a matplotlib figure."""
        figure, axes = new_figure("Cumulative regret = price + selection error", x="round")
        at = round_axis(axes, self.log.round_names, self.log.n_rounds)
        sums = self.cumulative()
        for name, style in (("regret", "-"), ("price", "--"), ("selection", ":")):
            axes.plot(at, sums[name], style, label=name)
        axes.legend(frameon=False)
        return figure

    def __repr__(self) -> str:
        parts = " + ".join(f"{name} {number(part)}" for name, part in self._parts().items())
        off = np.count_nonzero(~self.on_face)
        return (
            f"Decomposition: {counted(self.log.n_rounds, 'round')}, "
            f"regret {number(self.total_regret)} = {parts}" + (f"; {off:,} off the face" if off else "")
        )

    def _repr_html_(self) -> str:
        rows = [("regret", number(self.total_regret)), *((k, number(v)) for k, v in self._parts().items())]
        return html_table(f"Regret of {counted(self.log.n_rounds, 'round')}", ("part", "total"), rows)

    def _parts(self) -> dict[str, float]:
        return {
            "first round": self.first_regret,
            "price": self.total_price,
            "selection": self.total_selection,
        }

    def _amounts(self) -> dict[str, FloatArray]:
        return {
            "regret": self.regret,
            "price": self.price,
            "selection": self.selection,
            **{f"variation_{norm}": self.log.variation(norm) for norm in NORMS},
            "path_length": self.log.path_lengths,
            "causal_path_length": self.log.causal_path_lengths,
        }


def decompose(log: RunLog) -> Decomposition:
    """Split the regret of a run into price and selection error: r_t = Γ_t + ε_t after round 0.

    Parameters
    ----------
    log : RunLog

    Returns
    -------
    Decomposition

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> decompose(nf.run(arms, nf.learners.FaceTracker(arms), [[[[0.0, 1.0]]], [[[1.0, 0.0]]]]))
    Decomposition: 2 rounds, regret 1.5 = first round 0.5 + price 1 + selection 0
    """
    return Decomposition(log, log.regrets, log.prices, log.selections, log.on_face)
