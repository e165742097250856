"""A whole stream, priced in blocks.

Rounds are independent once their faces are known, and a block begins with the last round of the block
before it, so each block is priced on its own: O(block) memory whatever the length of the stream, and
threads share the blocks out. The heavy arithmetic is one fused compiled sweep per block (see `kernels`);
rounds in which a tie could be read in two ways are rare, and are read again with care (see `reading`).
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from normalfan.errors import InputError, check_choice, check_whole
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.attribution import shortest_named
from normalfan.pricing.kernels import Tables, sweep_for
from normalfan.pricing.motion import PricedMotion, each_array
from normalfan.pricing.pairs import PairPricer, PolicyPricer
from normalfan.pricing.plans import Against, read_plans
from normalfan.pricing.reading import Doubts, Reader, Reading
from normalfan.problem.arrays import FloatArray, IntArray, check_losses, read_only
from normalfan.problem.losses import Losses, are_rewards, as_stream, forbid, names_of_rounds
from normalfan.problem.mdp import MDP, check_way_on
from normalfan.progress import progress_bar

if TYPE_CHECKING:
    from normalfan._kernels.buffers import Swept

Detail = Literal["full", "prices"]

ROW_COLUMNS = ("prices", "crossed", "dimensions")
PRICE_COLUMNS = (*ROW_COLUMNS, "values")
DETAIL_COLUMNS = ("by_step", "cells", "cell_prices", "margins", "margin_exact", "advantage_gaps")
"""What a sweep tells of a round: always, and in full detail."""

BLOCK_BYTES = 2**26
MOST_BLOCK_BYTES = 2**29
"""A block of losses has about the first size; beyond the second only where it costs no memory."""

READING_BYTES = 2**24
"""What readings may take at a time."""


def price_stream(
    mdp: MDP,
    losses: Losses,
    *,
    against: Against = "previous",
    ties: TieRule = DEFAULT_TIES,
    progress: bool = False,
    detail: Detail = "full",
    exact_when_ambiguous: bool = False,
    threads: int = 1,
) -> PricedMotion:
    """Price every round of a stream against the optimal face of the round before it, or against any plan.

    The price of round t is the least regret, under its loss ℓ_t, of staying with plans that were optimal
    under ℓ_{t−1}:  Γ_t = min_{u ∈ F(ℓ_{t−1})} ⟨u, ℓ_t⟩ − min_q ⟨q, ℓ_t⟩,  with Γ_0 = 0.

    Parameters
    ----------
    mdp : MDP
    losses : array_like [T, H, S, A], LossStream, or iterable of array_like [H, S, A]
        Rewards: pass `nf.rewards(array)`. Prices times quantities: `nf.FactoredLosses`. The same at every
        step: `nf.ArrayLosses(array, axes="TSA")`. Files: `nf.io.open_losses`. inf: not allowed.
    against : {"previous", "first"}, int, losses or array_like, default "previous"
        Which plan is priced: that of so many rounds before (k rounds are kept in memory, and the first k
        have no such plan: their price is 0); the "first" one, never changed; those of forecasts, one for
        each round; a policy, [H, S, A] or actions [H, S]. `crossed` and `variations` then compare a round
        with the loss that the plan was made for; with a policy, `crossed` says that it is not optimal, and
        `variations` are as before.
    ties : TieRule, optional
        Which differences count as none.
    progress : bool, default False
        Show a progress bar.
    detail : {"full", "prices"}, default "full"
        "prices" computes prices, values, crossings and dimensions only, faster; losses at states that no
        policy reaches are then not read at all.
    exact_when_ambiguous : bool, default False
        Decide rounds that depend on a near-tie in rational arithmetic (slow).
    threads : int, default 1
        How many threads share the rounds out; the numbers are the same for any.

    Returns
    -------
    PricedMotion

    Raises
    ------
    InputError
        If there is no round, if a loss has the wrong shape or is no number, if forecasts do not fit the
        rounds, or if an option is unknown.

    Examples
    --------
    >>> import normalfan as nf
    >>> losses = nf.ArrayLosses([[0.0, 1.0], [0.0, 9.0], [2.0, 1.5]], axes="TA")
    >>> motion = nf.price_stream(nf.MDP([[0, 0]], initial=0, horizon=1), losses)
    >>> motion.prices, motion.variation("l1")                     # far but free, then near but priced
    (array([0. , 0. , 0.5]), array([0. , 8. , 9.5]))
    >>> nf.price_stream(nf.MDP([[0, 0]], initial=0, horizon=1), losses, against=[[1]]).prices     # my plan
    array([1., 9., 0.])
    """
    check_choice("detail", detail, ("full", "prices"))
    check_whole("threads", threads, "leave it out for one thread")
    stream = as_stream(losses)
    pricer = BlockPricer(mdp, ties, full=detail == "full", exact_when_ambiguous=exact_when_ambiguous)
    plans = read_plans(mdp, against, stream)
    rounds = block_rounds(mdp, is_view=stream.is_view)
    work: Callable[..., PricedMotion] = pricer
    blocks: Iterable[tuple[Any, ...]] = numbered(stream.blocks(mdp.shape, rounds))
    if plans.policy is not None:
        work = PolicyPricer(pricer, plans.policy)
    elif plans.age != 1:
        halves = numbered(stream.blocks(mdp.shape, max(1, rounds // 2)))  # pairs have twice as many rows
        work, blocks = PairPricer(pricer), plans.made_for(mdp, halves)
    parts = []
    with progress_bar("pricing", stream.n_rounds, progress) as advance:
        for part in _in_order(work, blocks, threads):
            parts.append(part)
            advance(len(part.prices))
    if not parts:
        raise InputError("losses have no round, but a stream needs at least one: check the source.")
    joined = each_array(lambda *arrays: read_only(np.concatenate(arrays)), *parts)
    told: dict[str, Any] = {
        "round_names": names_of_rounds(stream),
        "labels": mdp.labels,
        "plans": plans,
    }
    if are_rewards(stream):
        told |= {"values": read_only(0.0 - joined["values"]), "rewards": True}
    return PricedMotion(**(joined | told))


def block_rounds(mdp: MDP, *, is_view: bool) -> int:
    """How many new rounds make a block."""
    # Sweeps advance 56 or 8 rounds at a time, and a block shares one round with the last: one less than a
    # multiple of these keeps them full.
    round_bytes = 8 * math.prod(mdp.shape)
    for multiple in (56, 8):
        blocks = max(1, BLOCK_BYTES // (multiple * round_bytes))
        if is_view or blocks * multiple * round_bytes <= MOST_BLOCK_BYTES:
            return blocks * multiple - 1
    return 1


class BlockPricer:
    """Prices one block of rounds."""

    def __init__(self, mdp: MDP, ties: TieRule, *, full: bool, exact_when_ambiguous: bool) -> None:
        self.mdp = mdp
        self.ties = ties
        self.full = full
        self.detail_columns = DETAIL_COLUMNS if full else ()
        self.exact_when_ambiguous = exact_when_ambiguous
        self.tables = Tables(mdp)
        self.sweep = sweep_for(self.tables, ties, full=full)
        self.reader = Reader(self.tables, ties, exactly=exact_when_ambiguous)

    def __call__(self, first_round: int, shared: int, losses: FloatArray) -> PricedMotion:
        """Price a block that begins with round `first_round`; its `shared` rounds are the last block's."""
        given, losses = losses, forbid(self.mdp, losses)
        swept = self.sweep(losses)
        if swept.closed.any() or not swept.finite.all():
            check_losses("losses", given, offset=(first_round,))
            for t in np.flatnonzero(swept.closed).tolist():
                check_way_on(self.mdp, losses[t] < np.inf, f"losses[{first_round + t}]")
            if not swept.finite.all():
                raise overflow(first_round + int(swept.finite.argmin()))
        full: dict[str, Any] = {"variations": _variations(losses, first_round)} if self.full else {}
        doubts = self._settle(losses, swept, shared)
        if self.full:
            self.name_moves(losses, swept.cells)
        columns = {name: getattr(swept, name) for name in (*PRICE_COLUMNS, *self.detail_columns)}
        motion = PricedMotion(**columns, **vars(doubts), **full)
        return PricedMotion(**each_array(lambda rounds: rounds[shared:], motion))

    def name_moves(self, losses: FloatArray, cells: IntArray) -> None:
        """Call the moves of the costliest cells by their shortest names, in place."""
        rounds = np.flatnonzero(cells[:, 0] >= 0)
        steps, states = cells[rounds, 0], cells[rounds, 1]
        charged = losses[rounds, steps, states]
        for column in (2, 3):
            moves = np.stack([states, cells[rounds, column]], axis=1)
            cells[rounds, column] = shortest_named(self.tables, charged, steps, moves)

    def _settle(self, losses: FloatArray, swept: Swept, shared: int) -> Doubts:
        """Enclose every price; rounds that the sweep could not clear are read again and replaced in it."""
        doubts, wide = self.reader.doubts_of_cleared(swept.prices, swept.sizes)
        unclear = np.flatnonzero(swept.near | np.append(False, swept.near[:-1]) | wide)
        unclear = unclear[unclear >= shared]
        at_once = max(1, READING_BYTES // (40 * math.prod(self.mdp.shape)))
        for first in range(0, len(unclear), at_once):
            self._read_again(losses, unclear[first : first + at_once], swept, doubts)
        return doubts

    def _read_again(self, losses: FloatArray, chosen: IntArray, swept: Swept, doubts: Doubts) -> None:
        """Replace the chosen rounds by what a careful reading says of them."""
        days = np.union1d(chosen, np.maximum(chosen - 1, 0))
        readings: list[Reading] = []
        for day in days.tolist():
            is_same = day - 1 in days and np.array_equal(losses[day - 1], losses[day])
            readings.append(readings[-1] if is_same else self.reader.read(losses[day]))
        # Advantages are a loss whose values are 0: swept, they give the rows that these readings mean.
        rows = self.sweep(np.stack([one.advantages for one in readings]))
        places = np.searchsorted(days, chosen)
        for name in (*ROW_COLUMNS, *self.detail_columns):
            getattr(swept, name)[chosen] = getattr(rows, name)[places]
        for t, at in zip(chosen.tolist(), places.tolist(), strict=True):
            before = readings[at - 1] if t > 0 else None
            doubts.enclose(t, float(swept.prices[t]), self.reader, before, readings[at])


def _variations(losses: FloatArray, first_round: int) -> FloatArray:
    """‖ℓ_t − ℓ_{t−1}‖ in L1, L2 and L∞, [B, 3]."""
    from normalfan._kernels.variation import variations

    moved: FloatArray
    moved, all_finite = variations(losses)
    if not all_finite:  # at a state that no policy reaches, or a distance beyond all floats
        check_losses("losses", losses, offset=(first_round,))
        raise overflow(first_round + int(np.isfinite(moved).all(axis=1).argmin()))
    return moved


def overflow(number: int) -> InputError:
    """The refusal of a round whose losses float64 cannot add."""
    return InputError(
        f"losses of round {number} add up beyond the range of float64, but sums over a horizon and "
        f"differences from the round before must be finite: rescale the losses."
    )


def numbered(blocks: Iterable[FloatArray]) -> Iterator[tuple[int, int, FloatArray]]:
    """Each block with the number of its first round and of the rounds it shares with the last."""
    done = 0
    for block in blocks:
        shared = min(done, 1)
        yield done - shared, shared, block
        done += len(block) - shared


def _in_order(
    work: Callable[..., PricedMotion],
    blocks: Iterable[tuple[Any, ...]],
    threads: int,
) -> Iterator[PricedMotion]:
    """Apply `work` to blocks by `threads` threads, reading no further ahead than they need."""
    if threads == 1:
        yield from (work(*block) for block in blocks)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[PricedMotion]] = deque()
        for block in blocks:
            pending.append(pool.submit(work, *block))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
