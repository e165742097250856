"""A learner against a stream of losses, round by round: foresee if clairvoyant, act, account, observe."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any, Literal, TypeAlias

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.protocol import Clairvoyant, Learner
from normalfan.pricing.motion import in_norm
from normalfan.pricing.stream import block_rounds
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray, check_finite, read_only
from normalfan.problem.losses import Losses, LossStream, as_stream, names_of_rounds
from normalfan.problem.mdp import MDP
from normalfan.progress import progress_bar
from normalfan.regret.accountant import Accountant, Entry
from normalfan.text import counted, html_table, number

Keep: TypeAlias = Literal["nothing", "policies", "occupancies"]

# What an `Entry` calls the first fields of a `RunLog`, in the same order.
_COLUMNS = (
    *("regret", "loss_paid", "value", "price", "selection", "on_face", "off_face_mass", "dimension"),
    *("variations", "path_length", "causal_path_length"),
)


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
    mdp: MDP,
    learner: Learner,
    losses: Losses,
    *,
    ties: TieRule = DEFAULT_TIES,
    keep: Keep = "nothing",
    progress: bool = False,
) -> RunLog:
    """Play a learner against a stream of losses and account for every round.

    Parameters
    ----------
    mdp : MDP
    learner : Learner
        Built for the same problem; see `normalfan.learners`.
    losses : array [T, H, S, A], LossStream or iterable of arrays [H, S, A]
        From an iterable a round is taken only when the one before is over: an adversary may see the learner.
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
        If the learner is of another problem or plays no policy, or a loss has another shape or is not finite.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> losses = [[[[0.0, 1.0]]], [[[0.0, 1.0]]], [[[1.0, 0.0]]]]
    >>> nf.run(arms, nf.learners.FaceTracker(arms), losses).regrets      # uniform, then right, then wrong
    array([0.5, 0. , 1. ])
    """
    if keep not in ("nothing", "policies", "occupancies"):
        raise InputError(
            f'keep is {keep!r}, but must be "nothing", "policies" or "occupancies": choose one of them.'
        )
    if learner.mdp is not mdp and learner.mdp.fingerprint != mdp.fingerprint:
        raise InputError(
            "the learner was built for another problem than the one it is run on: build it from the same MDP."
        )
    stream = as_stream(losses)
    seer = learner if isinstance(learner, Clairvoyant) else None
    accountant = Accountant(mdp, ties=ties)
    entries: list[Entry] = []
    plays: list[FloatArray] = []
    with progress_bar("playing", stream.n_rounds, progress) as advance:
        for t, loss in enumerate(_rounds(mdp, stream)):
            if seer is not None:
                seer.foresee(loss)
            entry, policy = _play(learner, accountant, t, loss)
            entries.append(entry)
            if keep != "nothing":
                plays.append(np.array(policy) if keep == "policies" else entry.visits)
            learner.observe(t, loss)
            advance(1)
    if not entries:
        raise InputError("losses have no round, but a run needs at least one: check the source.")
    columns: dict[str, Any] = {
        field.name: read_only(np.array([getattr(entry, name) for entry in entries]))
        for field, name in zip(fields(RunLog), _COLUMNS, strict=False)
    }
    return RunLog(
        **columns,
        clairvoyant=seer is not None,
        kept=keep,
        plays=read_only(np.stack(plays)) if plays else None,
        round_names=names_of_rounds(stream),
    )


def _rounds(mdp: MDP, stream: LossStream) -> Iterator[FloatArray]:
    """The rounds one by one; each block but the first begins with a round already seen."""
    done = 0
    size = 1 if stream.n_rounds is None else block_rounds(mdp, is_view=stream.is_view)
    for block in stream.blocks(mdp.shape, size):
        shared = min(done, 1)
        check_finite("losses", block, offset=(done - shared,))
        for loss in block[shared:]:
            yield read_only(loss)
        done += len(block) - shared


def _play(learner: Learner, accountant: Accountant, t: int, loss: FloatArray) -> tuple[Entry, FloatArray]:
    policy = learner.act(t)
    try:
        with np.errstate(over="ignore", invalid="ignore"):  # said below, in words
            entry = accountant.account(loss, policy)
    except InputError as error:
        raise InputError(f"in round {t}, of {type(learner).__name__}: {error}") from error
    if not math.isfinite(entry.value):
        raise InputError(
            f"losses of round {t} add up beyond the range of float64, but their sum over a horizon "
            f"must be finite: rescale the losses."
        )
    return entry, policy
