"""Bad files and options on the command line: an exit code, one sentence, no traceback, nothing written."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from datetime import date
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from command_line import call

import normalfan as nf
from normalfan.files import CHECKSUM
from normalfan.problem.mdp import Labels

MODEL = """state,action,next_state,probability,start
home,stay,home,1,1
home,go,away,0.5,1
home,go,home,0.5,1
away,stay,away,1,0
away,go,home,1,0
"""
LOSSES = """round,state,action,loss
mon,home,stay,1
mon,home,go,2
mon,away,stay,3
mon,away,go,4
tue,home,stay,2
tue,home,go,1
tue,away,stay,4
tue,away,go,3
"""
FEATURES = "feature,action,value\npower,go,2\nwear,stay,1\n"
WIDE = "round,power,wear\nmon,1,2\ntue,3,4\n"
LONG = "round,feature,coefficient\nmon,power,1\nmon,wear,2\ntue,power,3\ntue,wear,4\n"
HORIZON = ("--horizon", "2")

Spoil = Callable[[Path], tuple[object, ...]]


def prepare(folder: Path) -> None:
    """A good input in every format, for each case to spoil in one way."""
    for name, text in (("model", MODEL), ("losses", LOSSES), ("f", FEATURES), ("wide", WIDE), ("long", LONG)):
        (folder / f"{name}.csv").write_text(text)
    mdp = nf.io.load_mdp(folder / "model.csv", horizon=2)
    losses = nf.io.open_losses(folder / "losses.csv", mdp)
    nf.io.save_mdp(mdp, folder / "model.npz")
    for suffix in (".npy", ".npz", ".parquet"):
        nf.io.save_losses(losses, mdp, folder / f"losses{suffix}")


def edited(kind: str, old: str, new: str) -> Spoil:
    """The model or the losses with the first `old` replaced by `new`."""

    def spoil(folder: Path) -> tuple[object, ...]:
        path = folder / f"{kind}.csv"
        text = path.read_text()
        assert old in text
        path.write_text(text.replace(old, new, 1))
        return folder / "model.csv", folder / "losses.csv", *HORIZON

    return spoil


def factored(coefficients: str, kind: str = "", old: str = "", new: str = "") -> Spoil:
    def spoil(folder: Path) -> tuple[object, ...]:
        edited(kind or coefficients, old, new)(folder)
        arguments = folder / "model.csv", folder / f"{coefficients}.csv", "--features", folder / "f.csv"
        return *arguments, *HORIZON

    return spoil


def containing(name: str, content: bytes) -> Spoil:
    """A file of these bytes as the model or the losses, by its name."""

    def spoil(folder: Path) -> tuple[object, ...]:
        (folder / name).write_bytes(content)
        if name.startswith("model"):
            return folder / name, folder / "losses.csv", *HORIZON
        return folder / "model.csv", folder / name, *HORIZON

    return spoil


def saved(name: str, **arrays: object) -> Spoil:
    def spoil(folder: Path) -> tuple[object, ...]:
        if name.endswith(".npy"):
            np.save(folder / name, arrays["array"])  # type: ignore[arg-type]
        else:
            np.savez(folder / name, **arrays)  # type: ignore[arg-type]
        return containing(name, (folder / name).read_bytes())(folder)

    return spoil


def good(*more: object, model: str = "model.csv", losses: str = "losses.csv") -> Spoil:
    return lambda folder: (folder / model, folder / losses, *HORIZON, *more)


def truncated(name: str, share: float = 0.5) -> Spoil:
    def spoil(folder: Path) -> tuple[object, ...]:
        whole = (folder / name).read_bytes()
        return containing(name, whole[: int(len(whole) * share)])(folder)

    return spoil


def stored_with(*, checksum: bool = False, **others: object) -> Spoil:
    """The stored model with other arrays; without its checksum they are looked at."""

    def spoil(folder: Path) -> tuple[object, ...]:
        with np.load(folder / "model.npz") as arrays:
            kept = {name: arrays[name] for name in arrays.files if checksum or name != CHECKSUM}
        return saved("model.npz", **kept | others)(folder)

    return spoil


def of_text(folder: Path) -> tuple[object, ...]:
    pl.DataFrame({"round": ["mon"], "loss": ["high"]}).write_parquet(folder / "losses.parquet")
    return folder / "model.csv", folder / "losses.parquet", *HORIZON


def of_lists(folder: Path) -> tuple[object, ...]:
    row = {"state": [["home"]], "action": ["go"], "next_state": ["home"], "probability": [1]}
    pl.DataFrame(row).write_parquet(folder / "model.parquet")
    return folder / "model.parquet", folder / "losses.csv", *HORIZON


def of_dates(folder: Path) -> tuple[object, ...]:
    pl.DataFrame({"round": [1], "loss": [date(2021, 2, 14)]}).write_parquet(folder / "losses.parquet")
    return folder / "model.csv", folder / "losses.parquet", *HORIZON


def stepped(folder: Path) -> tuple[object, ...]:
    header, *rows = MODEL.splitlines()
    table = "\n".join([f"step,{header}", *(f"dawn,{row}" for row in rows)])
    return containing("model.csv", table.encode())(folder)


def steps_named_otherwise(folder: Path) -> tuple[object, ...]:
    mdp = nf.MDP(np.array([[0, 1]] * 2), 0, 2, labels=Labels(steps=("dawn", "dusk")))
    nf.io.save_mdp(mdp, folder / "model.npz")
    (folder / "losses.csv").write_text("round,step,loss\n0,dawn,1\n0,noon,1\n")
    return folder / "model.npz", folder / "losses.csv"


CASES: dict[str, tuple[Spoil, str]] = {
    # the model
    "model missing": (good(model="nowhere.csv"), "nowhere.csv does not exist"),
    "model a directory": (lambda folder: (folder, folder / "losses.csv"), "is a directory"),
    "model without a suffix": (containing("model", b"x"), "has no suffix"),
    "model of unknown suffix": (containing("model.xlsx", b"x"), "'.xlsx'"),
    "model empty": (containing("model.csv", b""), "is empty"),
    "model with a header only": (containing("model.csv", MODEL.split("\n")[0].encode()), "no rows"),
    "model npz truncated": (truncated("model.npz"), "damaged"),
    "model npz empty": (containing("model.npz", b""), "damaged"),
    "model npz of other content": (saved("model.npz", a=np.zeros(3)), "no schema"),
    "model npz of another schema": (stored_with(schema=99), "schema 99"),
    "model npz with two horizons": (stored_with(horizon=[1, 2]), "horizon is [1, 2]"),
    "model npz with a horizon that is text": (stored_with(horizon="two"), "horizon is 'two'"),
    "model npz with a horizon between two": (stored_with(horizon=2.7), "horizon is 2.7"),
    "model npz of another checksum": (stored_with(checksum=True, horizon=3), "checksum"),
    "model npz with objects": (saved("model.npz", schema=np.array([{}], dtype=object)), "damaged"),
    "model without a column": (edited("model", "probability", "chance"), "probability"),
    "model with a column too many": (edited("model", "start", "begin"), "'begin'"),
    "model with semicolons": (
        lambda folder: containing("model.csv", MODEL.replace(",", ";").encode())(folder),
        "has one column",
    ),
    "model not in UTF-8": (containing("model.csv", MODEL.replace("home", "maïs").encode("latin1")), "UTF-8"),
    "model with a longer line": (edited("model", "1,1\n", "1,1,1,1\n"), "cannot be read"),
    "model with probabilities that do not sum to one": (
        edited("model", "away,0.5", "away,0.4"),
        "state home, action go probabilities that sum to 0.9",
    ),
    "model with a negative probability": (edited("model", "away,0.5", "away,-0.5"), "line 3"),
    "model with a probability that is text": (edited("model", "away,0.5", "away,half"), "'half'"),
    "model with a repeated row": (
        edited("model", "home,go,home,0.5", "home,go,away,0.5"),
        "line 4 repeats state home, action go, next_state away of line 3",
    ),
    "model that allows half an action": (
        containing(
            "model.csv", b"state,action,next_state,probability,start,allowed\na,b,a,0.5,1,1\na,b,c,0.5,1,0\n"
        ),
        "line 2 has allowed True",
    ),
    "model without a way on": (
        containing("model.csv", b"state,action,next_state,probability,start,allowed\na,b,a,1,1,0\n"),
        "allowed leaves no action at step 0, state a",
    ),
    "model with a label missing": (edited("model", "away,go", ",go"), "line 6 has no state"),
    "model with two starts": (edited("model", "0.5,1", "0.5,0.5"), "start"),
    "model whose start is no distribution": (
        containing("model.csv", MODEL.replace(",1\n", ",0.5\n").encode()),
        "start that sums to 0.5",
    ),
    "model with lists for labels": (of_lists, "'state' of type List"),
    "losses with dates for numbers": (of_dates, "'loss' of type Date"),
    "model without a start": (
        lambda folder: containing("model.csv", re.sub(r",[^,\n]*\n", "\n", MODEL).encode())(folder),
        "no column start",
    ),
    "unknown start": (good("--start", "moon"), "'moon'"),
    "horizon missing": (lambda folder: (folder / "model.csv", folder / "losses.csv"), "no column step"),
    "horizon zero": (good("--horizon", "0"), "horizon is 0"),
    "horizon against the steps": (stepped, "1 in all"),
    "environment unknown": (lambda folder: ("gym:Nowhere-v0", folder / "losses.csv"), "Nowhere"),
    "environment not tabular": (lambda folder: ("gym:CartPole-v1", folder / "losses.csv"), "tabular"),
    "environment without a limit": (lambda folder: ("gym:CliffWalking-v1", folder / "l.npy"), "no limit"),
    # the losses
    "losses missing": (good(losses="nowhere.npy"), "nowhere.npy does not exist"),
    "losses of unknown suffix": (containing("losses.txt", b"1"), "'.txt'"),
    "losses empty": (containing("losses.csv", b""), "is empty"),
    "losses npy empty": (containing("losses.npy", b""), "damaged"),
    "losses npy truncated": (truncated("losses.npy"), "damaged"),
    "losses npz truncated": (truncated("losses.npz", 0.8), "damaged"),
    "losses parquet truncated": (truncated("losses.parquet"), "cannot be read"),
    "losses npy of wrong shape": (saved("losses.npy", array=np.zeros((3, 2, 2, 3))), "[·, 2, 2, 3]"),
    "losses npy of one axis": (saved("losses.npy", array=np.zeros(3)), "[3]"),
    "losses npy of text": (saved("losses.npy", array=np.array([["a", "b"]])), "dtype <U1"),
    "losses npy of objects": (saved("losses.npy", array=np.array([[{}, {}]])), "damaged"),
    "losses npy of truths": (saved("losses.npy", array=np.zeros((2, 2, 2, 2), dtype=bool)), "dtype bool"),
    "losses npz out of order": (
        saved(
            "losses.npz", losses=np.zeros((2, 2, 2, 2)), round_labels=np.array(["2021-02-03", "2021-02-01"])
        ),
        "round 2021-02-01 after round 2021-02-03",
    ),
    "order unknown": (good("--order", "newest"), "order is 'newest'"),
    "order of rounds that have none": (good("--order", "sorted"), "rounds like 'mon'"),
    "memory too small": (good("--max-memory", "10"), "takes "),
    "losses npy without rounds": (saved("losses.npy", array=np.zeros((0, 2, 2, 2))), "no round"),
    "losses npy with NaN": (saved("losses.npy", array=np.full((2, 2, 2, 2), np.nan)), "nan"),
    "losses npy that lacks an axis": (saved("losses.npy", array=np.zeros((3, 2, 2))), "--axes TSA"),
    "axes of a table": (good("--axes", "TSA"), "axes is 'TSA'"),
    "axes out of order": (good("--axes", "TAS", losses="losses.npy"), "axes is 'TAS'"),
    "losses npz of two arrays": (saved("losses.npz", a=np.zeros(3), b=np.zeros(3)), "a, b"),
    "losses npz with features of wrong shape": (
        saved("losses.npz", coefficients=np.ones((2, 1)), features=np.ones((1, 2, 2, 3))),
        "[·, 2, 2, 3]",
    ),
    "losses npz with too few names": (
        saved("losses.npz", losses=np.zeros((2, 2, 2, 2)), round_labels=np.array(["mon"])),
        "round_names hold 1",
    ),
    "losses without a column": (edited("losses", "loss", "cost"), "loss"),
    "losses with a misspelt column": (edited("losses", "state", "stat"), "'stat'"),
    "losses with an unknown label": (edited("losses", "tue,home", "tue,hom"), "line 6 names the state 'hom'"),
    "losses with NaN": (edited("losses", "away,go,4", "away,go,NaN"), "line 5"),
    "losses infinite": (edited("losses", "away,go,4", "away,go,-inf"), "'-inf'"),
    "losses with text": (edited("losses", "away,go,4", "away,go,high"), "'high'"),
    "losses with an empty cell": (edited("losses", "away,go,4", "away,go,"), "line 5 has nothing as loss"),
    "losses with text in Parquet": (of_text, "row 1"),
    "losses repeated": (edited("losses", "tue,home,stay", "tue,home,go"), "line 7 repeats round tue"),
    "losses with a missing cell": (
        edited("losses", "tue,away,stay,4\n", ""),
        "no loss for round tue, state away, action stay",
    ),
    "losses of an unknown step": (steps_named_otherwise, "line 3 names the step 'noon'"),
    "default not finite": (good("--default", "nan"), "default is nan"),
    "default without a table": (good("--default", "0", losses="losses.npy"), "default is 0"),
    "losses too large": (edited("losses", "away,go,4", "away,go,1e999"), "line 5"),
    # factored losses
    "feature missing from the coefficients": (factored("wide", old="wear", new="tear"), "add or rename wear"),
    "coefficient without a feature": (factored("wide", "f", "wear,stay,1\n", ""), "'wear'"),
    "coefficient of an unknown feature": (
        factored("long", old="wear", new="tear"),
        "line 3 names the feature 'tear'",
    ),
    "coefficient missing": (factored("long", old="tue,wear,4\n", new=""), "round tue, feature wear"),
    "coefficient that is text": (factored("wide", old="3,4", new="3,four"), "'four'"),
    "round twice": (factored("wide", old="tue", new="mon"), "repeats round mon"),
    "feature repeated": (factored("wide", "f", "wear,stay", "power,go"), "repeats feature power"),
    "feature of an unknown action": (factored("wide", "f", "wear,stay", "wear,fly"), "'fly'"),
    "features without a column": (factored("wide", "f", "value", "amount"), "value"),
    "features missing": (good("--features", "nowhere.csv", losses="wide.csv"), "nowhere.csv"),
    "features with an array": (good("--features", "f.csv", losses="losses.npy"), "features is"),
    # what is to be written
    "out of unknown suffix": (good("--out", "prices.xlsx"), "--out is prices.xlsx"),
    "out in no directory": (good("--out", "nowhere/prices.csv"), "no directory nowhere"),
    "out a directory": (lambda f: good("--out", (f / "d.csv").mkdir() or f / "d.csv")(f), "is a directory"),
    "out not a regular file": (
        lambda f: good("--out", os.mkfifo(f / "p.csv") or f / "p.csv")(f),
        "is not a regular file",
    ),
    "report not a regular file": (
        lambda f: good("--report", os.mkfifo(f / "p.html") or f / "p.html")(f),
        "is not a regular file",
    ),
    "report of unknown suffix": (good("--report", "page.pdf"), "--report is page.pdf"),
}


def files_under(folder: Path) -> dict[Path, bytes | None]:
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


def check_sentence(err: str) -> None:
    assert re.fullmatch(r"normalfan: [^\n]*, but [^\n]*: [^\n]*\.\n", err), err


@pytest.mark.parametrize("name", CASES)
def test_a_sentence_and_an_exit_code(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spoil, where = CASES[name]
    prepare(tmp_path)
    monkeypatch.chdir(tmp_path)
    arguments = spoil(tmp_path)
    before = files_under(tmp_path)
    answer = call("price", *arguments, *(() if "--out" in arguments else ("--out", "prices.csv")))
    assert answer.code == 2, answer
    assert answer.out == ""
    assert where in answer.err
    check_sentence(answer.err)
    assert files_under(tmp_path) == before


def test_the_inputs_that_are_spoiled_are_good(tmp_path: Path) -> None:
    prepare(tmp_path)
    for losses in ("losses.csv", "losses.npy", "losses.npz", "losses.parquet"):
        for model in ("model.csv", "model.npz"):
            assert call("price", *good(model=model, losses=losses)(tmp_path)).code == 0
    for losses in ("wide", "long"):
        assert call("price", *factored(losses)(tmp_path)).code == 0


@pytest.mark.skipif(not Path("/proc/self").exists(), reason="needs a directory nobody can write to")
def test_a_place_that_cannot_be_written_to(tmp_path: Path) -> None:
    prepare(tmp_path)
    answer = call("price", *good("--out", "/proc/prices.csv")(tmp_path))
    assert answer.code == 1
    assert "/proc/prices.csv could not be" in answer.err
    check_sentence(answer.err)


@pytest.mark.processes
@pytest.mark.parametrize("name", ["model npz truncated", "losses with an unknown label", "horizon missing"])
def test_the_same_in_a_process_of_its_own(name: str, tmp_path: Path) -> None:
    spoil, where = CASES[name]
    prepare(tmp_path)
    command = [sys.executable, "-W", "error", "-m", "normalfan", "price", *map(str, spoil(tmp_path))]
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=dict(os.environ))  # noqa: S603
    assert result.returncode == 2
    assert where in result.stderr
    check_sentence(result.stderr)


def test_options_that_do_not_parse_are_refused_by_their_parser(tmp_path: Path) -> None:
    prepare(tmp_path)
    for more in (("--horizon", "two"), ("--default", "none"), ("--no-such-option",)):
        answer = call("price", *good(*more)(tmp_path))
        assert answer.code == 2
        assert "Traceback" not in answer.err
        assert answer.out == ""
