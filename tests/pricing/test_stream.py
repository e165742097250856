"""The engine against exact rationals and against the definition, on many small problems."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from oracles import exact_mask, exact_price, exact_value
from problems import random_problem
from soaking import repeated

import normalfan as nf
from normalfan import cone_margin, optimal_face, price, price_stream
from normalfan.pricing.blocks import DETAILS
from normalfan.pricing.moving import MOVED_DETAILS
from normalfan_paper.linear_program import LP_TOLERANCE, lp_price

CHUNKS, PROBLEMS_PER_CHUNK = repeated(4, 20), 100


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_streams_agree_with_exact_rationals(chunk: int) -> None:
    rng = np.random.default_rng([chunk, 1])
    seen_free, seen_priced, seen_degenerate, seen_ambiguous = 0, 0, 0, 0
    for _ in range(PROBLEMS_PER_CHUNK):
        problem = random_problem(rng)
        kind = str(rng.choice(problem.kinds()))
        mdp = problem.mdp(kind)
        motion = price_stream(mdp, problem.losses)
        masks = [exact_mask(problem, loss) for loss in problem.losses]
        faces = [optimal_face(mdp, loss) for loss in problem.losses]
        for t, loss in enumerate(problem.losses):
            np.testing.assert_array_equal(faces[t].mask, masks[t])
            dimension = masks[t].sum() - masks[t].any(axis=2).sum()
            assert motion.dimensions[t] == faces[t].dimension == dimension
            assert motion.values[t] == pytest.approx(float(exact_value(problem, loss)), rel=1e-12, abs=1e-12)
            if t == 0:
                assert motion.prices[t] == 0
                assert not motion.crossed[t]
                continue
            expected = exact_price(problem, problem.losses[t - 1], loss)
            assert motion.prices[t] == pytest.approx(float(expected), rel=1e-12, abs=0)
            assert price(faces[t - 1], loss).price == pytest.approx(float(expected), rel=1e-12, abs=0)
            assert (motion.prices[t] == 0) == faces[t - 1].meets(faces[t]) == (expected == 0)
            assert motion.crossed[t] == (masks[t] != masks[t - 1]).any()
            assert motion.lowest_prices[t] <= motion.prices[t] <= motion.highest_prices[t]
            seen_ambiguous += motion.ambiguous[t]
            assert motion.by_step[t].sum() == pytest.approx(motion.prices[t], rel=1e-12, abs=0)
            seen_free += expected == 0
            seen_priced += expected > 0
            seen_degenerate += dimension > 0
    assert min(seen_free, seen_priced, seen_degenerate) > 20
    # Thirds are no floats: a tie of the rational problem may be a difference of 1e-16 in the one given.
    assert seen_ambiguous < 0.05 * (seen_free + seen_priced)


@pytest.mark.parametrize("chunk", range(CHUNKS))
def test_prices_agree_with_the_definition_by_linear_programs(chunk: int) -> None:
    rng = np.random.default_rng([chunk, 2])
    for _ in range(PROBLEMS_PER_CHUNK):
        problem = random_problem(rng, rounds=2)
        mdp = problem.mdp()
        previous, loss = problem.losses.astype(float)
        by_definition = lp_price(mdp, previous, loss)
        assert price_stream(mdp, problem.losses).prices[1] == pytest.approx(by_definition, abs=LP_TOLERANCE)


@pytest.mark.parametrize("chunk", range(4))
def test_margins_of_streams_are_those_of_single_rounds(chunk: int) -> None:
    """`cone_margin` is tested against enumeration; streams use a cheaper bound where it is not exact."""
    rng = np.random.default_rng([chunk, 3])
    exact, bounds = 0, 0
    for _ in range(60):
        problem = random_problem(rng)
        mdp = problem.mdp(str(rng.choice(problem.kinds())))
        motion = price_stream(mdp, problem.losses)
        for t, loss in enumerate(problem.losses):
            single = cone_margin(mdp, loss)
            gap = motion.advantage_gaps[t]
            assert gap == pytest.approx(single.advantage_gap, rel=1e-12)
            if motion.margin_exact[t]:
                assert motion.margins[t] == pytest.approx(single.value, rel=1e-12)
                exact += np.isfinite(single.value)
            else:
                assert motion.margins[t] <= single.value * (1 + 1e-12)
                bounds += 1
    assert min(exact, bounds) > 20


@pytest.mark.parametrize("chunk", range(4))
def test_factored_losses_are_priced_as_the_array_that_they_stand_for(chunk: int) -> None:
    """To the bit, though sweeps over successors form them on the way: near-ties, rewards and all."""
    rng = np.random.default_rng([chunk, 4])
    near = 0
    for _ in range(30):
        problem = random_problem(rng)
        mdp = problem.mdp(str(rng.choice(problem.kinds())))
        rounds = int(rng.integers(1, 30))
        features = rng.integers(-2, 3, (3, *mdp.shape)) * rng.integers(0, 2, (3, *mdp.shape))
        factored = nf.FactoredLosses(rng.integers(-2, 3, (rounds, 3)) / 3, features)
        (formed,) = factored.blocks(mdp.shape, rounds)
        for one, other in ((factored, formed), (nf.rewards(factored), nf.rewards(formed))):
            for detail in ("full", "prices"):
                motion, expected = (price_stream(mdp, losses, detail=detail) for losses in (one, other))
                assert vars(motion).keys() == vars(expected).keys()
                for name, column in vars(expected).items():
                    if isinstance(column, np.ndarray):
                        assert column.tobytes() == vars(motion)[name].tobytes(), name
                near += int(motion.ambiguous.sum())
    assert near > 0


@pytest.mark.parametrize("chunk", range(4))
def test_details_by_name_are_those_of_full_detail(chunk: int) -> None:
    rng = np.random.default_rng([chunk, 5])
    for _ in range(10):
        problem = random_problem(rng)
        mdp = problem.mdp(str(rng.choice(problem.kinds())))
        plan = np.zeros(mdp.shape[:2], dtype=int)
        for options in ({}, {"against": "first"}, {"against": plan}):
            full = price_stream(mdp, problem.losses, **options)
            for asked in ([], ["variations"], rng.choice(sorted(DETAILS), 2), DETAILS):
                motion = price_stream(mdp, problem.losses, detail=tuple(asked), **options)
                assert vars(full).keys() - vars(motion).keys() == DETAILS - {*asked}
                for name in vars(motion).keys() - {"plans", "labels"}:
                    np.testing.assert_array_equal(getattr(motion, name), getattr(full, name), err_msg=name)
                frame = motion.to_frame()
                assert frame.equals(full.to_frame().select(frame.columns))


def test_details_of_moving_dynamics_by_name_are_those_of_full_detail() -> None:
    rng = np.random.default_rng(6)
    problems = [nf.MDP(rng.integers(0, 4, (4, 3)), initial=0, horizon=3) for _ in range(2)]
    losses, numbers = rng.integers(0, 4, (20, 3, 4, 3)), rng.integers(0, 2, 20)
    full = price_stream(problems, losses, dynamics_of_round=numbers)
    for name in MOVED_DETAILS:
        motion = price_stream(problems, losses, dynamics_of_round=numbers, detail=[name])
        np.testing.assert_array_equal(getattr(motion.moved, name), getattr(full.moved, name))
        np.testing.assert_array_equal(motion.prices, full.prices)
        for other in {*MOVED_DETAILS} - {name}:
            assert getattr(motion.moved, other) is None
    with pytest.raises(nf.InputError, match=r'market_alone is asked for, but .* detail="full"'):
        _ = motion.market_alone


def test_a_detail_that_is_none_is_refused() -> None:
    arms, losses = nf.MDP([[0, 0]], initial=0, horizon=1), np.zeros((2, 1, 1, 2))
    for detail in ("some", ["by_step", "margin"], 3, None):
        with pytest.raises(nf.InputError, match=r"detail is .*, but must be one of "):
            price_stream(arms, losses, detail=detail)  # type: ignore[arg-type]
    with pytest.raises(nf.InputError, match="margins is asked for"):
        _ = price_stream(arms, losses, detail=["by_step"]).margins


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="only Linux says what is held of a file")
def test_threads_let_go_of_a_mapped_file_as_they_price_it(tmp_path: Path) -> None:
    def held() -> int:
        status = Path("/proc/self/status").read_text().splitlines()
        return 1024 * int(next(line.split()[1] for line in status if line.startswith("RssFile")))

    mdp = nf.MDP(np.zeros((100, 10), dtype=int), 0, horizon=10)
    np.save(tmp_path / "losses.npy", np.random.default_rng(3).random((4000, *mdp.shape)))  # 320 MB
    losses = np.load(tmp_path / "losses.npy", mmap_mode="r")
    price_stream(mdp, np.zeros((20, *mdp.shape)), threads=2)
    before = held()
    price_stream(mdp, losses, threads=2)
    assert held() - before < losses.nbytes / 4
