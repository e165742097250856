"""Certificates of crossings in which actions are not allowed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from forbidden import listed

import normalfan as nf
from normalfan.exact.certificate import Certificate


def test_certificates_prove_the_price_by_the_rule() -> None:
    lost = 0
    for seed in range(150):
        problem = listed(seed)
        mdp, losses = problem.mdp(problem.kinds[-1]), problem.losses
        for t in (1, 2):
            proof = nf.certify(mdp, losses[t - 1], losses[t])
            assert float(proof.price) == pytest.approx(problem.price(t), abs=1e-12)
            assert nf.check_certificate(proof)
            read = Certificate.from_json(proof.to_json())
            assert read == proof
            assert read.matches(mdp, losses[t - 1], losses[t])
            assert not read.matches(mdp, losses[t - 1], np.where(problem.allowed[t], losses[t], 99.0)) or (
                problem.allowed[t].all()
            )
            lost += bool((problem.face(t - 1) & ~problem.allowed[t]).any())
    assert lost > 50


def test_what_is_not_allowed_is_null_and_part_of_the_digest() -> None:
    arms = nf.MDP([[0, 0, 0]], 0, 1)
    told = nf.MDP([[0, 0, 0]], 0, 1, allowed=[[True, True, False]])
    proof = nf.certify(told, [[[0, 1, 5]]], [[[3, 2, 0]]])
    assert proof.price == 1
    assert '"loss":[[["3/1","2/1",null]]]' in proof.to_json()
    assert proof.input_hash != nf.certify(arms, [[[0, 1, 5]]], [[[3, 2, 0]]]).input_hash
    assert proof == nf.certify(arms, [[[0, 1, np.inf]]], [[[3, 2, np.inf]]])
    with pytest.raises(nf.InputError, match="must be a fraction"):
        Certificate.from_json(proof.to_json().replace('"2/1",null', '"2/1","inf"'))


def test_forged_certificates_are_seen_through() -> None:
    fork = nf.MDP([[0, 1], [1, 1]], 0, 2)
    before, now = np.zeros((2, 2, 2)), np.ones((2, 2, 2))
    before[0, 0, 1] = 5.0
    now[0, 0, 0] = np.inf  # staying is not allowed any more
    proof = nf.certify(fork, before, now)
    assert nf.check_certificate(proof)
    stays = replace(proof, mask=(((True, False), *proof.mask[0][1:]), *proof.mask[1:]))
    assert "keeps an action that is not allowed" in nf.check_certificate(stays).reason
    drops = replace(proof, mask=(((False, False), *proof.mask[0][1:]), *proof.mask[1:]))
    assert "drops an action" in nf.check_certificate(drops).reason
    nowhere = replace(
        proof.problem, loss=(((None, None), *proof.problem.loss[0][1:]), *proof.problem.loss[1:])
    )
    forged = replace(proof, problem=nowhere, input_hash=nowhere.digest())
    assert (
        nf.check_certificate(forged).reason
        == "loss allows no action where some policy can be at (h, s) = (0, 0)"
    )
