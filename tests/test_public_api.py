"""What a newcomer meets: names that explain themselves, short reprs, a quick import."""

from __future__ import annotations

import dataclasses
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from typing import Any, get_args

import numpy as np
import pytest
from numpydoc.docscrape import NumpyDocString

import normalfan as nf

MODULES = (nf, nf.io, nf.jobs, nf.learners, nf.replan, nf.report)

RAISES_NOTHING = {"check_certificate", "decompose", "mdp_to_frame", "whole_polytope"}
"""The functions of an `__all__` that refuse no input."""

HEAVY = {"numba", "scipy", "polars", "rich", "typer", "matplotlib", "jinja2", "plotly", "dask", "distributed"}

ARMS = nf.MDP([[0, 0]], initial=0, horizon=1)


# --- what is public --------------------------------------------------------------------------------------


def exported() -> dict[str, Any]:
    """The classes and functions of every `__all__`, by the name a user writes."""
    return {
        f"{module.__name__}.{name}": item
        for module in MODULES
        for name in module.__all__
        if inspect.isclass(item := getattr(module, name)) or inspect.isfunction(item)
    }


def public_members(owner: type) -> dict[str, Any]:
    """The methods, as functions, and the properties that a class defines itself."""
    members = {name: getattr(member, "__func__", member) for name, member in vars(owner).items()}
    return {
        name: member
        for name, member in members.items()
        if not name.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
    }


def named_in(item: Any) -> Iterator[type]:
    """Our public classes that the annotations of a class or function name, through type aliases too."""
    parts = [item]
    if inspect.isclass(item):
        members = [item.__init__, *public_members(item).values()]
        parts += [getattr(member, "fget", member) for member in members]
    annotations = [inspect.get_annotations(part) for part in parts if part is not object.__init__]
    words = re.findall(r"\w+", str([list(one.values()) for one in annotations]))
    for word in words:
        meant = getattr(sys.modules[item.__module__], word, None)
        for one in (meant, *get_args(meant)):
            if inspect.isclass(one) and one.__module__.startswith("normalfan.") and one.__name__[0] != "_":
                yield one


def reached() -> dict[str, Any]:
    """What is exported, and every public class that its annotations lead to."""
    found = exported()
    known, waiting = set(found.values()), list(found.values())
    while waiting:
        for one in named_in(waiting.pop()):
            if one not in known:
                known.add(one)
                waiting.append(one)
                found[f"{one.__module__}.{one.__qualname__}"] = one
    return found


# --- docstrings ------------------------------------------------------------------------------------------


def parsed(item: Any) -> NumpyDocString:
    own = item.__doc__ or ""
    generated = inspect.isclass(item) and own.startswith(f"{item.__name__}(")  # by @dataclass
    return NumpyDocString("" if generated else inspect.cleandoc(own))


def names_in(doc: NumpyDocString, section: str) -> set[str]:
    return {name.strip().lstrip("*") for entry in doc[section] for name in entry.name.split(",")}


def flaws_of_function(function: Any) -> Iterator[str]:
    doc, signature = parsed(function), inspect.signature(function)
    if not doc["Summary"]:
        yield "no summary"
    if wrong := set(signature.parameters) ^ names_in(doc, "Parameters"):
        yield f"Parameters and signature differ in {', '.join(sorted(wrong))}"
    if signature.return_annotation != "None" and not (doc["Returns"] or doc["Yields"]):
        yield "no Returns"


def flaws_of_class(owner: type) -> Iterator[str]:
    doc = parsed(owner)
    if not doc["Summary"]:
        yield "no summary"
    documented, needed = names_in(doc, "Parameters"), set[str]()
    if dataclasses.is_dataclass(
        owner
    ):  # its fields may be Parameters, Attributes, or have comments beside them
        needed = {field.name for field in dataclasses.fields(owner) if not field.name.startswith("_")}
        documented |= names_in(doc, "Attributes") & needed
        documented = documented or commented_fields(owner) & needed
    elif "__init__" in vars(owner) and owner not in protocols():
        needed = set(inspect.signature(owner).parameters)
    if wrong := needed ^ documented:
        yield f"Parameters or Attributes and the fields differ in {', '.join(sorted(wrong))}"


def commented_fields(owner: type) -> set[str]:
    return set(re.findall(r"^    (\w+): .*  # ", inspect.getsource(owner), flags=re.MULTILINE))


def protocols() -> list[type]:
    return [one for one in reached().values() if getattr(one, "_is_protocol", False)]


def is_documented_by_a_protocol(owner: type, name: str, known: list[type]) -> bool:
    """Whether a class has the method because a public protocol, which describes it, asks for it."""
    return any(
        owner is not one and name in vars(one) and all(hasattr(owner, other) for other in public_members(one))
        for one in known
    )


def flaws(name: str, item: Any, *, is_exported: bool) -> Iterator[str]:
    doc = parsed(item)
    if inspect.isclass(item):
        yield from (f"{name}: {flaw}" for flaw in flaws_of_class(item))
        known = protocols()
        for method, member in public_members(item).items():
            if is_documented_by_a_protocol(item, method, known):
                continue
            if not parsed(member)["Summary"]:
                yield f"{name}.{method}: no summary"
    else:
        yield from (f"{name}: {flaw}" for flaw in flaws_of_function(item))
        if not doc["Raises"] and item.__name__ not in RAISES_NOTHING:
            yield f"{name}: no Raises"
    if is_exported and not doc["Examples"]:
        yield f"{name}: no Examples"


def test_every_public_name_explains_itself() -> None:
    names = exported()
    found = {
        flaw for name, item in reached().items() for flaw in flaws(name, item, is_exported=name in names)
    }
    assert not found, "\n".join(["", *sorted(found)])


def test_the_check_finds_what_is_missing() -> None:
    def short(a: int, b: int) -> int:
        return a + b

    short.__doc__ = "Add.\n\nParameters\n----------\na, c : int\n    Numbers.\n"
    found = list(flaws("short", short, is_exported=True))
    assert [flaw.removeprefix("short: ") for flaw in found] == [
        "Parameters and signature differ in b, c",
        "no Returns",
        "no Raises",
        "no Examples",
    ]
    assert nf.RunLog in set(named_in(nf.Decomposition))
    assert len(reached()) > len(exported())


# --- names -----------------------------------------------------------------------------------------------


def test_nothing_leaks() -> None:
    assert [name for name in dir(nf) if not name.startswith("_")] == sorted(nf.__all__)
    for module in MODULES:
        assert all(hasattr(module, name) for name in module.__all__)
    with pytest.raises(AttributeError, match="attribute nothing"):
        _ = nf.nothing


def test_arrays_over_rounds_are_plural_and_columns_singular() -> None:
    """`prices` of a motion, `price` of a round and of a frame: one rule, no third name."""
    motion = nf.price_stream(ARMS, np.zeros((2, 1, 1, 2)))
    apart = {"round_names", "labels", "variations", "by_step", "cells", "cell_prices", "plans", "rewards"}
    apart |= {"moved"}
    arrays = {field.name for field in dataclasses.fields(motion)} - apart
    columns = set(motion.columns())
    variations = {"variation_l1", "variation_l2", "variation_linf"}
    assert {name if name in columns else name.removesuffix("s") for name in arrays} == columns - variations
    assert {field.name for field in dataclasses.fields(nf.PricedRound)} == columns | {
        "round",
        "by_step",
        "costliest",
        "moved",
    }
    cells = {f"costliest_{part}" for part in ("step", "state", "action", "best_action", "paid")}
    assert set(motion.to_frame().columns) == columns | cells | {"round"}


def test_what_is_told_of_moving_dynamics_has_the_same_names_everywhere() -> None:
    other = nf.MDP([[0, 0]], initial=0, horizon=1, allowed=[[True, False]])
    monitor = nf.Monitor(ARMS)
    monitor.update([[[0.0, 1.0]]])
    priced = monitor.update([[[0.0, 1.0]]], mdp=other)
    motion = nf.price_stream([ARMS, other], np.zeros((2, 1, 1, 2)), dynamics_of_round=[0, 1])
    told = {field.name for field in dataclasses.fields(priced.moved)}
    fixed = set(nf.price_stream(ARMS, np.zeros((2, 1, 1, 2))).columns())
    assert set(motion.columns()) - fixed == told | {"dynamics"}


def test_ties_are_keyword_only() -> None:
    for name, item in reached().items():
        functions = [item, *(vars(item).values() if inspect.isclass(item) else ())]
        for function in filter(inspect.isfunction, functions):
            ties = inspect.signature(function).parameters.get("ties")
            assert ties is None or ties.kind is ties.KEYWORD_ONLY, f"{name}: {function.__name__}"


# --- reprs -----------------------------------------------------------------------------------------------


def test_results_of_ten_thousand_rounds_have_short_reprs() -> None:
    losses = np.random.default_rng(0).normal(size=(10_000, 1, 1, 2))
    long = "a very long name of a round " * 9
    named = nf.ArrayLosses(losses, round_names=[f"{long}{t}" for t in range(10_000)])
    motion = nf.price_stream(ARMS, named)
    log = nf.run(ARMS, nf.learners.FaceTracker(ARMS), losses)
    crossing = nf.price(nf.optimal_face(ARMS, losses[0]), losses[1])
    priced = nf.Monitor(ARMS).update(losses[0])
    for result in (motion, log, nf.decompose(log), crossing, priced):
        assert len(repr(result)) < 600, type(result).__name__
        assert result._repr_html_().startswith("<table>")
    assert repr(motion).startswith("PricedMotion: 10,000 rounds, ")


# --- the import ------------------------------------------------------------------------------------------


def test_the_import_is_light() -> None:
    code = "import sys, normalfan; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603
    modules = set(done.stdout.split())
    assert not HEAVY & modules
    assert not {"normalfan.io", "normalfan.jobs", "normalfan.replan", "normalfan.report"} & modules
