"""Bad input gets one sentence: what, where, the rule, the remedy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array
from sentences import check_refusal

import normalfan as nf

THIRDS = np.full((2, 2, 2), 0.5)
MDP = nf.MDP(THIRDS, 0, horizon=2)
LOSS = np.zeros((2, 2, 2))


def spoiled(array: np.ndarray, index: tuple[int, ...], entry: float) -> np.ndarray:
    copy = array.astype(float)
    copy[index] = entry
    return copy


def priced(losses: Any, **options: Any) -> nf.PricedMotion:
    return nf.price_stream(MDP, losses, **options)


STREAM = np.zeros((5, 2, 2, 2))
COSTS = nf.replan.HoldingCosts(np.zeros((5, 5)), np.zeros(5), "before", 1)

CASES: dict[str, tuple[Callable[[], object], str]] = {
    "NaN probability": (lambda: nf.MDP(spoiled(THIRDS, (1, 0, 1), np.nan), 0, 2), "[1, 0, 1]"),
    "infinite probability": (lambda: nf.MDP(spoiled(THIRDS, (0, 1, 1), np.inf), 0, 2), "[0, 1, 1]"),
    "negative probability": (lambda: nf.MDP(spoiled(THIRDS, (0, 1, 0), -0.5), 0, 2), "[0, 1, 0]"),
    "row not summing to one": (lambda: nf.MDP(spoiled(THIRDS, (1, 1, 0), 0.4), 0, 2), "[1, 1]"),
    "wrong last axis": (lambda: nf.MDP(np.full((2, 2, 3), 1 / 3), 0, 2), "[2, 2, 3]"),
    "too few axes": (lambda: nf.MDP(np.ones((2, 2)), 0, 2), "[2, 2]"),
    "object transitions": (lambda: nf.MDP(THIRDS.astype(object), 0, 2), "object"),
    "complex transitions": (lambda: nf.MDP(THIRDS + 0j, 0, 2), "complex"),
    "no action": (lambda: nf.MDP(np.zeros((2, 0, 2)), 0, 2), "no action"),
    "no state": (lambda: nf.MDP(np.zeros((0, 2, 0)), 0, 2), "no state"),
    "missing horizon": (lambda: nf.MDP(THIRDS, 0), "horizon"),
    "zero horizon": (lambda: nf.MDP(THIRDS, 0, 0), "horizon is 0"),
    "fractional horizon": (lambda: nf.MDP(THIRDS, 0, 1.5), "horizon is 1.5"),  # type: ignore[arg-type]
    "contradicting horizon": (lambda: nf.MDP(THIRDS[None], 0, 7), "horizon is 7"),
    "next state too large": (lambda: nf.MDP(np.array([[0, 2], [0, 0]]), 0, 2), "[0, 1]"),
    "next state negative": (lambda: nf.MDP(np.array([[0, 1], [-1, 0]]), 0, 2), "[1, 0]"),
    "sparse of odd shape": (lambda: nf.MDP(csr_array(np.ones((3, 2))), 0, 2), "[3, 2]"),
    "sparse with empty row": (
        lambda: nf.MDP(csr_array([[1.0, 0], [0, 0], [1, 0], [0, 1]]), 0, 2),
        "[0, 1]",
    ),
    "sparse and negative": (
        lambda: nf.MDP(csr_array([[1.0, 0], [0, 1], [2, -1], [0, 1]]), 0, 2),
        "state 1, action 0",
    ),
    "sparse steps of two shapes": (
        lambda: nf.MDP([csr_array(np.eye(2)), csr_array(np.eye(3))], 0),
        "transitions[1]",
    ),
    "start state too large": (lambda: nf.MDP(THIRDS, 2, 2), "initial is 2"),
    "start of wrong length": (lambda: nf.MDP(THIRDS, np.ones(3) / 3, 2), "[3]"),
    "start not summing to one": (lambda: nf.MDP(THIRDS, np.ones(2), 2), "initial sums to 2"),
    "NaN loss": (lambda: priced(spoiled(STREAM, (3, 1, 0, 1), np.nan)), "[3, 1, 0, 1]"),
    "infinite loss": (lambda: priced(spoiled(STREAM, (4, 0, 1, 1), -np.inf)), "[4, 0, 1, 1]"),
    "NaN loss of an unreachable state": (
        lambda: priced(spoiled(STREAM, (2, 0, 1, 0), np.nan)),
        "[2, 0, 1, 0]",
    ),
    "NaN from an iterator": (
        lambda: priced(iter(spoiled(STREAM, (1, 1, 1, 1), np.nan))),
        "[1, 1, 1, 1]",
    ),
    "losses of wrong shape": (lambda: priced(np.zeros((5, 2, 3, 2))), "[5, 2, 3, 2]"),
    "one loss instead of a stream": (lambda: priced(LOSS), "[2, 2, 2]"),
    "object losses": (lambda: priced(STREAM.astype(object)), "object"),
    "losses of text": (lambda: priced([["a"]]), "losses"),
    "empty stream": (lambda: priced(STREAM[:0]), "no round"),
    "empty iterator": (lambda: priced(iter([])), "no round"),
    "a number as losses": (lambda: priced(3.0), "float"),
    "losses beyond the range": (lambda: priced(STREAM + 1e308), "round 0"),
    "unknown axes": (lambda: nf.ArrayLosses(STREAM[:, 0], axes="TAS"), "'TAS'"),
    "coefficients with one axis": (lambda: nf.FactoredLosses(np.ones(3), STREAM), "[3]"),
    "features that do not fit": (
        lambda: priced(nf.FactoredLosses(np.ones((3, 1)), np.ones((1, 2, 2, 3)))),
        "12",
    ),
    "coefficients and features disagree": (
        lambda: nf.FactoredLosses(np.ones((3, 2)), np.ones((1, 2, 2, 2))),
        "2 columns",
    ),
    "unknown detail": (lambda: priced(STREAM, detail="some"), "'some'"),
    "no thread": (lambda: priced(STREAM, threads=0), "threads is 0"),
    "detail not kept": (lambda: priced(STREAM, detail="prices").margins, "detail"),
    "unknown norm": (lambda: priced(STREAM).variation("l3"), "'l3'"),
    "loss of wrong shape": (lambda: nf.optimal_face(MDP, np.zeros((2, 2))), "[2, 2]"),
    "loss beyond the range": (lambda: nf.optimal_face(MDP, LOSS + 1e308), "beyond the range"),
    "margin beyond the range": (lambda: nf.cone_margin(MDP, LOSS + 1e308), "beyond the range"),
    "error beyond the range": (lambda: nf.value_error(MDP, LOSS + 1e308, LOSS - 1e308), "beyond the range"),
    "ranges beyond the range": (
        lambda: nf.ranging(MDP, LOSS + 1e308, directions="entries", tolerance="1%"),
        "beyond the range",
    ),
    "NaN in one loss": (
        lambda: nf.optimal_face(MDP, spoiled(LOSS, (1, 1, 0), np.nan)),
        "[1, 1, 0]",
    ),
    "policy of wrong shape": (lambda: nf.occupancy(MDP, np.ones((2, 2))), "[2, 2]"),
    "policy not a distribution": (lambda: nf.occupancy(MDP, np.ones((2, 2, 2))), "[0, 0]"),
    "occupancy of wrong shape": (lambda: nf.whole_polytope(MDP).contains(np.ones(3)), "[3]"),
    "too many vertices": (lambda: nf.whole_polytope(MDP).vertices(limit=3), "limit"),
    "negative tolerance": (lambda: nf.TieRule(absolute=-1.0), "absolute"),
    "band below one": (lambda: nf.TieRule(band=0.5), "band"),
    "faces of two problems": (
        lambda: nf.whole_polytope(MDP).meets(nf.whole_polytope(nf.MDP(THIRDS, 1, 2))),
        "different problems",
    ),
    "tolerance as text": (lambda: nf.TieRule(absolute="small"), "'small'"),
    "no step size": (lambda: nf.learners.MirrorDescent(MDP, eta=None), "eta is None"),
    "floor as text": (lambda: nf.learners.MirrorDescent(MDP, floor="0"), "floor is '0'"),
    "rate as text": (lambda: nf.learners.ExponentialAverage(rate="1"), "rate is '1'"),
    "margin's floor as text": (lambda: nf.cone_margin(MDP, LOSS, floor="0"), "floor is '0'"),
    "cost as text": (lambda: nf.replan.cheapest_schedule(COSTS, "5"), "cost is '5'"),
    "no cost": (lambda: nf.replan.recommend(COSTS, None), "cost is None"),
    "holdout as a list": (lambda: nf.replan.recommend(COSTS, 1.0, holdout=[1]), "[1]"),
    "threshold as text": (lambda: nf.replan.Accumulated("5"), "threshold is '5'"),
    "unknown detector": (lambda: nf.replan.Drift("Nobody", ()).decide(), "'Nobody'"),
    "a window without ends": (
        lambda: nf.report.draw_fan(MDP, nf.report.Plane(LOSS, LOSS, LOSS), window=[]),
        "window has shape [0]",
    ),
    "loss the monitor cannot take": (lambda: nf.Monitor(MDP).update(np.zeros(3)), "round 0"),
}


@pytest.mark.parametrize("name", CASES)
def test_one_sentence(name: str) -> None:
    check_refusal(*CASES[name])
