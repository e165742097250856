"""Models of the coming loss."""

from __future__ import annotations

import numpy as np

import normalfan as nf
from normalfan import learners


def mean_of_history(history: list[np.ndarray]) -> np.ndarray:
    return np.mean(history, axis=0)


def test_a_learner_works_on_its_own_copy_of_a_model() -> None:
    model = learners.ExponentialAverage(0.5)
    learner = learners.OptimisticHedge(nf.MDP([[0, 0]], 0, horizon=1), model=model)
    learner.observe(0, np.array([[[0.0, 1.0]]]))
    assert model.predict() is None


def test_models() -> None:
    losses = np.array([4.0, 0.0, 2.0]).reshape(3, 1, 1, 1)
    means = {
        learners.LastLoss(): 2.0,
        learners.ExponentialAverage(0.5): 2.0,
        learners.ExponentialAverage(0.25): 2.75,
    }
    means |= {learners.FromHistory(mean_of_history): 2.0, learners.FromHistory(lambda past: past[0]): 4.0}
    for model, expected in means.items():
        assert model.predict() is None
        for loss in losses:
            model.update(loss)
        prediction = model.predict()
        assert prediction is not None
        assert prediction.item() == expected
