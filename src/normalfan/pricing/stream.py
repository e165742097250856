"""A whole stream, priced in blocks (see `blocks`).

Rounds are independent once their faces are known, and a block begins with the last round of the block
before it, so each block is priced on its own: O(block) memory whatever the length of the stream, and
threads share the blocks out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable
from typing import Any, Literal, TypeAlias, cast

import numpy as np
import numpy.typing as npt

from normalfan.cores import default_threads
from normalfan.errors import InputError, check_choice, check_whole
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.pricing.blocks import BlockPricer, Columns, PolicyPricer
from normalfan.pricing.crossing import Against, read_plans
from normalfan.pricing.dynamics import NO_ROUND, ArrivingPairs, MovingStream, Problems
from normalfan.pricing.motion import PricedMotion, motion_of
from normalfan.pricing.moving import EVERY_DETAIL, MovingPricer
from normalfan.pricing.sharing import Block, Gathered, share_out
from normalfan.problem.arrays import mapping_under
from normalfan.problem.losses import (
    ArrayLosses,
    Losses,
    LossStream,
    are_rewards,
    as_stream,
    names_of_rounds,
    numbered,
    stored_blocks,
)
from normalfan.problem.mdp import MDP
from normalfan.progress import progress_bar

Detail: TypeAlias = Literal["full", "prices"] | Collection[str]

BLOCK_BYTES = 2**26
MOST_BLOCK_BYTES = 2**29
IN_MEMORY_BYTES = 2**28
SHARED_BYTES = 2**23
MOST_ROUNDS = 2**15
"""A block of losses has about the first size; beyond the second only where it costs no memory, and the third
if all losses are in memory anyway. Streams below the fourth are priced in less time than it takes to wake a
second thread. What is told of so many small rounds stays in the cache."""


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
    detail : {"full", "prices"} or collection of str, default "full"
        "prices" computes prices, values, crossings and dimensions only, faster; losses at states that no
        policy reaches are then not read at all. Or the names of what is wanted beside these, of `by_step`,
        `cells`, `cell_prices`, `variations`, `margins`, `margin_exact` and `advantage_gaps`, and with several
        problems `market_alone`, `dynamics_alone`, `transition_variations` and `effective_variations`.
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
    details = _read_detail(detail)
    if threads is not None:
        check_whole("threads", threads, "leave it out for all cores")
    options: Any = {"ties": ties, "details": details, "exact_when_ambiguous": exact_when_ambiguous}
    moving: MovingStream | ArrivingPairs | None = None
    if not isinstance(mdp, MDP):
        if not (isinstance(against, str) and against == "previous"):
            raise InputError(
                "against is not the plan of the round before, but with several problems no other is priced: "
                "leave it out, or see nf.replan for plans that are kept longer."
            )
        if losses is None:
            moving, threads = ArrivingPairs(cast("Any", mdp)), threads or 1
        else:
            moving = MovingStream(list(cast("Any", mdp)), losses, dynamics_of_round)
        mdp, stream = moving.problems[0], moving.losses
    elif losses is None or dynamics_of_round is not None:
        raise InputError(
            "one problem takes losses and no dynamics_of_round: pass losses, or a list of problems with the "
            "number of each round's."
        )
    else:
        stream = as_stream(losses)
    threads = threads or _worthwhile_threads(mdp, stream)
    rounds = block_rounds(mdp, stream, threads=threads)
    plans = read_plans(mdp, against, stream)
    n_rounds = stream.n_rounds
    work: Callable[..., Columns]
    blocks: Iterable[Block]
    if moving is not None and not moving.is_one_problem:
        work = MovingPricer(moving.at_source, len(moving.problems), **options)
        blocks, n_rounds = moving.blocks(rounds), len(moving.of_round) or None
    else:
        moving, pricer = None, BlockPricer(mdp, **options)
        unformed = pricer.sweep.forms_losses and mdp.allowed is None
        work, blocks = pricer, numbered(stored_blocks(stream, mdp.shape, rounds, unformed=unformed))
        if plans.policy is not None:
            work = PolicyPricer(pricer, plans.policy)
        elif plans.age != 1:
            halves = numbered(stream.blocks(mdp.shape, max(1, rounds // 2)))  # pairs have twice as many rows
            work, blocks = pricer.price_pairs, plans.made_for(mdp, halves)
    with progress_bar("pricing", n_rounds, progress) as advance:
        gathered = Gathered(n_rounds, advance)
        share_out(work, blocks, threads, gathered)
    columns = gathered.columns
    if not columns:
        raise InputError(NO_ROUND)
    if are_rewards(stream):
        columns["values"] = 0.0 - columns["values"]
    return motion_of(
        columns,
        None if moving is None else np.array(moving.of_round),
        round_names=names_of_rounds(stream),
        labels=mdp.labels,
        plans=plans,
        rewards=are_rewards(stream),
    )


def _read_detail(detail: Detail) -> Collection[str]:
    """What is to be told beside prices."""
    if isinstance(detail, str) or not isinstance(detail, Collection):
        check_choice("detail", detail, ("full", "prices"))
        return EVERY_DETAIL if detail == "full" else ()
    for name in detail:
        check_choice("detail", name, EVERY_DETAIL)
    return {*detail, "variations"} if "effective_variations" in detail else {*detail}


def block_rounds(mdp: MDP, stream: LossStream, *, threads: int = 1) -> int:
    """How many new rounds make a block, where so many threads work on blocks."""
    # Sweeps advance 56 or 8 rounds at a time, and a block shares one round with the last: one less than a
    # multiple of these keeps them full.
    round_bytes = 8 * math.prod(mdp.shape)
    stays = stream.is_view and isinstance(stream, ArrayLosses) and mapping_under(stream.array) is None
    size = IN_MEMORY_BYTES if stays else BLOCK_BYTES
    rounds = 1
    for multiple in (56, 8):
        blocks = max(1, min(size // (round_bytes * threads), MOST_ROUNDS) // multiple)
        if stream.is_view or blocks * multiple * round_bytes <= MOST_BLOCK_BYTES:
            rounds = blocks * multiple - 1
            break
    n_rounds = stream.n_rounds
    if threads == 1 or n_rounds is None:
        return rounds
    # As many blocks for each of them.
    blocks = threads * math.ceil(n_rounds / (threads * rounds))
    return min(rounds, 8 * math.ceil((n_rounds / blocks + 1) / 8) - 1)


def _worthwhile_threads(mdp: MDP, stream: LossStream) -> int:
    """All cores, unless the stream is too short to share out, or its blocks too large to hold so many."""
    round_bytes = 8 * math.prod(mdp.shape)
    if stream.n_rounds is not None and stream.n_rounds * round_bytes < SHARED_BYTES:
        return 1
    most = MOST_BLOCK_BYTES // (8 * round_bytes) if not stream.is_view else default_threads()
    return max(1, min(default_threads(), most))
