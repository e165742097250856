"""Models of the coming loss: what an optimistic learner expects before it acts.

A learner works on a copy of the model it is given, so one model may be given to many learners.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.learners.options import Described
from normalfan.problem.arrays import FloatArray, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP


@runtime_checkable
class LossModel(Protocol):
    """Sees every loss, and predicts the next one.

    Examples
    --------
    >>> isinstance(LastLoss(), LossModel)
    True
    """

    def update(self, loss: FloatArray) -> None:
        """See the loss [H, S, A] of the round that was just played."""

    def predict(self) -> FloatArray | None:
        """Predict the coming loss [H, S, A]; None before the first `update`."""


class LastLoss(Described):
    """Expects the last loss again: m_{t+1} = ℓ_t.

    Examples
    --------
    >>> model = LastLoss()
    >>> model.update([[[1.0, 2.0]]])
    >>> model.predict()
    array([[[1., 2.]]])
    """

    def __init__(self) -> None:
        self._last: FloatArray | None = None

    def update(self, loss: npt.ArrayLike) -> None:
        self._last = read_only(np.array(loss, dtype=np.float64))

    def predict(self) -> FloatArray | None:
        return self._last


class ExponentialAverage(Described):
    """Expects a moving average of the losses: m_{t+1} = (1 − rate) m_t + rate ℓ_t, from m_1 = ℓ_0.

    Parameters
    ----------
    rate : float
        The weight of the newest loss, in (0, 1]; with 1 it is `LastLoss`.

    Examples
    --------
    >>> model = ExponentialAverage(rate=0.5)
    >>> model.update([[[0.0, 0.0]]])
    >>> model.update([[[1.0, 3.0]]])
    >>> model.predict()
    array([[[0.5, 1.5]]])
    """

    def __init__(self, rate: float = 0.5) -> None:
        if not 0 < rate <= 1:
            raise InputError(
                f"rate is {rate}, but must be above 0 and at most 1: it is the weight of the newest loss."
            )
        self.rate = rate
        self._mean: FloatArray | None = None

    def update(self, loss: npt.ArrayLike) -> None:
        newest = np.array(loss, dtype=np.float64)
        self._mean = read_only(
            newest if self._mean is None else (1 - self.rate) * self._mean + self.rate * newest
        )

    def predict(self) -> FloatArray | None:
        return self._mean


class FromHistory(Described):
    """Expects what a function makes of all losses so far; it stores all of them.

    Parameters
    ----------
    function : callable
        Of the list of all losses so far, oldest first and never empty; it returns a loss [H, S, A].

    Examples
    --------
    >>> model = FromHistory(lambda losses: 2 * losses[-1])
    >>> model.update([[[1.0, 2.0]]])
    >>> model.predict()
    array([[[2., 4.]]])
    """

    def __init__(self, function: Callable[[list[FloatArray]], Any]) -> None:
        self.function = function
        self._history: list[FloatArray] = []

    def update(self, loss: npt.ArrayLike) -> None:
        self._history.append(read_only(np.array(loss, dtype=np.float64)))

    def predict(self) -> FloatArray | None:
        return self.function(list(self._history)) if self._history else None


AnyModel: TypeAlias = LossModel | Callable[[list[FloatArray]], Any] | None
"""What a learner accepts as its model: one, a function as in `FromHistory`, or None for the last loss."""


def own_model(model: AnyModel) -> LossModel:
    """A model that nobody else changes."""
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
