"""What the paper says in passing: faces that meet, distances, cones, sharpness, the classical estimate."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from normalfan.exact.certify import certify
from normalfan.geometry.bellman import occupancy
from normalfan.geometry.face import Face, optimal_face, whole_polytope
from normalfan.pricing.motion import NORMS
from normalfan.problem.arrays import FloatArray
from normalfan_paper.bounds.selection_bounds import DUAL_PAIRS
from normalfan_paper.bounds.splitting import loss_distances
from normalfan_paper.experiments.statements.decomposition import ROUNDING
from normalfan_paper.experiments.statements.detection import listed_margin
from normalfan_paper.experiments.statements.finding import Finding, assuming, reported, written
from normalfan_paper.experiments.statements.instances import Case, cases, random_policy
from normalfan_paper.experiments.statements.oracles import listed_optimum
from normalfan_paper.learners.sticky import nearest_point

ADVERSARIES = 20  # random losses of dual norm 1, beside the worst one
SHARP = 1e-9  # what a distance found by iteration may be off by


def geometry(instances: int) -> Iterator[Finding]:
    """All of it, on one list of cases each."""
    yield from _meeting(instances)
    yield from _distance(instances)
    yield from _relative_interior(instances)
    yield from _sharpness(instances)
    yield from _estimate(instances)


def _meeting(instances: int) -> Iterator[Finding]:
    """Γ > 0 exactly when no point of the old face is on the new one."""
    priced = 0
    for case in cases("fig-degenerate", instances):
        old, new = (optimal_face(case.mdp, loss) for loss in (case.previous, case.loss))
        price = certify(case.mdp, case.previous, case.loss).price
        priced += price > 0
        agree = (price == 0) == old.meets(new)
        yield written("fig-degenerate", "price", float(price), agree, case.instance)
    yield reported("fig-degenerate", "priced", priced)


def _distance(instances: int) -> Iterator[Finding]:
    """‖q − q'‖ is the largest |J_ℓ(π) − J_ℓ(π')| over ℓ of dual norm 1: attained, and never exceeded."""
    for case in cases("geometry/distance", instances):
        one, other = (occupancy(case.mdp, random_policy(case.mdp, case.rng)) for _ in range(2))
        apart = one - other
        for norm, dual in DUAL_PAIRS:
            size = _norm(apart, norm)
            worst = _dual_maximiser(apart, norm)
            drawn = case.rng.normal(size=(ADVERSARIES, *apart.shape))
            losses = [worst, *(loss / _norm(loss, dual) for loss in drawn)]
            gaps = [abs(float((one * loss).sum()) - float((other * loss).sum())) for loss in losses]
            attained = abs(gaps[0] - size) <= ROUNDING and max(gaps) <= size + ROUNDING
            yield written("geometry/distance", norm, abs(gaps[0] - size), attained, case.instance)


def _norm(vector: FloatArray, norm: str) -> float:
    return float(loss_distances(vector, np.zeros_like(vector))[NORMS.index(norm)])


def _dual_maximiser(apart: FloatArray, norm: str) -> FloatArray:
    """The loss of dual norm at most 1 with the largest ⟨apart, ℓ⟩."""
    if norm == "l1":
        return np.sign(apart)
    if norm == "l2":
        return np.asarray(apart / max(_norm(apart, "l2"), np.finfo(float).tiny))
    one_hot = np.zeros(apart.shape)
    place = np.unravel_index(int(np.abs(apart).argmax()), apart.shape)
    one_hot[place] = np.sign(apart[place])
    return one_hot


def _relative_interior(instances: int) -> Iterator[Finding]:
    """A loss in the relative interior of N(F) selects F; on the cone's boundary it selects more."""
    for case in cases("geometry/interior", instances):
        face = optimal_face(case.mdp, case.previous)
        inside = _loss_in_cone(face, case.rng)
        found = optimal_face(case.mdp, inside)
        yield written("geometry/interior", "faces differ", float(found != face), found == face, case.instance)


def _loss_in_cone(face: Face, rng: np.random.Generator) -> FloatArray:
    """Whole numbers: any potential, plus an advantage of 1 to 3 off the face. Kept actions tie exactly."""
    mdp = face.mdp
    values = np.zeros((mdp.horizon + 1, mdp.n_states))
    values[:-1] = rng.integers(-2, 3, size=(mdp.horizon, mdp.n_states))
    off = face.reached[:, :, None] & ~face.mask
    loss = np.where(off, rng.integers(1, 4, size=mdp.shape), 0).astype(float)
    for h in range(mdp.horizon):
        loss[h] += values[h][:, None] - mdp.transitions.expect(h, values[h + 1])
    return loss


def _sharpness(instances: int) -> Iterator[Finding]:
    """J(π) − J* ≥ c · dist(q, F): with c = Δ as written, with c = Δ / diam Q as it must be."""
    for case in cases("prop-conedetect/sharp", instances):
        margin = listed_margin(case)
        if not np.isfinite(margin):
            continue  # every policy is optimal: there is nothing to be sharp about
        visits = occupancy(case.mdp, random_policy(case.mdp, case.rng))
        lost = float((visits * case.loss).sum()) - listed_optimum(case.mdp, case.loss)
        nearest = nearest_point(optimal_face(case.mdp, case.loss), visits)
        distance = float(np.linalg.norm(visits - nearest))
        if distance <= SHARP:
            continue
        sharp = lost / (margin * distance)
        yield written("prop-conedetect/sharp", "sharpness over Δ", sharp, sharp >= 1 - SHARP, case.instance)
        size = _diameter(case)
        yield assuming(
            "prop-conedetect/sharp",
            "sharpness over Δ/diam",
            sharp * size,
            sharp * size >= 1 - SHARP,
            case.instance,
        )


def _diameter(case: Case) -> float:
    """Of the polytope in L2, by its list of vertices."""
    corners = np.array([vertex.ravel() for vertex in whole_polytope(case.mdp).vertices(10**6)])
    squares = (corners * corners).sum(axis=1)
    between = squares[:, None] + squares - 2.0 * corners @ corners.T
    return float(np.sqrt(max(between.max(), 0.0)))


def _estimate(instances: int) -> Iterator[Finding]:
    """Between vertices, Γ ≤ ‖v_{t−1} − v_t‖ · ‖ℓ_t − ℓ_{t−1}‖_*, in three pairs of dual norms."""
    for case in cases("classical-estimate", 2 * instances):
        old, new = (optimal_face(case.mdp, loss) for loss in (case.previous, case.loss))
        if not (old.is_vertex and new.is_vertex):
            continue
        before, after = (
            occupancy(case.mdp, face.minimise(np.zeros(case.mdp.shape))[1]) for face in (old, new)
        )
        price = float(certify(case.mdp, case.previous, case.loss).price)
        for norm, dual in DUAL_PAIRS:
            right = _norm(before - after, norm) * _norm(case.loss - case.previous, dual)
            yield written("classical-estimate", norm, right - price, price <= right + ROUNDING, case.instance)
