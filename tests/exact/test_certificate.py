"""The checker against every lie we can think of, and the certificate's way through JSON."""

from __future__ import annotations

import copy
import dataclasses
import json
import subprocess
import sys
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from exact_problems import (
    HALF,
    QUARTER,
    THIRD,
    Tiny,
    distributions,
    enumerated_price,
    is_cheapest_old_plan,
    tiny_problems,
    with_entry,
)
from hypothesis import assume, given, settings
from hypothesis import strategies as st

import normalfan.exact.certificate as certificate_module
from normalfan.errors import InputError
from normalfan.exact.certificate import Certificate, ExactProblem, check_certificate
from normalfan.exact.certify import certify
from normalfan.exact.rational_json import decode, encode
from normalfan.problem.mdp import MDP


def by_hand() -> Certificate:
    """One step, three actions: 0 and 1 were optimal, 2 is optimal now, 1 costs 1/3 more.

    A second state is never reached.
    """
    zero, one = Fraction(0), Fraction(1)
    problem = ExactProblem(
        horizon=1,
        n_states=2,
        n_actions=3,
        max_denominator=None,
        initial=(one, zero),
        kernels=((((0, one),),) * 6,),
        previous_loss=(((zero, zero, one), (zero,) * 3),),
        loss=(((one, THIRD, zero), (zero,) * 3),),
    )
    return Certificate(
        problem=problem,
        input_hash=problem.digest(),
        previous_values=((zero, zero),),
        values=((zero, zero),),
        mask=(((True, True, False), (False,) * 3),),
        crossing_values=((THIRD, None),),
        policy=((1, None),),
        price=THIRD,
    )


def test_a_proof_written_by_hand_is_accepted() -> None:
    verdict = check_certificate(by_hand())
    assert verdict.valid
    assert verdict.reason == "every condition holds"


def _tamper(record: Any, field: str, place: tuple[int, ...], new: Any) -> Any:
    return dataclasses.replace(record, **{field: with_entry(getattr(record, field), place, new)})


MISSING = "is missing where the old face goes at (h, s) = (0, 0)"
NEEDLESS = "is given where the old face never goes at (h, s) = (0, 1)"
TOO_HIGH = "exceeds advantage + expected next value"
ACTIONS = [f"(h, s, a) = (0, 0, {a})" for a in range(3)]
WRONG_ENTRY = "holds a wrong entry at index"

PROOF_LIES = [  # field, place, new entry, reason
    ("price", (), HALF, "price is not the mean of crossing_values[0] under the start"),
    ("price", (), 1 / 3, f"price {WRONG_ENTRY} []"),
    ("input_hash", (), "0" * 64, "input_hash is not the sha256 of the problem"),
    ("values", (0, 0), 0.0, f"values {WRONG_ENTRY} [0, 0]"),
    ("values", (0, 0), Fraction(-1), "values is attained by no action at (h, s) = (0, 0)"),
    ("previous_values", (0, 0), HALF, "previous_values exceeds loss + expected next value at {0}"),
    ("mask", (), (), "mask is not a tuple of 1 at index []"),
    ("mask", (0, 0, 2), True, "mask keeps an action that was not optimal before at {2}"),
    ("mask", (0, 0, 0), False, "mask drops an action that was optimal before at {0}"),
    ("crossing_values", (0, 0), HALF, f"crossing_values {TOO_HIGH} at {{1}}"),
    ("crossing_values", (0, 0), QUARTER, "policy does not attain crossing_values at {1}"),
    ("crossing_values", (0, 0), None, f"crossing_values {MISSING}"),
    ("policy", (0, 0), None, f"policy {MISSING}"),
    ("mask", (0, 1, 0), True, "mask keeps an action where the old face never goes"),
    ("crossing_values", (0, 1), Fraction(0), f"crossing_values {NEEDLESS}"),
    ("policy", (0, 1), 0, f"policy {NEEDLESS}"),
    ("policy", (0, 0), 0, "policy does not attain crossing_values at {0}"),
    ("policy", (0, 0), 2, "policy leaves the old face at {2}"),
    ("policy", (0, 0), -2, f"policy {WRONG_ENTRY} [0, 0]"),  # Python would count from the end
    ("policy", (0, 0), True, f"policy {WRONG_ENTRY} [0, 0]"),  # Python would take it for 1
]

PROBLEM_LIES = [  # the same, in a problem with a new hash
    ("initial", (0,), HALF, "initial is not a distribution"),
    ("initial", (), (3 * HALF, -HALF), "initial is not a distribution"),
    ("kernels", (0, 2), ((0, 3 * HALF), (1, -HALF)), "kernels is not a distribution"),
    ("kernels", (0, 2), ((0, 2 * HALF), (1, 0 * HALF)), "kernels is not a distribution"),
    ("kernels", (0, 2, 0, 1), HALF, "kernels is not a distribution"),
    ("kernels", (0, 2, 0, 1), 1.0, f"kernels {WRONG_ENTRY} [0, 2]"),
    ("kernels", (0, 2, 0, 0), -1, f"kernels {WRONG_ENTRY} [0, 2]"),
    ("kernels", (0, 1), (), "kernels is not a distribution"),
    ("kernels", (0, 1), ((0, HALF), (0, HALF)), f"kernels {WRONG_ENTRY} [0, 1]"),
    ("kernels", (), (((),), ((),)), "kernels holds neither one kernel nor one for each step"),
    ("horizon", (), 0, "horizon is not a positive integer"),
    ("max_denominator", (), 0, "max_denominator is neither None nor a positive integer"),
    ("loss", (0, 0, 1), HALF, "policy does not attain crossing_values at {1}"),
    ("loss", (0, 0, 1), QUARTER, f"crossing_values {TOO_HIGH} at {{1}}"),
]


@pytest.mark.parametrize(("field", "place", "new", "reason"), PROOF_LIES)
def test_a_lie_in_the_proof_is_named(field: str, place: Any, new: Any, reason: str) -> None:
    verdict = check_certificate(_tamper(by_hand(), field, place, new))
    assert not verdict
    assert verdict.reason.startswith(reason.format(*ACTIONS))


@pytest.mark.parametrize(("field", "place", "new", "reason"), PROBLEM_LIES)
def test_a_lie_in_the_problem_is_named(field: str, place: Any, new: Any, reason: str) -> None:
    problem = _tamper(by_hand().problem, field, place, new)
    lie = dataclasses.replace(by_hand(), problem=problem, input_hash=problem.digest())
    verdict = check_certificate(lie)
    assert not verdict
    assert verdict.reason.startswith(reason.format(*ACTIONS))


@st.composite
def mutations(draw: st.DrawFn, cert: Certificate) -> Any:
    """The certificate with one entry of one field changed, wherever it may be."""
    problem = cert.problem
    h = draw(st.integers(0, problem.horizon - 1))
    s = draw(st.integers(0, problem.n_states - 1))
    a = draw(st.integers(0, problem.n_actions - 1))
    shift = draw(st.sampled_from([-THIRD, -QUARTER, QUARTER, THIRD, Fraction(1, 10**20)]))
    field = draw(st.sampled_from(["price", "previous_values", "values", "mask", "crossing_values", "policy"]))
    if field == "price":
        return dataclasses.replace(cert, price=cert.price + shift)
    if field == "mask":
        return _tamper(cert, field, (h, s, a), lambda kept: not kept)
    if field == "policy":
        others = [None, *range(problem.n_actions)]
        others.remove(cert.policy[h][s])
        changed = draw(st.sampled_from(others))
        return _tamper(cert, field, (h, s), changed)
    return _tamper(cert, field, (h, s), lambda v: shift if v is None else v + shift)


def _acts(cert: Certificate) -> list[list[bool]]:
    return [[action is not None for action in layer] for layer in cert.policy]


@settings(max_examples=200)
@given(st.data())
def test_a_changed_proof_is_rejected_unless_it_is_a_proof_too(data: st.DataObject) -> None:
    tiny = data.draw(tiny_problems())
    cert = tiny.certify()
    changed = data.draw(mutations(cert))
    if check_certificate(changed):
        # Another policy may be as cheap. Then the proof is still a proof, of the same price.
        assert dataclasses.replace(changed, policy=cert.policy) == cert
        assert _acts(changed) == _acts(cert)
        assert is_cheapest_old_plan(tiny, changed.policy)


@settings(max_examples=80)
@given(st.data())
def test_a_changed_problem_is_rejected_and_never_proves_a_wrong_price(data: st.DataObject) -> None:
    tiny = data.draw(tiny_problems())
    cert = tiny.certify()
    other = data.draw(st.sampled_from([_new_start, _new_row, _new_loss]))(tiny, data)
    problem = other.certify().problem
    assume(problem != cert.problem)
    unsigned = dataclasses.replace(cert, problem=problem)
    assert check_certificate(unsigned).reason.startswith("input_hash")
    # With a new hash the changed problem is believed only if the price is right there too.
    if check_certificate(dataclasses.replace(unsigned, input_hash=problem.digest())):
        assert cert.price == enumerated_price(other)


def _new_start(tiny: Tiny, data: st.DataObject) -> Tiny:
    return dataclasses.replace(tiny, initial=data.draw(distributions(len(tiny.initial))))


def _new_row(tiny: Tiny, data: st.DataObject) -> Tiny:
    h, s, a = _draw_place(tiny, data)
    kernels = copy.deepcopy(tiny.kernels)
    kernels[h][s][a] = data.draw(distributions(len(tiny.initial)))
    return dataclasses.replace(tiny, kernels=kernels)


def _new_loss(tiny: Tiny, data: st.DataObject) -> Tiny:
    h, s, a = _draw_place(tiny, data)
    field = data.draw(st.sampled_from(["previous_loss", "loss"]))
    loss = copy.deepcopy(getattr(tiny, field))
    loss[h][s][a] += data.draw(st.sampled_from([-HALF, -QUARTER, QUARTER, HALF]))
    return dataclasses.replace(tiny, **{field: loss})


def _draw_place(tiny: Tiny, data: st.DataObject) -> tuple[int, ...]:
    return tuple(data.draw(st.integers(0, size - 1)) for size in tiny.shape)


def test_the_forward_route_alone_finds_a_wrong_price(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(certificate_module, "_not_cheapest", lambda *_: iter(()))
    consistent = _tamper(by_hand(), "crossing_values", (0, 0), HALF)
    verdict = check_certificate(dataclasses.replace(consistent, price=HALF))
    assert verdict.reason.startswith("price is not the sum of the advantages")


def test_the_checker_stands_alone() -> None:
    """In a fresh interpreter, past `normalfan.__init__`, it needs no array and no solver."""
    package = Path(certificate_module.__file__).parents[1]
    script = (
        "import sys, types\n"
        "package = types.ModuleType('normalfan')\n"
        f"package.__path__ = [{str(package)!r}]\n"
        "sys.modules['normalfan'] = package\n"
        "from normalfan.exact.certificate import Certificate, check_certificate\n"
        "print(check_certificate(Certificate.from_json(sys.stdin.read())).valid)\n"
        "foreign = {name.split('.')[0] for name in sys.modules} - sys.stdlib_module_names\n"
        "print(sorted(foreign), sorted(n for n in sys.modules if n.startswith('normalfan.')))\n"
    )
    result = subprocess.run(  # noqa: S603
        [sys.executable, "-I", "-S", "-W", "error", "-c", script],
        input=by_hand().to_json(),
        capture_output=True,
        text=True,
        check=True,
    )
    parts = ("errors", "exact", "exact.certificate", "exact.rational_json", "text")
    own = [f"normalfan.{name}" for name in parts]
    assert result.stdout.splitlines() == ["True", f"['__main__', 'normalfan'] {own}"]


# --- JSON ---------------------------------------------------------------------------------------


@settings(max_examples=40)
@given(tiny_problems())
def test_json_round_trip(tiny: Tiny) -> None:
    cert = tiny.certify()
    again = Certificate.from_json(cert.to_json())
    assert again == cert
    assert again.to_json() == cert.to_json()
    assert check_certificate(again)


def test_fractions_longer_than_python_prints_survive() -> None:
    long = Fraction(-(7**6000), 3**10000)  # over 4,300 digits in both parts
    assert decode(Fraction, encode(long), "here") == long
    assert repr(dataclasses.replace(by_hand(), price=long)).startswith("Certificate(price≈-")


def test_how_a_certificate_is_shown() -> None:
    cert = by_hand()
    assert repr(cert.problem) == "ExactProblem(horizon=1, n_states=2, n_actions=3, max_denominator=None)"
    assert len(repr(cert)) < 120
    assert (
        f"<td>0.333333333333</td><td>1</td><td>2</td><td>3</td><td>{cert.input_hash[:12]}…"
        in cert._repr_html_()
    )


def test_the_smallest_float_is_read_exactly() -> None:
    choice = MDP(np.array([[0, 0]]), initial=0, horizon=1)
    cert = certify(choice, [[[0.0, 5e-324]]], [[[5e-324, 0.0]]])
    assert cert.price == Fraction(1, 2**1074)
    assert Certificate.from_json(cert.to_json()) == cert


def _spoilt(*path: Any, value: Any) -> str:
    record = json.loads(by_hand().to_json())
    *outer, last = path
    holder = record
    for key in outer:
        holder = holder[key]
    holder[last] = value
    return json.dumps(record)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[" * 100_000, "not JSON"),
        (by_hand().to_json().replace("{", '{"price":"0/1",', 1), "'price' is there 2 times"),
        (
            by_hand().to_json().replace('"horizon":', '"horizon":2,"horizon":', 1),
            "'horizon' is there 2 times",
        ),
        ("null", "certificate is None"),
        ("{}", "'crossing_values' is missing from certificate"),
        (_spoilt("extra", value=1), "'extra' does not belong in certificate"),
        (_spoilt("problem", value=[]), "certificate.problem is"),
        (_spoilt("problem", "horizon", value=True), "certificate.problem.horizon is True"),
        (_spoilt("problem", "horizon", value=1.0), "certificate.problem.horizon is 1.0"),
        (_spoilt("problem", "kernels", 0, 1, 0, value=[0]), "certificate.problem.kernels[0][1][0]"),
        (_spoilt("price", value=0.5), "certificate.price is 0.5"),
        (_spoilt("price", value="1/0"), "certificate.price is '1/0'"),
        (_spoilt("price", value="2/6"), "certificate.price is '2/6'"),
        (_spoilt("price", value="1/-3"), "certificate.price is '1/-3'"),
        (_spoilt("price", value="٣/1"), "certificate.price is"),
        (_spoilt("price", value="1" * 5000 + "/1"), "certificate.price is"),
        (_spoilt("values", 0, 0, value=None), "certificate.values[0][0] is None"),
        (_spoilt("mask", 0, 0, 1, value=1), "certificate.mask[0][0][1] is 1"),
        (_spoilt("input_hash", value=7), "certificate.input_hash is 7"),
        (_spoilt("policy", 0, value={}), "certificate.policy[0] is {}"),
    ],
)
def test_malformed_json_is_refused_in_one_sentence(text: str, what: str) -> None:
    with pytest.raises(InputError) as caught:
        Certificate.from_json(text)
    message = str(caught.value)
    assert what in message
    assert message.endswith("to_json().")
    assert "\n" not in message
