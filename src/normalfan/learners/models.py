"""Models of the coming loss: what an optimistic learner believes before it acts.

    >>> model = ExponentialAverage(rate=0.5)
    >>> model.predict() is None                            # nothing seen, nothing said
    True
    >>> for loss in (0.0, 1.0):
    ...     model.update(np.full((1, 1, 2), loss))
    >>> model.predict()
    array([[[0.5, 0.5]]])

A learner works on a copy of the model it is given, so one model may be handed to many learners.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np

from normalfan.errors import InputError
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


@runtime_checkable
class LossModel(Protocol):
    """Sees every loss, and predicts the next one."""

    def update(self, loss: FloatArray) -> None:
        """Take note of a loss [H, S, A]."""
        ...

    def predict(self) -> FloatArray | None:
        """The coming loss [H, S, A], or None as long as there is nothing to go by."""
        ...


class LastLoss:
    """m_{t+1} = ℓ_t: tomorrow is like today."""

    def __init__(self) -> None:
        self._last: FloatArray | None = None

    def update(self, loss: FloatArray) -> None:
        self._last = read_only(np.array(loss))

    def predict(self) -> FloatArray | None:
        return self._last


class ExponentialAverage:
    """m_{t+1} = (1 − rate) m_t + rate ℓ_t from m_1 = ℓ_0; at rate 1 it is the last loss."""

    def __init__(self, rate: float = 0.5) -> None:
        if not 0 < rate <= 1:
            raise InputError(
                f"rate is {rate}, but must be above 0 and at most 1: it is the weight of the newest loss."
            )
        self.rate = rate
        self._mean: FloatArray | None = None

    def update(self, loss: FloatArray) -> None:
        mean = np.array(loss) if self._mean is None else (1 - self.rate) * self._mean + self.rate * loss
        self._mean = read_only(mean)

    def predict(self) -> FloatArray | None:
        return self._mean


class FromHistory:
    """Any function of the losses so far (a list, oldest first, never empty); it keeps all of them."""

    def __init__(self, function: Callable[[list[FloatArray]], Any]) -> None:
        self.function = function
        self._history: list[FloatArray] = []

    def update(self, loss: FloatArray) -> None:
        self._history.append(read_only(np.array(loss)))

    def predict(self) -> FloatArray | None:
        return self.function(list(self._history)) if self._history else None


AnyModel: TypeAlias = LossModel | Callable[[list[FloatArray]], Any] | None
"""What a learner accepts as its model: one, a function of the history, or None for the last loss."""


def own_model(model: AnyModel) -> LossModel:
    """A model that nobody else holds."""
    if model is None:
        return LastLoss()
    if isinstance(model, LossModel):
        return deepcopy(model)
    if callable(model):
        return FromHistory(model)
    raise InputError(
        f"model is of type {type(model).__name__}, but must have update and predict or be a function of the "
        f"losses so far: pass LastLoss() or ExponentialAverage(rate)."
    )


def predicted_loss(mdp: MDP, model: LossModel) -> FloatArray | None:
    """The model's prediction, validated like any loss."""
    prediction = model.predict()
    return None if prediction is None else as_loss(mdp, prediction, name="the model's prediction")
