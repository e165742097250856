"""A price with its proof, and a checker that trusts nobody.

    Γ = min J_ℓ(π) over the policies π optimal for ℓ'  −  min J_ℓ(π) over all policies

is easy to check: a function that satisfies a Bellman equation *is* the minimum. docs/details/certificates.md
proves the four conditions that `check_certificate` verifies. It knows nothing of how the numbers were found:
this module imports the standard library and its JSON notation. The problem is in it as rationals, so that a
proof can be checked years later without the arrays it came from. Indices count from zero.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias, cast

from normalfan.exact.rational_json import canonical_text, read_text
from normalfan.text import html_table

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from normalfan.problem.mdp import MDP

Row: TypeAlias = tuple[tuple[int, Fraction], ...]  # (next state, probability > 0), by state
Kernel: TypeAlias = tuple[Row, ...]  # [S·A], row s·A + a
WholeRow: TypeAlias = tuple[list[tuple[int, int]], int]  # (next state, weight), and what to divide them by
Loss: TypeAlias = tuple[tuple[tuple[Fraction | None, ...], ...], ...]  # [H][S][A]; None: not allowed
Costs: TypeAlias = Sequence[Sequence[Fraction | None]]  # [S][A] of one step
Values: TypeAlias = tuple[tuple[Fraction, ...], ...]  # [H][S]
Advantages: TypeAlias = list[list[list[Fraction | None]]]  # [H][S][A]; None: not allowed


@dataclass(frozen=True)
class ExactProblem:
    """The dynamics, the start and the two losses of a crossing, in rationals; both dynamics if they moved."""

    horizon: int  # H
    n_states: int  # S
    n_actions: int  # A
    max_denominator: int | None  # how floats were read; None: at their exact binary value
    initial: tuple[Fraction, ...] = field(repr=False)  # [S]
    kernels: tuple[Kernel, ...] = field(repr=False)  # [H], or [1] if every step has the same
    previous_loss: Loss = field(repr=False)  # [H][S][A]
    loss: Loss = field(repr=False)  # [H][S][A]
    previous_initial: tuple[Fraction, ...] | None = field(default=None, repr=False)  # None: as `initial`
    previous_kernels: tuple[Kernel, ...] | None = field(default=None, repr=False)  # None: as `kernels`

    @property
    def before(self) -> ExactProblem:
        """The problem with the start and the dynamics that the kept plan was made for."""
        initial, kernels = self.previous_initial or self.initial, self.previous_kernels or self.kernels
        return replace(self, initial=initial, kernels=kernels)

    def rows(self, h: int, s: int) -> list[WholeRow]:
        """The moves of every action at one state."""
        kernel = self._whole[h % len(self.kernels)]
        return kernel[s * self.n_actions : (s + 1) * self.n_actions]

    @cached_property
    def _whole(self) -> list[list[WholeRow]]:
        def whole(row: Row) -> WholeRow:
            weights, total = scaled([p for _, p in row])
            return [(state, weight) for (state, _), weight in zip(row, weights, strict=True)], total

        return [[whole(row) for row in kernel] for kernel in self.kernels]

    def digest(self) -> str:
        """The SHA-256 of the problem's canonical text, in hexadecimal."""
        return hashlib.sha256(canonical_text(self).encode("ascii")).hexdigest()


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
    mask: tuple[tuple[tuple[bool, ...], ...], ...]  # [H][S][A]: what is kept of the previous loss's face
    crossing_values: tuple[tuple[Fraction | None, ...], ...]  # [H][S]: W; None where the face never goes
    policy: tuple[tuple[int | None, ...], ...]  # [H][S]: the cheapest kept actions; None likewise
    price: Fraction  # what keeping to the face costs

    def __repr__(self) -> str:
        return f"Certificate(price≈{self._decimal_price:.12g}, input_hash={self.input_hash!r})"

    def _repr_html_(self) -> str:
        sizes = (self.problem.horizon, self.problem.n_states, self.problem.n_actions)
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
        self,
        mdp: MDP,
        previous: ArrayLike,
        loss: ArrayLike,
        *,
        max_denominator: int | None = None,
        previous_mdp: MDP | None = None,
    ) -> bool:
        """Say whether this certificate is about *your* crossing, read by your own `max_denominator`."""
        from normalfan.exact.certify import read_exactly

        # Not by the certificate's: its maker could pass off 0.49 as 0.
        yours = read_exactly(mdp, previous, loss, max_denominator=max_denominator, previous_mdp=previous_mdp)
        return yours == self.problem

    @staticmethod
    def from_json(text: str) -> Certificate:
        """Read what `to_json` wrote; whether the numbers prove anything is left to `check_certificate`."""
        return cast("Certificate", read_text(Certificate, text, "certificate"))


@dataclass(frozen=True)
class CertificateCheck:
    """The verdict on a certificate; true when it is valid."""

    valid: bool  # whether every condition holds
    reason: str  # the first violated condition and its place

    def __bool__(self) -> bool:
        return self.valid


def check_certificate(cert: Certificate) -> CertificateCheck:
    """Verify a certificate from its own contents, in exact arithmetic and without the code that made it.

    The price is then right *for the problem inside it*: ask `Certificate.matches` whether that is yours.

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
    before = problem.before
    yield from _improper_distributions(problem, "")
    yield from _improper_distributions(before, "previous_")
    yield from _dead_ends(before, problem.previous_loss, "previous_loss")
    yield from _dead_ends(problem, problem.loss, "loss")
    previous_advantages = advantages_of(before, problem.previous_loss, cert.previous_values)
    yield from _not_optimal(previous_advantages, cert.previous_values, "previous_values")
    advantages = advantages_of(problem, problem.loss, cert.values)
    yield from _not_optimal(advantages, cert.values, "values")
    yield from _not_the_old_face(cert, previous_advantages)
    yield from _not_cheapest(cert, advantages)
    yield from _wrong_price(cert, advantages)


def _malformed(cert: Certificate) -> Iterator[str]:
    """Shapes and types come first: an index of -1 would wrap around and a None break a sum."""
    problem = cert.problem
    H, S, A = problem.horizon, problem.n_states, problem.n_actions
    for name, size in (("horizon", H), ("n_states", S), ("n_actions", A)):
        if type(size) is not int or size < 1:
            yield f"{name} is not a positive integer"
    limit = problem.max_denominator
    if limit is not None and (type(limit) is not int or limit < 1):
        yield "max_denominator is neither None nor a positive integer"
    if (problem.previous_initial is None) != (problem.previous_kernels is None):
        yield "previous_initial and previous_kernels are not both there or both missing"
    for when in ("", "previous_") if problem.previous_kernels is not None else ("",):
        kernels = getattr(problem, f"{when}kernels")
        if type(kernels) is not tuple or len(kernels) not in (1, H):
            yield f"{when}kernels holds neither one kernel nor one for each step"
        yield from _misfits(f"{when}initial", getattr(problem, f"{when}initial"), (S,), _is_fraction)
        rows = (len(kernels), S * A)
        yield from _misfits(f"{when}kernels", kernels, rows, lambda row: _is_row(row, S))
    for name in ("previous_loss", "loss"):
        yield from _misfits(name, getattr(problem, name), (H, S, A), _is_fraction_or_none)
    for name in ("previous_values", "values"):
        yield from _misfits(name, getattr(cert, name), (H, S), _is_fraction)
    yield from _misfits("mask", cert.mask, (H, S, A), lambda kept: type(kept) is bool)
    yield from _misfits("crossing_values", cert.crossing_values, (H, S), _is_fraction_or_none)
    yield from _misfits("policy", cert.policy, (H, S), lambda a: a is None or _is_index(a, A))
    yield from _misfits("price", cert.price, (), _is_fraction)


def _misfits(
    name: str,
    value: object,
    shape: tuple[int, ...],
    is_item: Callable[[object], bool],
    place: tuple[int, ...] = (),
) -> Iterator[str]:
    """Say where nested tuples depart from a shape or hold something that is no proper item."""
    if not shape:
        if not is_item(value):
            yield f"{name} holds a wrong entry at index {list(place)}"
    elif type(value) is not tuple or len(value) != shape[0]:
        yield f"{name} is not a tuple of {shape[0]} at index {list(place)}"
    else:
        for i, item in enumerate(value):
            yield from _misfits(name, item, shape[1:], is_item, (*place, i))


def _is_fraction(value: object) -> bool:
    """Whether a value is exact: a float that slips in would compare equal and prove nothing."""
    return type(value) is Fraction


def _is_fraction_or_none(value: object) -> bool:
    return value is None or _is_fraction(value)


def _is_row(row: object, n_states: int) -> bool:
    if type(row) is not tuple or any(type(e) is not tuple or len(e) != 2 for e in row):
        return False
    states = [state for state, _ in row]
    well_typed = all(_is_index(state, n_states) and _is_fraction(p) for state, p in row)
    return well_typed and states == sorted(set(states))


def _is_index(value: object, size: int) -> bool:
    return type(value) is int and 0 <= value < size


def _improper_distributions(problem: ExactProblem, when: str) -> Iterator[str]:
    if min(problem.initial) < 0 or sum(problem.initial) != 1:
        yield f"{when}initial is not a distribution (entries >= 0, summing to exactly 1)"
    for k, kernel in enumerate(problem.kernels):
        for index, row in enumerate(kernel):
            if any(p <= 0 for _, p in row) or sum(p for _, p in row) != 1:
                place = _at(k, *divmod(index, problem.n_actions))
                yield f"{when}kernels is not a distribution (entries > 0, summing to exactly 1){place}"


def _dead_ends(problem: ExactProblem, loss: Loss, name: str) -> Iterator[str]:
    reached = {s for s, p in enumerate(problem.initial) if p > 0}
    for h, layer in enumerate(loss):
        after: set[int] = set()
        for s in sorted(reached):
            pairs = zip(layer[s], problem.rows(h, s), strict=True)
            allowed = [row for own, (row, _) in pairs if own is not None]
            if not allowed:
                yield f"{name} allows no action where some policy can be{_at(h, s)}"
            after.update(state for row in allowed for state, _ in row)
        reached = after


def scaled(fractions: Sequence[Fraction]) -> tuple[list[int], int]:
    """Fractions as whole numbers, which add up faster, and their common denominator."""
    unit = math.lcm(*(one.denominator for one in fractions))
    return [one.numerator * (unit // one.denominator) for one in fractions], unit


def advantages_of(problem: ExactProblem, loss: Sequence[Costs], values: Values) -> Advantages:
    """The advantages A[h][s][a] = loss + expected next value - value."""
    after_the_end = (Fraction(0),) * problem.n_states
    advantages = []
    for h, after in enumerate((*values[1:], after_the_end)):
        numbers, unit = scaled(after)
        layer = []
        for s, value in enumerate(values[h]):
            here: list[Fraction | None] = [None] * problem.n_actions
            for a, (own, (weights, total)) in enumerate(zip(loss[h][s], problem.rows(h, s), strict=True)):
                if own is not None:
                    ahead = sum(weight * numbers[state] for state, weight in weights)
                    here[a] = own + Fraction(ahead, total * unit) - value
            layer.append(here)
        advantages.append(layer)
    return advantages


def _not_optimal(advantages: Advantages, values: Values, name: str) -> Iterator[str]:
    """Condition 1: advantages are at least 0, one of each state is; values are 0 where nothing is allowed."""
    for h, layer in enumerate(advantages):
        for s, here in enumerate(layer):
            allowed = [d for d in here if d is not None]
            if not allowed and values[h][s] != 0:
                yield f"{name} is not zero where nothing is allowed{_at(h, s)}"
            least = min(allowed, default=Fraction(0))
            if least < 0:
                yield f"{name} exceeds loss + expected next value{_at(h, s, here.index(least))}"
            if least > 0:
                yield f"{name} is attained by no action{_at(h, s)}"


def _not_the_old_face(cert: Certificate, previous_advantages: Advantages) -> Iterator[str]:
    """Condition 2: kept are actions of zero previous advantage that are allowed now, or all that are."""
    reached = {s for s, p in enumerate(cert.problem.initial) if p > 0}
    for h, layer in enumerate(previous_advantages):
        after: set[int] = set()
        for s, here in enumerate(layer):
            rows = cert.problem.rows(h, s)
            allowed = [own is not None for own in cert.problem.loss[h][s]]
            lost = not any(d == 0 and may for d, may in zip(here, allowed, strict=True))
            for a, kept in enumerate(cert.mask[h][s]):
                if kept and s not in reached:
                    yield f"mask keeps an action where the old face never goes{_at(h, s, a)}"
                if kept and not allowed[a]:
                    yield f"mask keeps an action that is not allowed{_at(h, s, a)}"
                if kept and here[a] != 0 and not lost:
                    yield f"mask keeps an action that was not optimal before{_at(h, s, a)}"
                if not kept and (here[a] == 0 or lost) and allowed[a] and s in reached:
                    yield f"mask drops an action that was optimal before{_at(h, s, a)}"
                if kept:
                    after.update(state for state, _ in rows[a][0])
            for name, item in (("policy", cert.policy), ("crossing_values", cert.crossing_values)):
                if item[h][s] is None and s in reached:
                    yield f"{name} is missing where the old face goes{_at(h, s)}"
                if item[h][s] is not None and s not in reached:
                    yield f"{name} is given where the old face never goes{_at(h, s)}"
        reached = after


def _not_cheapest(cert: Certificate, advantages: Advantages) -> Iterator[str]:
    """Condition 3: W <= A + P W for every kept action, with equality at the policy's own."""
    kept_only = [
        [[d if kept else None for d, kept in zip(*here, strict=True)] for here in zip(*layer, strict=True)]
        for layer in zip(advantages, cert.mask, strict=True)
    ]
    # Where the face never goes (condition 2) no kept action leads.
    crossing_values = tuple(tuple(w or Fraction(0) for w in layer) for layer in cert.crossing_values)
    for h, layer in enumerate(advantages_of(cert.problem, kept_only, crossing_values)):
        for s, here in enumerate(layer):
            for a, slack in enumerate(here):
                is_chosen = a == cert.policy[h][s]
                if slack is None and is_chosen:
                    yield f"policy leaves the old face{_at(h, s, a)}"
                if slack is not None and slack < 0:
                    yield f"crossing_values exceeds advantage + expected next value{_at(h, s, a)}"
                if slack is not None and slack > 0 and is_chosen:
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
                collected += occupied[s] * cast("Fraction", advantages[h][s][a])
                weights, total = cert.problem.rows(h, s)[a]
                for state, weight in weights:
                    after[state] = after.get(state, Fraction(0)) + occupied[s] * Fraction(weight, total)
        occupied = after
    if cert.price != collected:
        yield "price is not the sum of the advantages that the policy collects from the start"


def _at(h: int, s: int, a: int | None = None) -> str:
    return f" at (h, s) = ({h}, {s})" if a is None else f" at (h, s, a) = ({h}, {s}, {a})"
