"""The statements on tiny sizes, their oracles, every counterexample, and how verdicts come about."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import polars
import pytest
from oracles import exact_price, exact_value
from problems import random_problem

import normalfan as nf
from normalfan import optimal_face
from normalfan.geometry.face import whole_polytope
from normalfan_paper.experiment import Scale, Verdict
from normalfan_paper.experiments.statements import counterexamples
from normalfan_paper.experiments.statements.check import check
from normalfan_paper.experiments.statements.claims import CLAIMS
from normalfan_paper.experiments.statements.figures import advantage_gate, bellman_causal, normal_fan
from normalfan_paper.experiments.statements.finding import assuming, reading, reported, to_frame, written
from normalfan_paper.experiments.statements.instances import cases
from normalfan_paper.experiments.statements.oracles import listed_optimum
from normalfan_paper.experiments.statements.run import CHECKS, run_cell
from normalfan_paper.experiments.statements.settings import INSTANCES, PARTS, QUICK_INSTANCES
from normalfan_paper.linear_program import flow_constraints, lp_price
from normalfan_paper.plane import example
from normalfan_paper.registry import find_experiments

(EXPERIMENT,) = find_experiments(["statements"])

VERDICTS = {
    "thm-decomp": Verdict.HOLDS,
    "thm-decomp/off-face": Verdict.HOLDS,
    "thm-bellman": Verdict.HOLDS,
    "thm-bellman/one-backup": Verdict.ASSUMES,
    "prop-largevar": Verdict.HOLDS,
    "prop-largevar/estimate": Verdict.ASSUMES,
    "classical-estimate": Verdict.HOLDS,
    "fig-degenerate": Verdict.HOLDS,
    "geometry/distance": Verdict.HOLDS,
    "geometry/interior": Verdict.HOLDS,
    "thm-varsep": Verdict.HOLDS,
    "thm-varsep/construction": Verdict.ASSUMES,
    "thm-varsep/bounded": Verdict.ASSUMES,
    "thm-varsep/path-length": Verdict.HOLDS,
    "rem-twomdps": Verdict.FALSE,
    "rem-twomdps/small-constant": Verdict.HOLDS,
    "rem-twomdps/two": Verdict.DEPENDS,
    "cor-causal": Verdict.ASSUMES,
    "prop-predsel": Verdict.HOLDS,
    "prop-bregsel": Verdict.HOLDS,
    "prop-bregsel/finite": Verdict.ASSUMES,
    "prop-conedetect": Verdict.HOLDS,
    "prop-conedetect/thin": Verdict.ASSUMES,
    "prop-conedetect/sharp": Verdict.ASSUMES,
    "prop-gate": Verdict.ASSUMES,
    "prop-gate/same-face": Verdict.ASSUMES,
    "prop-gate/free-round": Verdict.ASSUMES,
    "prop-gate/speed": Verdict.ASSUMES,
    "prop-gate/gap": Verdict.FALSE,
    "prop-gate/causal-factor": Verdict.FALSE,
    "prop-lower": Verdict.HOLDS,
    "prop-lower/margin": Verdict.FALSE,
    "prop-degsel": Verdict.HOLDS,
    "prop-degsel/best-point": Verdict.ASSUMES,
    "disc-path": Verdict.ASSUMES,
}


@pytest.fixture(scope="module")
def small() -> polars.DataFrame:
    return polars.concat([run_cell({"part": part, "instances": 12}) for part in PARTS])


# --- the rows --------------------------------------------------------------------------------------------


def test_every_statement_gets_its_verdict(small: polars.DataFrame) -> None:
    rows = check(small)
    assert {row.id: row.verdict for row in rows} == {f"statements/{name}": v for name, v in VERDICTS.items()}
    for row in rows:
        assert row.measured.endswith(".")
        assert "{" not in row.measured + row.because
        assert row.numbers["tried"] + row.numbers["tried_assuming"] > 0 or row.verdict is Verdict.DEPENDS


def test_cells_are_the_parts_at_two_sizes() -> None:
    full, quick = EXPERIMENT.cells(Scale()), EXPERIMENT.cells(Scale(quick=True))
    assert [cell["part"] for cell in full] == [cell["part"] for cell in quick] == list(CHECKS) == list(PARTS)
    assert {cell["instances"] for cell in full} == {INSTANCES}
    assert {cell["instances"] for cell in quick} == {QUICK_INSTANCES}


def test_choices_point_to_rows() -> None:
    known = {f"statements/{claim.id}" for claim in CLAIMS}
    assert all(set(choice.rows) <= known for choice in EXPERIMENT.choices)


def test_a_cell_is_the_same_every_time() -> None:
    settings = {"part": "gate", "instances": 4}
    assert run_cell(settings).equals(run_cell(settings))


def verdict_of(*findings: object) -> Verdict:
    (row,) = check(to_frame(findings))  # type: ignore[arg-type]
    return row.verdict


def test_verdicts_follow_the_findings() -> None:
    good, bad = written("prop-predsel", "l1", 1.0, True), written("prop-predsel", "l1", -1.0, False)
    fine, poor = assuming("prop-predsel", "l2", 1.0, True), assuming("prop-predsel", "l2", -1.0, False)
    assert verdict_of(good, good) is Verdict.HOLDS
    assert verdict_of(good, bad) is Verdict.FALSE
    assert verdict_of(bad, fine) is Verdict.ASSUMES
    assert verdict_of(bad, fine, poor) is Verdict.FALSE
    two, one = (reading("prop-predsel", name, 1.0, holds) for name, holds in (("a", True), ("b", False)))
    assert verdict_of(two, one) is Verdict.DEPENDS
    assert verdict_of(two, two) is Verdict.HOLDS
    assert verdict_of(one, one) is Verdict.FALSE


def test_a_doctored_finding_overturns_a_theorem(small: polars.DataFrame) -> None:
    """No verdict is typed in: one failed trial among all, and the theorem is false."""
    bent = small.with_columns(
        holds=polars.when((polars.col("claim") == "thm-decomp") & (polars.col("instance") == 3))
        .then(False)
        .otherwise(polars.col("holds"))
    )
    assert check(bent)[0].verdict is Verdict.FALSE
    no_failure = small.with_columns(holds=polars.col("holds").is_not_null() | None)
    assert all(row.verdict is Verdict.HOLDS for row in check(no_failure))


def test_sentences_use_the_numbers() -> None:
    claim, names = "prop-lower/margin", ("smallest_margin", "largest_margin", "gamma")
    told = [reported(claim, name, 0.5) for name in names]
    (row,) = check(to_frame([written(claim, "smallest margin", 0.5, False), *told]))
    assert row.measured.startswith("Margins from 0.5 to 0.5")
    assert row.because.endswith("it failed in 1 of 1 trial.")


# --- instances and oracles -------------------------------------------------------------------------------


def test_cases_have_corners_and_ties() -> None:
    seen = [(case.mdp, optimal_face(case.mdp, case.previous)) for case in cases("test", 150)]
    shapes = np.array([mdp.shape for mdp, _ in seen])
    assert (shapes.min(axis=0) == 1).all()
    assert (shapes.max(axis=0) == 3).all()
    degenerate = [not face.is_vertex for _, face in seen]
    assert 20 < sum(degenerate) < 140
    assert sum(not mdp.reachable.all() for mdp, _ in seen) > 20
    again = next(iter(cases("test", 1)))
    assert again.mdp.fingerprint == seen[0][0].fingerprint
    assert next(iter(cases("other", 1))).rng.random() != again.rng.random()
    assert all(not optimal_face(c.mdp, c.previous).is_vertex for c in cases("x", 10, degenerate=True))


def test_oracles_against_exact_rationals(rng: np.random.Generator) -> None:
    positive = 0
    for _ in range(40):
        problem = random_problem(rng, rounds=2)
        mdp, (before, after) = problem.mdp(), problem.losses
        if np.prod(mdp.shape) > 24:
            continue
        exact = float(exact_price(problem, before, after))
        positive += exact > 0
        assert lp_price(mdp, before.astype(float), after.astype(float)) == pytest.approx(exact, abs=1e-6)
        assert listed_optimum(mdp, after) == pytest.approx(float(exact_value(problem, after)), abs=1e-12)
        balance, inflow = flow_constraints(mdp)
        for visits in list(whole_polytope(mdp).vertices(10**6))[:20]:
            np.testing.assert_allclose(balance @ visits.ravel(), inflow, atol=1e-12)
    assert positive > 5


# --- counterexamples -------------------------------------------------------------------------------------


def test_off_the_face_the_error_is_negative() -> None:
    assert counterexamples.off_face_gain() == {"regret": 0.0, "price": 1.0, "selection": -1.0}


def test_one_backup_does_not_know_the_price() -> None:
    found = counterexamples.one_backup_is_not_enough()
    assert (found["price_from_first"], found["price_from_second"]) == (0.0, 1.0)


@pytest.mark.parametrize("step", [1.0, 2.0**-40, 2.0**-1000])
def test_the_price_jumps_at_a_tie(step: float) -> None:
    found = counterexamples.jump_at_a_tie(step)
    assert (found["price_at_tie"], found["price_beside_tie"]) == (0.0, 1.0)


def test_inside_a_cone_the_weighted_estimate_is_nothing() -> None:
    found = counterexamples.weighted_estimate_inside_a_cone(stride=1e3)
    assert found["price"] == found["weighted_estimate"] == 0.0
    assert found["diameter_times_variation"] == 2 * found["variation"] == 2000.0


def test_the_separation_fails_at_two_layers() -> None:
    found = counterexamples.separation_at_two_layers()
    assert found["late_price"] == 0.0 < found["claimed_late_price"]
    assert found["late_face_dimension"] == 1
    assert found["early_price"] == counterexamples.GAMMA - counterexamples.KAPPA


def test_the_toll_node_matters() -> None:
    free = counterexamples.toll_node_left_open()
    assert (free["price"], free["completed_price"]) == (0.0, 1.1875)
    undercut = counterexamples.toll_node_at_no_cost()
    assert undercut["committed_path_optimal"] == 0.0
    assert undercut["price"] < undercut["claimed_price"] == 1.1875


@pytest.mark.parametrize("horizon", [3, 5, 40])
def test_one_problem_opens_the_gap(horizon: int) -> None:
    found = counterexamples.single_mdp_gap(horizon)
    assert found["ratio"] == horizon - 1 - counterexamples.KAPPA / counterexamples.GAMMA
    assert found["cheap_change"] == found["costly_change"] == counterexamples.GAMMA * (horizon - 1)


@pytest.mark.parametrize("horizon", [2, 3, 9])
def test_the_theorem_holds_at_every_horizon(horizon: int) -> None:
    found = counterexamples.exact_gap(horizon)
    assert found["ratio"] == horizon - 1
    assert found["largest_dimension"] == 0


@pytest.mark.parametrize("layer", [1, 3, 5])
def test_a_separable_flip_costs_one_margin(layer: int) -> None:
    assert counterexamples.separable_flip(5, layer) == {"price_over_margin": 1.0, "claimed": 6.0 - layer}


@pytest.mark.parametrize("horizon", [2, 3, 6])
def test_the_readings_of_two(horizon: int) -> None:
    found = counterexamples.readings_of_two(horizon)
    assert found["restored_least"] == found["restored_most"] == 2.0
    assert found["late_over_early"] == pytest.approx(2 - 1 / horizon, abs=1e-15)
    assert found["literal"] == pytest.approx(1 - 1 / (2 * horizon), abs=1e-15)


def test_an_entropy_is_infinite_at_the_boundary() -> None:
    found = counterexamples.frozen_by_the_boundary()
    assert found["entropy_spread"] == math.inf
    assert found["euclidean_spread"] == 1.0
    assert found["mixed_entropy_spread"] == pytest.approx(math.log(100))


def test_a_rare_state_silences_the_detector() -> None:
    found = counterexamples.rare_state(1e-6)
    assert found["margin"] == pytest.approx(1e-6)
    assert found["advantage_gap"] == 1.0
    assert (found["resolved"], found["resolved_with_floor"], found["lost"]) == (0.0, 1.0, 0.0)
    assert counterexamples.rare_state(0.5)["resolved"] == 1.0


def test_resolved_faces_are_included_and_not_equal() -> None:
    assert counterexamples.faces_of_model_and_loss() == {"resolved": 1.0, "same_face": 0.0, "included": 1.0}


def test_a_sticky_selector_errs_on_a_free_round() -> None:
    found = counterexamples.sticky_on_a_free_round()
    assert (found["resolved"], found["price"]) == (1.0, 0.0)
    assert found["selection"] > 0.5
    assert counterexamples.sticky_on_a_free_round(weight=1e-3)["selection"] < 1e-6


def test_one_rounds_range_is_not_enough() -> None:
    found = counterexamples.range_of_one_round()
    assert found["bound_with_last_range"] < found["regret"] <= found["bound_with_own_ranges"]


def test_one_tree_opens_the_gap() -> None:
    for horizon in (2, 5, 8):
        found = counterexamples.single_tree_gap(horizon)
        assert (found["late_price"], found["early_price"]) == (
            horizon * counterexamples.GAMMA,
            counterexamples.GAMMA,
        )


def test_the_estimate_grows_across_a_wall() -> None:
    found = counterexamples.weighted_estimate_across_a_wall(1000.0)
    assert found == {"crossing_price": 1.0, "crossing_estimate": 2 * 1001.0}


def test_the_gap_becomes_the_advantage() -> None:
    found = counterexamples.gap_while_learning()
    assert found["first_gap"] == pytest.approx(2.0, abs=0.02)
    assert found["last_gap"] == pytest.approx(found["advantage"], rel=1e-3)


def test_a_penalty_meets_its_ceiling() -> None:
    found = counterexamples.penalty_beyond_the_ceiling()
    assert found["plain_step"] < 0.01
    assert found["measured"] == pytest.approx(found["ceiling"])
    assert found["claimed"] > 500 * found["measured"]


def test_the_coin_has_a_wide_margin() -> None:
    found = counterexamples.margin_of_the_coin()
    assert found["smallest_margin"] == found["largest_margin"] == found["gamma"]


def test_best_points_differ_and_their_values_do_not() -> None:
    assert counterexamples.best_points_differ() == {"value_gap": 0.0, "distance": 2.0}


def test_a_path_over_ties_is_free_and_long() -> None:
    short, long = counterexamples.free_path(16), counterexamples.free_path(160)
    assert short["price"] == long["price"] == 0.0
    assert long["path_length"] == 10 * short["path_length"] > 0.0


# --- illustrations ---------------------------------------------------------------------------------------


@pytest.mark.slow
def test_illustrations_are_drawn_from_what_was_found(small: polars.DataFrame, tmp_path: Path) -> None:
    drawn = EXPERIMENT.draw(small, tmp_path)
    names = {"normal-fan", "bellman-causal", "degenerate-crossing", "advantage-gate", "barrier"}
    assert {path.name for path in drawn} == {f"{name}.{kind}" for name in names for kind in ("pdf", "png")}
    assert all(path.stat().st_size > 1000 for path in drawn)


def test_what_the_illustrations_show_is_so() -> None:
    assert bellman_causal.tree_prices() == list(range(bellman_causal.HORIZON, 0, -1))
    crossing = bellman_causal.goal_jump()
    assert crossing.by_step.sum() == pytest.approx(crossing.price)
    assert crossing.price > 0
    arms = advantage_gate.one_state(1, len(advantage_gate.ADVANTAGES))
    plain = advantage_gate.mass_after(advantage_gate.MirrorDescent(arms, advantage_gate.ETA))
    learner = advantage_gate.ThresholdedMirrorDescent(
        arms,
        advantage_gate.ETA,
        threshold=advantage_gate.BANDS.reshape(arms.shape),
        penalty=advantage_gate.PENALTY,
    )
    gated = advantage_gate.mass_after(learner)
    near = advantage_gate.ADVANTAGES <= advantage_gate.BANDS
    assert (gated[near] > plain[near]).all()
    assert (gated[~near] < plain[~near] / 100).all()
    tree, plane = example()
    losses = np.tensordot(normal_fan.PATH, plane.along, axes=1)
    prices = nf.price_stream(tree, losses).prices
    assert (prices[:-1] == 0).all()
    assert prices[-1] > 0
