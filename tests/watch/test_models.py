"""A line may name another model: the numbers of `price_stream`, and the same safety."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from command_line import call
from moving import random_days
from watching import Watched

import normalfan as nf
from normalfan.watch import Watcher, open_journal
from normalfan.watch.lines import LineModel

NEW, WORN, CLOSED = (day.mdp() for day in random_days(4, 3, shape=(3, 3, 2)))
MODELS = {"": LineModel(NEW), "worn": LineModel(WORN), "closed": LineModel(CLOSED)}
NAMES = list(MODELS)
OF_ROUND = np.random.default_rng(5).integers(3, size=30)
LOSSES = np.random.default_rng(6).integers(0, 4, size=(30, *NEW.shape)).astype(float)


def lines() -> list[dict[str, Any]]:
    rows = [{"round": t, "loss": loss.tolist()} for t, loss in enumerate(LOSSES)]
    return [row | ({"model": NAMES[k]} if k else {}) for row, k in zip(rows, OF_ROUND, strict=True)]


def test_the_numbers_are_those_of_the_batch() -> None:
    motion = nf.price_stream([NEW, WORN, CLOSED], LOSSES, dynamics_of_round=OF_ROUND)
    for pauses in (False, True):
        watched = Watched(NEW, lines(), models=MODELS, pauses=pauses)
        assert not watched.errors
        for t, record in enumerate(watched.records):
            assert record["price"] == motion.prices[t]
            assert record["model"] == (NAMES[OF_ROUND[t]] or None)
            changed = t > 0 and OF_ROUND[t] != OF_ROUND[t - 1]
            assert (record["moved"] is not None) == changed
            if changed:
                assert record["moved"]["until_surprise"] == motion.until_surprise[t]
                assert record["moved"]["market_alone"] == motion.market_alone[t]


def test_records_without_models_are_as_before() -> None:
    (record,) = (
        Watched(NEW, lines()[:1]).records
        if not OF_ROUND[0]
        else Watched(NEW, [{"round": 0, "loss": LOSSES[0].tolist()}]).records
    )
    assert not {"moved", "model"} & set(record)


@pytest.mark.parametrize("every", [1, 2, 7])
def test_a_watch_resumes_in_the_model_of_its_last_round(tmp_path: Path, every: int) -> None:
    """As if killed after each commit: a new process opens the same files."""
    whole = b"".join(Watched(NEW, lines(), models=MODELS).output)
    others = [model.mdp for model in MODELS.values()]
    for start in range(0, 30, every):
        with open_journal(NEW, tmp_path / "state", tmp_path / "out", others=others) as journal:
            watcher = Watcher(journal.monitor, journal.commit, models=MODELS, progress=journal.progress)
            again = lines()[max(0, start - 3) : start + every]  # some are sent again
            watcher.run([json.dumps(line).encode() for line in again])
    assert (tmp_path / "out").read_bytes() == whole


def test_the_same_loss_in_another_model_is_no_repetition() -> None:
    line = {"round": 3, "loss": LOSSES[0].tolist(), "model": "worn"}
    watched = Watched(NEW, [line, line | {"model": "closed"}, line], models=MODELS)
    assert [error["line"] for error in watched.errors] == [2]
    assert "of another model" in watched.errors[0]["error"]
    assert watched.tally.skipped == 1


def test_unknown_models_and_rules_with_models_are_refused() -> None:
    bad = [{"round": 1, "loss": LOSSES[0].tolist(), "model": name} for name in ("rusty", 3)]
    watched = Watched(NEW, bad, models=MODELS)
    assert [error["error"][:16] for error in watched.errors] == ["model is 'rusty'", "model is '3', bu"]
    assert "holds 'round', 'loss', 'model'" in Watched(NEW, bad[:1]).errors[0]["error"]
    with pytest.raises(nf.InputError, match="a rule is given with several models"):
        Watched(NEW, [], models=MODELS, rule=nf.replan.Accumulated(3.0))


def test_other_models_than_before_are_refused(tmp_path: Path) -> None:
    others = [NEW, WORN]
    with open_journal(NEW, tmp_path / "state", tmp_path / "out", others=others) as journal:
        Watcher(journal.monitor, journal.commit, models=MODELS).run([json.dumps(lines()[0]).encode()])
    with open_journal(NEW, tmp_path / "state", tmp_path / "out", others=[CLOSED, WORN]) as journal:
        swapped = {"": MODELS[""], "worn": MODELS["closed"], "closed": MODELS["worn"]}
        with pytest.raises(nf.InputError, match="or the models"):
            Watcher(journal.monitor, journal.commit, models=swapped, progress=journal.progress)


def test_the_command_takes_models_by_name(tmp_path: Path) -> None:
    for name, mdp in (("new", NEW), ("worn", WORN), ("closed", CLOSED)):
        nf.io.save_mdp(mdp, tmp_path / f"{name}.npz")
    models = [part for name in ("worn", "closed") for part in ("--models", f"{name}={tmp_path / name}.npz")]
    kept = ("--state", str(tmp_path / "state"), "--out", str(tmp_path / "out"))
    for half in (lines()[:15], lines()[15:]):
        text = "".join(json.dumps(line) + "\n" for line in half)
        answer = call("watch", tmp_path / "new.npz", *models, *kept, stdin=text)
        assert answer.code == 0, answer.err
    assert (tmp_path / "out").read_bytes() == b"".join(Watched(NEW, lines(), models=MODELS).output)
    refused = call("watch", tmp_path / "new.npz", "--models", "worn")
    assert refused.code == 2
    assert "must be NAME=FILE" in refused.err
