"""A whole stream, priced in blocks (see `blocks`).

Rounds are independent once their faces are known, and a block begins with the last round of the block
before it, so each block is priced on its own: O(block) memory whatever the length of the stream, and
threads share the blocks out.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import fields
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from normalfan.cores import default_threads
from normalfan.errors import InputError, check_choice, check_whole
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.blocks import BlockPricer, Columns, PolicyPricer
from normalfan.pricing.dynamics import MovingBlock, MovingStream, Problems, blocks_of_pairs
from normalfan.pricing.motion import Moved, PricedMotion
from normalfan.pricing.moving import MovingPricer
from normalfan.pricing.plans import PREVIOUS, Against, Plans, read_plans
from normalfan.problem.arrays import FloatArray, IntArray, read_only
from normalfan.problem.losses import ArrayLosses, Losses, LossStream, are_rewards, as_stream, names_of_rounds
from normalfan.problem.mdp import MDP, Labels
from normalfan.progress import progress_bar

Detail = Literal["full", "prices"]

MOVED_COLUMNS = [column.name for column in fields(Moved)][1:]

BLOCK_BYTES = 2**26
MOST_BLOCK_BYTES = 2**29
SHARED_BYTES = 2**23
"""A block of losses has about the first size; beyond the second only where it costs no memory. Streams below
the third are priced in less time than it takes to wake a second thread."""


def price_stream(
    mdp: Problems,
    losses: Losses | None = None,
    *,
    dynamics_of_round: npt.ArrayLike | None = None,
    against: Against = "previous",
    ties: TieRule = DEFAULT_TIES,
    progress: bool = False,
    detail: Detail = "full",
    exact_when_ambiguous: bool = False,
    threads: int | None = None,
) -> PricedMotion:
    """Price every round of a stream against the optimal face of the round before it, or against any plan.

    The price of round t is the least regret, under its loss ℓ_t, of staying with plans that were optimal
    under ℓ_{t−1}:  Γ_t = min_{u ∈ F(ℓ_{t−1})} ⟨u, ℓ_t⟩ − min_q ⟨q, ℓ_t⟩,  with Γ_0 = 0.

    Parameters
    ----------
    mdp : MDP, sequence of MDP, or iterable of (MDP, array_like [H, S, A])
        Several, if the dynamics move: see `dynamics_of_round`. Or pairs of a problem and a loss, instead of
        `losses`. The price is then that of the policies that do at every state what was optimal the round
        before, under today's dynamics; see `PricedMotion.until_surprise`, `market_alone`, `dynamics_alone`.
    losses : array_like [T, H, S, A], LossStream, or iterable of array_like [H, S, A]
        Rewards: pass `nf.rewards(array)`. Prices times quantities: `nf.FactoredLosses`. The same at every
        step: `nf.ArrayLosses(array, axes="TSA")`. Files: `nf.io.open_losses`. inf: not allowed.
        With several problems also one `nf.FactoredLosses` for each, with the same coefficients: the price is
        then split by source, prices against equipment.
    dynamics_of_round : array_like of int [T], optional
        Which of several problems each round has.
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
    threads : int, optional
        How many threads share the rounds out, by default one for each core (OMP_NUM_THREADS may say fewer),
        or one where there is little to do; the numbers are the same for any.

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
    if threads is not None:
        check_whole("threads", threads, "leave it out for all cores")
    options: Any = {"full": detail == "full", "exact_when_ambiguous": exact_when_ambiguous}
    if not isinstance(mdp, MDP):
        if not (isinstance(against, str) and against == "previous"):
            raise InputError(
                "against is not the plan of the round before, but with several problems no other is priced: "
                "leave it out, or see nf.replan for plans that are kept longer."
            )
        return _price_moving(mdp, losses, dynamics_of_round, ties, options, progress, threads)
    if losses is None or dynamics_of_round is not None:
        raise InputError(
            "one problem takes losses and no dynamics_of_round: pass losses, or a list of problems with the "
            "number of each round's."
        )
    stream = as_stream(losses)
    threads = threads or _worthwhile_threads(mdp, stream)
    pricer = BlockPricer(mdp, ties, **options)
    plans = read_plans(mdp, against, stream)
    rounds = block_rounds(mdp, is_view=stream.is_view, threads=threads, n_rounds=stream.n_rounds)
    work: Callable[..., Columns] = pricer
    stored = stream.stored_blocks if isinstance(stream, ArrayLosses) else stream.blocks
    blocks: Iterable[tuple[Any, ...]] = numbered(stored(mdp.shape, rounds))
    if plans.policy is not None:
        work = PolicyPricer(pricer, plans.policy)
    elif plans.age != 1:
        halves = numbered(stream.blocks(mdp.shape, max(1, rounds // 2)))  # pairs have twice as many rows
        work, blocks = pricer.price_pairs, plans.made_for(mdp, halves)
    columns = _all_columns(work, blocks, threads, stream.n_rounds, progress)
    return motion_of(columns, stream, mdp.labels, plans=plans)


def _price_moving(
    problems: Any, losses: Losses | None, dynamics_of_round: Any, ties: TieRule, options: Any,
    progress: bool, threads: int | None,
) -> PricedMotion:  # fmt: skip
    if losses is None:
        numbers, labels = list[int](), list[Labels]()
        pricer = MovingPricer(ties, **options)
        blocks = _noting(blocks_of_pairs(problems), numbers, labels)
        columns = _all_columns(pricer, blocks, threads or 1, None, progress)
        return motion_of(columns, None, labels[0], dynamics=np.array(numbers))
    if dynamics_of_round is None:
        raise InputError(
            "dynamics_of_round is missing, but several problems do not tell which one a round has: pass the "
            "index of each round's."
        )
    moving = MovingStream(list(problems), losses, dynamics_of_round)
    first, stream = moving.problems[0], moving.losses
    if all(problem is first for problem in moving.problems) and stream.n_rounds is not None:
        return price_stream(
            first,
            stream,
            ties=ties,
            progress=progress,
            detail="full" if options["full"] else "prices",
            exact_when_ambiguous=options["exact_when_ambiguous"],
            threads=threads,
        )
    threads = threads or _worthwhile_threads(first, stream)
    pricer = MovingPricer(ties, at_source=moving.at_source, most_problems=len(moving.problems), **options)
    rounds = block_rounds(first, is_view=stream.is_view)
    columns = _all_columns(pricer, moving.blocks(rounds), threads, len(moving.of_round), progress)
    return motion_of(columns, stream, first.labels, dynamics=moving.of_round)


def _all_columns(
    work: Callable[..., Columns],
    blocks: Iterable[tuple[Any, ...]],
    threads: int,
    n_rounds: int | None,
    progress: bool,
) -> Columns:
    parts = []
    with progress_bar("pricing", n_rounds, progress) as advance:
        for part in _in_order(work, blocks, threads):
            parts.append(part)
            advance(len(part["prices"]))
    if not parts:
        raise InputError("losses have no round, but a stream needs at least one: check the source.")
    return {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}


def motion_of(
    columns: Columns,
    stream: LossStream | None,
    labels: Labels,
    *,
    dynamics: IntArray | None = None,
    plans: Plans = PREVIOUS,
) -> PricedMotion:
    """What was priced, of columns that may have those of moving dynamics beside them."""
    if stream is not None and are_rewards(stream):
        columns["values"] = 0.0 - columns["values"]
    told = {name: read_only(column) for name, column in columns.items()}
    moved = None
    if dynamics is not None:
        own = {name: told.pop(name) for name in MOVED_COLUMNS if name in told}
        moved = Moved(read_only(dynamics), **own)
    return PricedMotion(
        **told,
        round_names=None if stream is None else names_of_rounds(stream),
        labels=labels,
        plans=plans,
        moved=moved,
        rewards=stream is not None and are_rewards(stream),
    )


def _noting(blocks: Iterable[MovingBlock], numbers: list[int], labels: list[Labels]) -> Iterator[MovingBlock]:
    """The blocks, while the numbers of their rounds' problems are noted, in the order of appearance."""
    known: dict[str, int] = {}
    for block in blocks:
        labels.append(block[3][0].labels)
        for problem in block[3][block[1] :]:
            numbers.append(known.setdefault(problem.fingerprint, len(known)))
        yield block


def block_rounds(mdp: MDP, *, is_view: bool, threads: int = 1, n_rounds: int | None = None) -> int:
    """How many new rounds make a block, where so many threads work on blocks."""
    # Sweeps advance 56 or 8 rounds at a time, and a block shares one round with the last: one less than a
    # multiple of these keeps them full.
    round_bytes = 8 * math.prod(mdp.shape)
    rounds = 1
    for multiple in (56, 8):
        blocks = max(1, BLOCK_BYTES // (multiple * round_bytes * threads))
        if is_view or blocks * multiple * round_bytes <= MOST_BLOCK_BYTES:
            rounds = blocks * multiple - 1
            break
    if threads == 1 or n_rounds is None:
        return rounds
    # A block for each of them at least.
    return min(rounds, 8 * math.ceil((n_rounds / threads + 1) / 8) - 1)


def _worthwhile_threads(mdp: MDP, stream: LossStream) -> int:
    """All cores, unless the stream is too short to share out, or its blocks too large to hold so many."""
    round_bytes = 8 * math.prod(mdp.shape)
    if stream.n_rounds is not None and stream.n_rounds * round_bytes < SHARED_BYTES:
        return 1
    most = MOST_BLOCK_BYTES // (8 * round_bytes) if not stream.is_view else default_threads()
    return max(1, min(default_threads(), most))


def numbered(blocks: Iterable[FloatArray]) -> Iterator[tuple[int, int, FloatArray]]:
    """Each block with the number of its first round and of the rounds it shares with the last."""
    done = 0
    for block in blocks:
        shared = min(done, 1)
        yield done - shared, shared, block
        done += len(block) - shared


def _in_order(
    work: Callable[..., Columns], blocks: Iterable[tuple[Any, ...]], threads: int
) -> Iterator[Columns]:
    """Apply `work` to blocks by `threads` threads, reading no further ahead than they need."""
    if threads == 1:
        yield from (work(*block) for block in blocks)
        return
    with ThreadPoolExecutor(threads) as pool:
        pending: deque[Future[Columns]] = deque()
        for block in blocks:
            pending.append(pool.submit(work, *block))
            if len(pending) > threads:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
