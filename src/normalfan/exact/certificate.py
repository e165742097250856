"""A price with its proof, and a checker that trusts nobody.

    Γ = min J_ℓ(π) over the policies π optimal for ℓ'  −  min J_ℓ(π) over all policies

is easy to check: a function that satisfies a Bellman equation *is* the minimum. docs/details/certificates.md
proves the four conditions that `check_certificate` verifies. It knows nothing of how the numbers were found:
this module imports the standard library, the problem's record and its JSON notation. Indices count from zero.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import TYPE_CHECKING, TypeAlias

from normalfan.exact.exact_problem import (
    ExactProblem,
    Kernel,
    Loss,
    Row,
    is_fraction,
    malformed_problem,
    misfits,
)
from normalfan.exact.rational_json import canonical_text, decode, parse

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from normalfan.problem.mdp import MDP

Values: TypeAlias = tuple[tuple[Fraction, ...], ...]  # [H][S]
Advantages: TypeAlias = list[list[list[Fraction]]]  # [H][S][A]


@dataclass(frozen=True, repr=False)
class Certificate:
    """An exact price and its proof; `certify` makes it and `check_certificate` verifies it.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> nf.certify(arms, [[[0, 1]]], [[[3, 2]]]).matches(arms, [[[0, 1]]], [[[3, 2]]])
    True
    """

    problem: ExactProblem  # the dynamics, the start and the two losses
    input_hash: str  # the SHA-256 of the problem, in hexadecimal
    previous_values: Values  # the optimal values of the previous loss
    values: Values  # and of the new one
    mask: tuple[tuple[tuple[bool, ...], ...], ...]  # [H][S][A]: the optimal face of the previous loss
    crossing_values: tuple[tuple[Fraction | None, ...], ...]  # [H][S]: W; None where the face never goes
    policy: tuple[tuple[int | None, ...], ...]  # [H][S]: the cheapest kept actions; None likewise
    price: Fraction  # what keeping to the face costs

    def __repr__(self) -> str:
        return f"Certificate(price≈{self._decimal_price:.12g}, input_hash={self.input_hash!r})"

    def _repr_html_(self) -> str:
        from normalfan.text import html_table

        problem = self.problem
        sizes = (problem.horizon, problem.n_states, problem.n_actions)
        row = (f"{self._decimal_price:.12g}", *sizes, f"{self.input_hash[:12]}…")
        return html_table("Certificate", ("price", "steps", "states", "actions", "input_hash"), [row])

    @property
    def _decimal_price(self) -> Decimal:
        # Decimal, since the fraction may exceed what Python prints and a float's range.
        return Decimal(self.price.numerator) / Decimal(self.price.denominator)

    def to_json(self) -> str:
        """Write the certificate as JSON text, fractions as ``"p/q"``."""
        return canonical_text(self)

    def matches(
        self, mdp: MDP, previous: ArrayLike, loss: ArrayLike, *, max_denominator: int | None = None
    ) -> bool:
        """Say whether this certificate is about *your* crossing, read by your own `max_denominator`."""
        from normalfan.exact.certify import read_exactly

        # Not by the certificate's: its maker could pass off 0.49 as 0.
        return read_exactly(mdp, previous, loss, max_denominator=max_denominator) == self.problem

    @staticmethod
    def from_json(text: str) -> Certificate:
        """Read what `to_json` wrote; whether the numbers prove anything is left to `check_certificate`."""
        certificate: Certificate = decode(Certificate, parse(text), "certificate")
        return certificate


@dataclass(frozen=True)
class CertificateCheck:
    """The verdict on a certificate; true when it is valid."""

    valid: bool  # whether every condition holds
    reason: str  # the first violated condition and its place

    def __bool__(self) -> bool:
        return self.valid


def check_certificate(cert: Certificate) -> CertificateCheck:
    """Verify a certificate from its own contents, in exact arithmetic and without the code that made it.

    The price is then right *for the problem inside it*; whether that is yours says `Certificate.matches`.

    Parameters
    ----------
    cert : Certificate

    Returns
    -------
    CertificateCheck
        True if the price is proved; otherwise its `reason` names the first violated condition.

    Examples
    --------
    >>> import normalfan as nf
    >>> nf.check_certificate(nf.certify(nf.MDP([[0, 0]], 0, horizon=1), [[[0, 1]]], [[[3, 2]]]))
    CertificateCheck(valid=True, reason='every condition holds')
    """
    reason = next(_violations(cert), None)
    return CertificateCheck(reason is None, reason or "every condition holds")


def _violations(cert: Certificate) -> Iterator[str]:
    """Violations in order; the caller stops at the first, so each check builds on the last."""
    yield from _malformed(cert)
    problem = cert.problem
    if cert.input_hash != problem.digest():
        yield "input_hash is not the sha256 of the problem in the certificate"
    yield from _improper_distributions(problem)
    previous_advantages = advantages_of(problem, problem.previous_loss, cert.previous_values)
    yield from _not_optimal(previous_advantages, "previous_values")
    advantages = advantages_of(problem, problem.loss, cert.values)
    yield from _not_optimal(advantages, "values")
    yield from _not_the_old_face(cert, previous_advantages)
    yield from _not_cheapest(cert, advantages)
    yield from _wrong_price(cert, advantages)


def _malformed(cert: Certificate) -> Iterator[str]:
    """Shapes and types come first: an index of -1 would wrap around and a None break a sum."""
    yield from malformed_problem(cert.problem)
    H, S, A = cert.problem.horizon, cert.problem.n_states, cert.problem.n_actions
    yield from misfits("previous_values", cert.previous_values, (H, S), is_fraction)
    yield from misfits("values", cert.values, (H, S), is_fraction)
    yield from misfits("mask", cert.mask, (H, S, A), lambda kept: type(kept) is bool)
    is_crossing_value = _or_none(is_fraction)
    yield from misfits("crossing_values", cert.crossing_values, (H, S), is_crossing_value)
    is_action = _or_none(lambda a: type(a) is int and 0 <= a < A)
    yield from misfits("policy", cert.policy, (H, S), is_action)
    yield from misfits("price", cert.price, (), is_fraction)


def _or_none(is_item: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: value is None or is_item(value)


def _improper_distributions(problem: ExactProblem) -> Iterator[str]:
    if min(problem.initial) < 0 or sum(problem.initial) != 1:
        yield "initial is not a distribution (entries >= 0, summing to exactly 1)"
    for k, kernel in enumerate(problem.kernels):
        for index, row in enumerate(kernel):
            if any(p <= 0 for _, p in row) or sum(p for _, p in row) != 1:
                place = _at(k, *divmod(index, problem.n_actions))
                yield f"kernels is not a distribution (entries > 0, summing to exactly 1){place}"


def advantages_of(problem: ExactProblem, loss: Loss, values: Values) -> Advantages:
    """The advantages A[h][s][a] = loss + expected next value - value."""
    after_the_end = (Fraction(0),) * problem.n_states
    advantages = []
    for h, after in enumerate((*values[1:], after_the_end)):
        mean = _mean_of(dict(enumerate(after)))
        layer = []
        for s, value in enumerate(values[h]):
            pairs = zip(loss[h][s], _rows(problem, h, s), strict=True)
            layer.append([own + mean(row) - value for own, row in pairs])
        advantages.append(layer)
    return advantages


def _rows(problem: ExactProblem, h: int, s: int) -> Kernel:
    """The transitions of every action at one state."""
    kernel = problem.kernels[h % len(problem.kernels)]
    return kernel[s * problem.n_actions : (s + 1) * problem.n_actions]


def _mean_of(after: Mapping[int, Fraction]) -> Callable[[Row], Fraction]:
    """Expectation over one layer of values, brought to a common denominator once for all rows."""
    denominator = math.lcm(*(value.denominator for value in after.values()))
    numerators = {s: v.numerator * (denominator // v.denominator) for s, v in after.items()}

    def mean(row: Row) -> Fraction:
        common = math.lcm(*(p.denominator for _, p in row))
        total = sum(p.numerator * (common // p.denominator) * numerators[s] for s, p in row)
        return Fraction(total, common * denominator)

    return mean


def _not_optimal(advantages: Advantages, name: str) -> Iterator[str]:
    """Condition 1: all advantages are non-negative and every state has a zero one."""
    for h, layer in enumerate(advantages):
        for s, here in enumerate(layer):
            least = min(here)
            if least < 0:
                yield f"{name} exceeds loss + expected next value{_at(h, s, here.index(least))}"
            if least > 0:
                yield f"{name} is attained by no action{_at(h, s)}"


def _not_the_old_face(cert: Certificate, previous_advantages: Advantages) -> Iterator[str]:
    """Condition 2: kept are the actions of zero previous advantage at the states they reach."""
    reached = {s for s, p in enumerate(cert.problem.initial) if p > 0}
    for h, layer in enumerate(previous_advantages):
        after: set[int] = set()
        for s, here in enumerate(layer):
            rows = _rows(cert.problem, h, s)
            for a, kept in enumerate(cert.mask[h][s]):
                if kept and s not in reached:
                    yield f"mask keeps an action where the old face never goes{_at(h, s, a)}"
                if kept and here[a] != 0:
                    yield f"mask keeps an action that was not optimal before{_at(h, s, a)}"
                if not kept and here[a] == 0 and s in reached:
                    yield f"mask drops an action that was optimal before{_at(h, s, a)}"
                if kept:
                    after.update(state for state, _ in rows[a])
            for name, item in (("policy", cert.policy), ("crossing_values", cert.crossing_values)):
                if item[h][s] is None and s in reached:
                    yield f"{name} is missing where the old face goes{_at(h, s)}"
                if item[h][s] is not None and s not in reached:
                    yield f"{name} is given where the old face never goes{_at(h, s)}"
        reached = after


def _not_cheapest(cert: Certificate, advantages: Advantages) -> Iterator[str]:
    """Condition 3: W <= A + P W for every kept action, with equality at the policy's own."""
    problem = cert.problem
    layers = [{s: w for s, w in enumerate(layer) if w is not None} for layer in cert.crossing_values]
    after_the_end = dict.fromkeys(range(problem.n_states), Fraction(0))
    for h, after in enumerate((*layers[1:], after_the_end)):
        mean = _mean_of(after)
        for s, value in layers[h].items():
            rows = _rows(problem, h, s)
            chosen = cert.policy[h][s]
            for a in range(problem.n_actions):
                if not cert.mask[h][s][a]:
                    if a == chosen:
                        yield f"policy leaves the old face{_at(h, s, a)}"
                    continue
                slack = advantages[h][s][a] + mean(rows[a]) - value
                if slack < 0:
                    yield f"crossing_values exceeds advantage + expected next value{_at(h, s, a)}"
                if slack > 0 and a == chosen:
                    yield f"policy does not attain crossing_values{_at(h, s, a)}"


def _wrong_price(cert: Certificate, advantages: Advantages) -> Iterator[str]:
    """Conditions 3 and 4: the price at the start, and again along the policy's way."""
    start = cert.problem.initial
    pairs = zip(start, cert.crossing_values[0], strict=True)
    if cert.price != sum(p * w for p, w in pairs if w is not None):
        yield "price is not the mean of crossing_values[0] under the start"
    collected = Fraction(0)
    occupied = {s: p for s, p in enumerate(start) if p > 0}
    for h, actions in enumerate(cert.policy):
        after: dict[int, Fraction] = {}
        for s, a in enumerate(actions):
            if a is not None and s in occupied:
                collected += occupied[s] * advantages[h][s][a]
                for state, p in _rows(cert.problem, h, s)[a]:
                    after[state] = after.get(state, Fraction(0)) + occupied[s] * p
        occupied = after
    if cert.price != collected:
        yield "price is not the sum of the advantages that the policy collects from the start"


def _at(h: int, s: int, a: int | None = None) -> str:
    return f" at (h, s) = ({h}, {s})" if a is None else f" at (h, s, a) = ({h}, {s}, {a})"
