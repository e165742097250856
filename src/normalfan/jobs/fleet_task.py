"""Prices the members of one cell, on whichever worker has it: one row for each member.

A module of its own, because results are kept under a digest of the code that it imports: engines and totals
may change without making them stale.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from functools import lru_cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import numpy as np

from normalfan.errors import InputError
from normalfan.io import load_mdp, open_losses
from normalfan.jobs.fleet_members import ENVIRONMENT, files_of
from normalfan.pricing.stream import price_stream
from normalfan.pricing.summary import kinds_of_rounds
from normalfan.problem.losses import LossStream, names_of_rounds, rewards
from normalfan.problem.mdp import MDP
from normalfan.sources import digest_of_code

if TYPE_CHECKING:
    import polars

KINDS = ("free", "negligible", "priced")


def price_members(settings: Mapping[str, Any]) -> polars.DataFrame:
    import polars

    for module, digest in settings.get("gym_modules", {}).items():
        _check_module(module, digest)
    # Members often share a model; remembered for this cell only, since files may change between cells.
    load = lru_cache(maxsize=8)(load_mdp)
    return polars.DataFrame(
        [_priced(member, load) for member in settings["members"]], schema=schema_of_rows()
    )


def read_member(member: Mapping[str, Any], load: Callable[..., MDP] = load_mdp) -> tuple[MDP, LossStream]:
    mdp = load(member["model"], horizon=member.get("horizon"), start=member.get("start"))
    options = {name: member.get(name) for name in ("features", "default", "axes")}
    stream = open_losses(member["losses"], mdp, **options)
    return mdp, rewards(stream) if member.get("rewards") else stream


def schema_of_rows() -> dict[str, Any]:
    import polars

    return {
        "member": polars.String,
        "rounds": polars.Int64,
        **dict.fromkeys(KINDS, polars.Int64),  # the first round has no plan before it and is none of these
        "total": polars.Float64,
        "worst_price": polars.Float64,
        "worst_round": polars.String,
        "price": polars.List(polars.Float64),  # an entry for each round
        "value": polars.List(polars.Float64),
        "crossed": polars.List(polars.Boolean),
        "problem": polars.String,  # why the member could not be priced; then the rest is empty
    }


def _priced(member: Mapping[str, Any], load: Callable[..., MDP]) -> dict[str, Any]:
    if "problem" in member:
        return {"member": member["member"], "problem": member["problem"]}
    # What this machine lacks raises, so that nothing is kept: the next one may have it.
    for path in files_of(member).values():
        if not path.exists():
            raise InputError(
                f"{path} is not there for the worker on {platform.node()}, but the client sees it: put the "
                f"files of a fleet where all machines see them under one path."
            )
    if member["model"].startswith(ENVIRONMENT) and find_spec("gymnasium") is None:
        raise InputError(
            f"gymnasium is not installed on {platform.node()}, but {member['model']} needs it: "
            f"pip install 'normalfan[gym]'."
        )
    try:
        mdp, stream = read_member(member, load)
        motion = price_stream(mdp, stream, detail="prices")
    except InputError as error:
        return {"member": member["member"], "problem": str(error)}
    kinds = kinds_of_rounds(motion)
    worst = int(motion.prices.argmax())
    names = names_of_rounds(stream)
    return {
        "member": member["member"],
        "rounds": len(motion.prices),
        **{kind: int(np.count_nonzero(kinds == kind)) for kind in KINDS},
        "total": motion.total,
        "worst_price": float(motion.prices[worst]),
        "worst_round": names[worst] if names else str(worst),
        "price": motion.prices.tolist(),
        "value": motion.values.tolist(),
        "crossed": motion.crossed.tolist(),
    }


def _check_module(module: str, digest: str) -> None:
    """The module that registers environments must be the client's."""
    try:
        same = digest_of_code(module) == digest
    except ModuleNotFoundError:
        same = False
    if not same:
        raise InputError(
            f"the worker on {platform.node()} has no module {module} or another one, but results must come "
            f"from the same code everywhere: install it there, and restart the worker."
        )
