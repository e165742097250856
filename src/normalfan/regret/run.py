"""A learner against a stream of losses.

The loop is the whole protocol: the learner acts, the round is accounted for, the learner observes.

    for round, loss in enumerate(losses):
        foresee(loss)            only of a clairvoyant learner
        policy = act(round)
        account(loss, policy)
        observe(round, loss)

The loop owns the counter, so a schedule cannot fall out of step. Losses may be an array, any stream of
`normalfan.problem.losses`, or any iterable; from an iterable one round is taken at a time and not before the
round before it is over, so an adversary may be a generator that looks at the learner.

    >>> from normalfan.learners.tracking.tracker import FaceTracker
    >>> arms = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    >>> losses = np.array([[0.0, 1.0], [0.0, 1.0], [1.0, 0.0]]).reshape(3, 1, 1, 2)
    >>> log = run(arms, FaceTracker(arms), losses)
    >>> log.regret, log.price                   # uniform at first, then right, then caught out
    (array([0.5, 0. , 1. ]), array([0., 0., 1.]))
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from normalfan.errors import InputError
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.learners.protocol import Clairvoyant, Learner
from normalfan.pricing.motion import NORMS
from normalfan.pricing.stream import block_rounds
from normalfan.problem.arrays import BoolArray, FloatArray, IntArray, check_finite, read_only
from normalfan.problem.losses import LossStream, as_stream
from normalfan.problem.mdp import MDP
from normalfan.progress import progress_bar
from normalfan.regret.accountant import Accountant, Entry

Keep: TypeAlias = Literal["nothing", "policies", "occupancies"]


@dataclass(frozen=True, slots=True, eq=False)
class RunLog:
    """Every round of a run. Round 0 has no past: its price, selection and motion are 0."""

    regret: FloatArray  # [T]  r_t = ⟨q_t, A_t⟩
    loss_paid: FloatArray  # [T]  ⟨q_t, ℓ_t⟩
    value: FloatArray  # [T]  J*_t, the best expected loss
    price: FloatArray  # [T]  Γ_t, of the crossing from the face of the round before
    selection: FloatArray  # [T]  ε_t, see `normalfan.regret.accountant`; negative off the face only
    on_face: BoolArray  # [T]  the play lay on the previous face; true in round 0
    off_face_mass: FloatArray  # [T]  expected number of steps that it did not
    dimension: IntArray  # [T]  of the optimal face of this round
    variations: FloatArray  # [T, 3]  ‖ℓ_t − ℓ_{t−1}‖ in the norms l1, l2, linf
    path_length: FloatArray  # [T]  L1 distance of consecutive comparators
    causal_path_length: FloatArray  # [T]  steps after their first disagreement
    clairvoyant: bool  # the learner was shown each loss before it acted
    kept: Keep
    plays: FloatArray | None  # [T, H, S, A]  policies or occupancies as `kept` says, None for nothing

    @property
    def n_rounds(self) -> int:
        return len(self.regret)

    @property
    def total_regret(self) -> float:
        """The dynamic regret, summed without rounding until the end."""
        return math.fsum(self.regret)

    def variation(self, norm: str = "l1") -> FloatArray:
        """[T]: how far the loss moved since the round before, in "l1", "l2" or "linf"."""
        if norm not in NORMS:
            raise InputError(f'norm is {norm!r}, but must be one of "l1", "l2", "linf": choose one.')
        return self.variations[:, NORMS.index(norm)]


def run(
    mdp: MDP,
    learner: Learner,
    losses: Any,
    *,
    ties: TieRule = DEFAULT_TIES,
    keep: Keep = "nothing",
    progress: bool = False,
) -> RunLog:
    """Play `learner` against `losses` and account for every round.

    `ties` decides what the accounts call optimal; give the learner the same rule if it has one.
    `keep`: whether the log holds the plays, as policies or as occupancies: T·H·S·A numbers.
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
        raise InputError("losses hold no round, but a run needs at least one: check the source.")
    return _log(entries, clairvoyant=seer is not None, keep=keep, plays=plays)


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


def _play(
    learner: Learner,
    accountant: Accountant,
    t: int,
    loss: FloatArray,
) -> tuple[Entry, FloatArray]:
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


def _log(entries: list[Entry], *, clairvoyant: bool, keep: Keep, plays: list[FloatArray]) -> RunLog:
    def column(name: str) -> Any:
        return read_only(np.array([getattr(entry, name) for entry in entries]))

    def motion(name: str) -> FloatArray:
        return read_only(np.array([getattr(entry.motion, name) for entry in entries]))

    return RunLog(
        regret=column("regret"),
        loss_paid=column("paid"),
        value=column("value"),
        price=column("price"),
        selection=column("selection"),
        on_face=column("on_face"),
        off_face_mass=column("off_face_mass"),
        dimension=column("dimension"),
        variations=motion("variations"),
        path_length=motion("path_length"),
        causal_path_length=motion("causal_path_length"),
        clairvoyant=clairvoyant,
        kept=keep,
        plays=read_only(np.stack(plays)) if plays else None,
    )
