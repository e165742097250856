"""thm-decomp and thm-bellman, on random problems, by exact rationals, linear programs and lists."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from normalfan.exact.certificate import check_certificate
from normalfan.exact.certify import certify
from normalfan.geometry.bellman import occupancy, optimal_backup, restricted_backup
from normalfan.geometry.face import Face
from normalfan.geometry.ties import DEFAULT_TIES
from normalfan.pricing.crossing import price
from normalfan.problem.arrays import BoolArray
from normalfan_paper.bounds.splitting import split_regret
from normalfan_paper.experiments.statements import counterexamples
from normalfan_paper.experiments.statements.finding import Finding, assuming, reported, written
from normalfan_paper.experiments.statements.instances import Case, cases, random_policy, random_policy_on
from normalfan_paper.experiments.statements.oracles import listed_optimum, listed_values
from normalfan_paper.linear_program import LP_TOLERANCE, lp_price

ROUNDING = 1e-12
"""How far two computations of one sum of a few losses of order one may be apart."""


def exact_face(case: Case) -> tuple[Face, float]:
    """The old face and the price, both from a checked certificate in rationals."""
    certificate = certify(case.mdp, case.previous, case.loss)
    if not check_certificate(certificate):
        raise ArithmeticError(f"the certificate of instance {case.instance} does not check")
    mask: BoolArray = np.array(certificate.mask)
    return Face(case.mdp, mask), float(certificate.price)


def decomposition(instances: int) -> Iterator[Finding]:
    """Regret r = Γ + ε at a random point of the old face: r, ε from lists of vertices, Γ from rationals."""
    for case in cases("thm-decomp", instances):
        face, exact = exact_face(case)
        visits = occupancy(case.mdp, random_policy_on(face, case.rng))
        paid = float((visits * case.loss).sum())
        regret = paid - listed_optimum(case.mdp, case.loss)
        error = paid - float(listed_values(face, case.loss).min())
        gap = abs(regret - exact - error)
        yield written("thm-decomp", "listed residual", gap, gap <= ROUNDING, case.instance)
        advantages = optimal_backup(case.mdp, case.loss).settled(case.mdp, DEFAULT_TIES)
        ours, selection = split_regret(face, advantages, visits)
        gap = max(abs(ours - exact), abs(selection - error))
        yield written("thm-decomp", "backup residual", gap, gap <= ROUNDING, case.instance)
        yield written("thm-decomp", "least selection error", selection, selection >= 0.0, case.instance)
    off = counterexamples.off_face_gain()
    yield written("thm-decomp/off-face", "selection", off["selection"], off["selection"] < 0.0)
    yield from _off_face(instances)


def _off_face(instances: int) -> Iterator[Finding]:
    """How often a random policy, on the face or not, has a negative r − Γ."""
    negative = 0
    for case in cases("thm-decomp/off-face", instances):
        face, exact = exact_face(case)
        visits = occupancy(case.mdp, random_policy(case.mdp, case.rng))
        regret = float((visits * case.loss).sum()) - listed_optimum(case.mdp, case.loss)
        negative += not face.contains(visits) and regret - exact < -ROUNDING
    yield reported("thm-decomp/off-face", "share", negative / instances)


def bellman(instances: int) -> Iterator[Finding]:
    """Both identities of the theorem, and how many backups they take."""
    for case in cases("thm-bellman", instances):
        visits = occupancy(case.mdp, random_policy(case.mdp, case.rng))
        advantages = optimal_backup(case.mdp, case.loss).advantages
        lost = float((visits * case.loss).sum()) - listed_optimum(case.mdp, case.loss)
        gap = abs(lost - float((visits * advantages).sum()))
        yield written("thm-bellman", "performance difference", gap, gap <= ROUNDING, case.instance)
        face, exact = exact_face(case)
        gap = abs(price(face, case.loss).price - exact)
        yield written("thm-bellman", "restricted backup", gap, gap <= ROUNDING, case.instance)
        gap = abs(float(listed_values(face, advantages).min()) - exact)
        yield written("thm-bellman", "listed old policies", gap, gap <= ROUNDING, case.instance)
        gap = abs(lp_price(case.mdp, case.previous, case.loss) - exact)
        yield written("thm-bellman", "linear programs", gap, gap <= LP_TOLERANCE, case.instance)
        gap = abs(_streamed_price(case) - exact)
        yield assuming("thm-bellman/one-backup", "two backups a round", gap, gap <= ROUNDING, case.instance)
    one = counterexamples.one_backup_is_not_enough()
    determined = one["price_from_first"] == one["price_from_second"]
    yield written("thm-bellman/one-backup", "second price", one["price_from_second"], determined)
    jump = counterexamples.jump_at_a_tie()
    for name, value in (one | jump).items():
        yield reported("thm-bellman/one-backup", name, value)


def _streamed_price(case: Case) -> float:
    """The price of a stream's second round; a round takes one backup and one restricted backup."""
    mdp = case.mdp
    plan = np.ones(mdp.shape, dtype=bool)  # before the first round everything is kept
    for loss in (case.previous, case.loss):
        advantages = optimal_backup(mdp, loss).settled(mdp, DEFAULT_TIES)
        values, _ = restricted_backup(mdp, plan, advantages)
        plan = advantages == 0.0  # what the next round is restricted to: no second backup of this loss
    return float(mdp.initial @ values[0])
