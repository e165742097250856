"""Losses of a few coefficients a round times fixed features, which are formed where they are read."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from scipy import sparse

from normalfan.errors import InputError
from normalfan.problem import arrays
from normalfan.problem.arrays import FloatArray, IntArray, Shape, SparseMatrix
from normalfan.problem.mdp import read_names
from normalfan.problem.transitions import check_sparse


class FactoredLosses:
    """Losses ℓ_t = Σ_k θ_t[k] · Φ_k: a few coefficients a round (prices) times fixed features (quantities).

    Parameters
    ----------
    coefficients : array_like [T, K]
        Where a coefficient is inf, the actions for which its feature is positive are not allowed.
    features : array_like [K, H, S, A], or scipy sparse [K, H·S·A]
    round_names, feature_names : sequence of str, optional
        What rounds and features are called in frames, reports and files.

    Raises
    ------
    InputError
        If shapes do not fit, a number is not finite, or names and what they name differ in number.

    Examples
    --------
    >>> import normalfan as nf
    >>> losses = nf.FactoredLosses([[3.0, 5.0], [6.0, 5.0]], [[[[1, 0]]], [[[0, 1]]]])    # buy, or do not
    >>> losses, nf.price_stream(nf.MDP([[0, 0]], initial=0, horizon=1), losses).prices
    (FactoredLosses(T=2, K=2), array([0., 1.]))
    """

    def __init__(
        self,
        coefficients: npt.ArrayLike,
        features: npt.ArrayLike | SparseMatrix,
        *,
        round_names: Sequence[str] | None = None,
        feature_names: Sequence[str] | None = None,
    ) -> None:
        self.coefficients: FloatArray = arrays.read_numbers("coefficients", coefficients).astype(np.float64)
        if self.coefficients.ndim != 2:
            raise InputError(
                f"coefficients have shape {list(self.coefficients.shape)}, but must be [T, K]: "
                f"one row per round, one column per feature."
            )
        arrays.check_finite("coefficients", np.where(np.isinf(self.coefficients), 0.0, self.coefficients))
        self.features = _read_features(features)
        if self.features.shape[0] != self.coefficients.shape[1]:
            raise InputError(
                f"features hold {self.features.shape[0]} rows, but coefficients have "
                f"{self.coefficients.shape[1]} columns: both must count the same K features."
            )
        self.round_names = read_names("round_names", round_names, self.n_rounds)
        self.feature_names = read_names("feature_names", feature_names, self.features.shape[0])

    def __repr__(self) -> str:
        return f"FactoredLosses(T={self.n_rounds}, K={self.features.shape[0]})"

    is_view = False

    @property
    def n_rounds(self) -> int:
        return len(self.coefficients)

    def blocks(self, shape: Shape, rounds: int) -> Iterator[FloatArray]:
        return (block[:] for block in self.unformed_blocks(shape, rounds))

    def unformed_blocks(self, shape: Shape, rounds: int, sign: float = 1.0) -> Iterator[FactoredBlock]:
        """The same, or its negative, formed where it is read."""
        if self.features.shape[1] != np.prod(shape):
            raise InputError(
                f"features have {self.features.shape[1]} entries each, but the problem's losses have "
                f"H·S·A = {np.prod(shape)} ({list(shape)}): flatten each feature as [H, S, A]."
            )
        for start in range(0, self.n_rounds, rounds):
            yield FactoredBlock(
                self.by_entry, self.coefficients[max(start - 1, 0) : start + rounds], shape, sign
            )

    @cached_property
    def by_entry(self) -> SparseMatrix:
        """The features [H·S·A, K], entry by entry."""
        return self.features.T.tocsr()


@dataclass(frozen=True, eq=False)
class FactoredBlock:
    """Rounds of factored losses that are formed when they are asked for, as if of an array; or by a sweep."""

    by_entry: SparseMatrix  # [H·S·A, K]
    coefficients: FloatArray  # [B, K]
    shape: Shape  # H, S, A
    sign: float = 1.0  # -1 if they are rewards

    def __len__(self) -> int:
        return len(self.coefficients)

    def __getitem__(self, rounds: int | slice | Sequence[int] | IntArray) -> FloatArray:
        chosen = self.coefficients[rounds]
        # Summed feature by feature for each entry: the same bits whatever the rounds.
        summed = (self.by_entry @ np.atleast_2d(chosen).T).T
        losses: FloatArray = summed.reshape(*chosen.shape[:-1], *self.shape)
        return losses if self.sign > 0 else -losses


def _read_features(features: npt.ArrayLike | SparseMatrix) -> SparseMatrix:
    if sparse.issparse(features):
        check_sparse("features", features)
        matrix = sparse.csr_array(features, dtype=np.float64)
    else:
        numbers = arrays.read_numbers("features", features)
        if numbers.ndim != 4:
            raise InputError(
                f"features have shape {list(numbers.shape)}, but must be [K, H, S, A] or scipy sparse "
                f"[K, H·S·A]: one feature per row."
            )
        matrix = sparse.csr_array(numbers.reshape(len(numbers), -1).astype(np.float64))
    arrays.check_finite("features.data", matrix.data)
    return matrix
