"""What is not allowed, in files: the same masks and values as a plain loop over what is left."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest
from problems import random_problem
from sentences import check_refusal

import normalfan as nf
from normalfan.io.cell_tables import every_round

SUFFIXES = (".npz", ".csv", ".parquet")
ROAD = """state,action,next_state,probability,start
town,walk,town,1,1
town,drive,hill,0.5,1
town,drive,town,0.5,1
hill,walk,town,1,0
"""
LABELS = nf.Labels(states=("town", "hill"), actions=("walk", "drive"))


def some_mask(rng: np.random.Generator, shape: tuple[int, int, int]) -> np.ndarray:
    mask = rng.random(shape) < 0.6
    mask[..., 0] |= ~mask.any(axis=2)
    return mask


def road(folder: Path, **options: object) -> nf.MDP:
    (folder / "road.csv").write_text(ROAD)
    return nf.io.load_mdp(folder / "road.csv", horizon=2, **options)  # type: ignore[arg-type]


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_masks_come_back(suffix: str, rng: np.random.Generator, tmp_path: Path) -> None:
    seen = set()
    for _ in range(30):
        plain = random_problem(rng).mdp()
        mask = some_mask(rng, plain.shape)
        mdp = nf.MDP(plain.transitions, plain.initial, plain.horizon, allowed=mask)
        nf.io.save_mdp(mdp, tmp_path / f"m{suffix}")
        back = nf.io.load_mdp(tmp_path / f"m{suffix}")
        assert back.fingerprint == mdp.fingerprint
        assert (back.allowed is None) == (mdp.allowed is None) == bool(mask.all())
        assert mdp.allowed is None or np.array_equal(back.allowed, mask)  # type: ignore[arg-type]
        seen.add(mdp.allowed is None)
    assert seen == {True, False}


def test_rows_left_out_are_not_allowed(tmp_path: Path) -> None:
    mdp = road(tmp_path)
    assert mdp.labels == LABELS
    assert mdp.allowed is not None
    assert mdp.allowed.tolist() == [[[True, True], [True, False]]] * 2
    (tmp_path / "end.csv").write_text(ROAD + "town,drive,sea,0,1\n")  # an end is not closed
    end = nf.io.load_mdp(tmp_path / "end.csv", horizon=2)
    assert end.allowed is not None
    assert end.allowed[0].tolist() == [[True, True], [True, False], [True, True]]
    flagged = (
        ROAD.replace("\n", ",1\n")
        .replace("start,1", "start,allowed")
        .replace("hill,0.5,1,1", "hill,0.5,1,TRUE")
    )
    (tmp_path / "flags.csv").write_text(flagged + "hill,drive,hill,1,0,false\n")
    flags = nf.io.load_mdp(tmp_path / "flags.csv", horizon=2)
    assert np.array_equal(flags.allowed, mdp.allowed)  # type: ignore[arg-type]
    (tmp_path / "flags.csv").write_text(flagged.replace("TRUE", "0"))
    check_refusal(lambda: nf.io.load_mdp(tmp_path / "flags.csv", horizon=2), "line 3 has allowed False")
    (tmp_path / "flags.csv").write_text(flagged.replace("TRUE", "perhaps"))
    check_refusal(lambda: nf.io.load_mdp(tmp_path / "flags.csv", horizon=2), "'perhaps' as allowed")


def test_a_mask_of_every_step_goes_with_any_horizon(tmp_path: Path) -> None:
    nf.io.save_mdp(road(tmp_path), tmp_path / "road.npz")
    longer = nf.io.load_mdp(tmp_path / "road.npz", horizon=5, start="hill")
    assert longer.allowed is not None
    assert longer.allowed.shape == (5, 2, 2)
    named = nf.io.load_mdp(tmp_path / "road.npz", steps=["am", "pm"])
    assert np.array_equal(named.allowed, road(tmp_path).allowed)  # type: ignore[arg-type]
    by_step = nf.MDP(np.zeros((1, 2), dtype=int), 0, 2, allowed=[[[True, True]], [[True, False]]])
    nf.io.save_mdp(by_step, tmp_path / "steps.npz")
    check_refusal(lambda: nf.io.load_mdp(tmp_path / "steps.npz", horizon=3), "allowed has shape")


@pytest.mark.parametrize("mark", ["inf", "forbidden", "+inf", "FORBIDDEN"])
def test_a_loss_table_may_forbid(mark: str, tmp_path: Path) -> None:
    """What the model does not allow needs no row; what is not allowed in a round needs no number."""
    mdp, path = road(tmp_path), tmp_path / "losses.csv"
    path.write_text(f"round,state,action,loss\nmon,town,walk,1\nmon,town,drive,{mark}\nmon,hill,walk,2\n")
    closed = every_round(nf.io.open_losses(path, mdp), mdp)
    assert closed[0, 0].tolist() == [[1, np.inf], [2, 0]]
    path.write_text(
        "round,state,action,loss,allowed\nmon,town,walk,1,1\nmon,town,drive,,false\nmon,hill,walk,2,true\n"
    )
    assert np.array_equal(every_round(nf.io.open_losses(path, mdp), mdp), closed)
    rewards = path.with_name("rewards.csv")
    sign = "-inf" if "inf" in mark else mark
    rewards.write_text(
        f"round,state,action,reward\nmon,town,walk,-1\nmon,town,drive,{sign}\nmon,hill,walk,-2\n"
    )
    assert np.array_equal(every_round(nf.io.open_losses(rewards, mdp), mdp), closed)
    for suffix in (".csv", ".npz", ".parquet"):
        for source in (path, rewards):
            nf.io.save_losses(nf.io.open_losses(source, mdp), mdp, tmp_path / f"again{suffix}")
            again = nf.io.open_losses(tmp_path / f"again{suffix}", mdp)
            assert np.array_equal(every_round(again, mdp), closed)
    frame = pl.read_csv(path).with_columns(loss=pl.Series([1.0, np.inf, 2.0])).drop("allowed")
    assert np.array_equal(every_round(nf.io.open_losses(frame, mdp), mdp), closed)


@pytest.mark.parametrize(
    ("rows", "where"),
    [
        ("loss\nmon,town,walk,1\nmon,hill,walk,1\n", "no loss for round mon, state town, action drive"),
        ("loss\nmon,town,walk,1\nmon,town,drive,\n", "line 3 has nothing as loss"),
        ("loss\nmon,town,walk,1\nmon,town,drive,nan\n", "line 3 has 'nan' as loss"),
        ("loss\nmon,town,walk,-inf\n", "line 2 has '-inf' as loss"),
        ("reward\nmon,town,walk,inf\n", "line 2 has 'inf' as reward"),
        ("loss,allowed\nmon,town,walk,inf,1\n", "line 2 is allowed and has 'inf' as loss"),
        ("loss,allowed\nmon,town,walk,,1\n", "line 2 has nothing as loss"),
        ("loss,allowed\nmon,town,walk,1,\n", "line 2 has no allowed"),
        ("loss,allowed\nmon,town,walk,1,2\n", "line 2 has '2' as allowed"),
    ],
)
def test_missing_is_not_forbidden(rows: str, where: str, tmp_path: Path) -> None:
    mdp = road(tmp_path)
    (tmp_path / "losses.csv").write_text("round,state,action," + rows)
    check_refusal(lambda: nf.io.open_losses(tmp_path / "losses.csv", mdp), where)
    if (
        "no loss for" not in where
    ):  # a default is for rows that are not there, never for those without a number
        check_refusal(lambda: nf.io.open_losses(tmp_path / "losses.csv", mdp, default=0), where)


def test_a_coefficient_may_forbid(tmp_path: Path) -> None:
    mdp, features = road(tmp_path), tmp_path / "f.csv"
    features.write_text("feature,action,value\nfuel,drive,3\nsnow,drive,1\nsnow,walk,0\n")
    (tmp_path / "wide.csv").write_text("round,fuel,snow\nmon,2,0\ntue,2,forbidden\n")
    (tmp_path / "long.csv").write_text(
        "round,feature,coefficient\nmon,fuel,2\nmon,snow,0\ntue,fuel,2\ntue,snow,inf\n"
    )
    for name in ("wide.csv", "long.csv"):
        losses = nf.io.open_losses(tmp_path / name, mdp, features=features)
        assert every_round(losses, mdp)[:, 0, 0].tolist() == [[0, 6], [0, np.inf]]
    (tmp_path / "wide.csv").write_text("round,fuel,snow\nmon,2,0\ntue,2,forbidden\n")
    earned = nf.io.open_losses(tmp_path / "wide.csv", mdp, features=features, rewards=True)
    assert every_round(earned, mdp)[:, 0, 0].tolist() == [[0, -6], [0, np.inf]]
    features.write_text("feature,action,value\nfuel,drive,3\nsnow,drive,forbidden\n")
    check_refusal(
        lambda: nf.io.open_losses(tmp_path / "wide.csv", mdp, features=features),
        "line 3 forbids a cell in every",
    )


def best_loss(mdp: nf.MDP, loss: np.ndarray) -> float:
    """A plain loop over the actions that are left."""
    value = np.zeros(mdp.n_states)
    allowed = np.ones(mdp.shape, dtype=bool) if mdp.allowed is None else mdp.allowed
    for h in reversed(range(mdp.horizon)):
        q = loss[h] + mdp.transitions.expect(h, value)
        value = np.array([min([q[s, a] for a in np.flatnonzero(allowed[h, s])]) for s in range(mdp.n_states)])
    return float(mdp.initial @ value)


def test_values_of_tables_and_pairs_are_those_of_what_is_left(rng: np.random.Generator) -> None:
    def check(mdp: nf.MDP, losses: nf.LossStream) -> None:
        found = [nf.optimal_face(mdp, loss).minimise(loss)[0] for loss in every_round(losses, mdp)]
        assert found == pytest.approx(expected, abs=1e-12)

    for _ in range(20):
        n_states, n_actions = (int(rng.integers(1, 5)) for _ in range(2))
        P = rng.dirichlet(np.ones(n_states), size=(n_states, n_actions))
        mask = some_mask(rng, (1, n_states, n_actions))[0]
        reward = rng.integers(-3, 4, size=(3, n_states, n_actions)).astype(float)
        plain = nf.MDP(P, 0, 3, allowed=mask)
        expected = [best_loss(plain, np.broadcast_to(-one, plain.shape)) for one in reward]
        options = {"horizon": 3, "start": 0, "moving": True}
        pairs = np.nonzero(mask)
        check(*nf.io.from_arrays(P[pairs], [one[pairs] for one in reward], pairs=pairs, **options))
        check(*nf.io.from_arrays(P, np.where(mask, reward, -np.inf), order="SAS", **options))
        model = nf.io.mdp_to_frame(plain)
        left = model if mask.all() else model.filter("allowed").drop("allowed")
        mdp = nf.io.load_mdp(left)
        table = nf.io.losses_to_frame(nf.rewards(nf.ArrayLosses(reward, "TSA")), plain)
        known = left.select("state", "action").unique()
        check(mdp, nf.io.open_losses(table.join(known, on=["state", "action"], maintain_order="left"), mdp))
