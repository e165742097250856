"""A plane through the space of losses, each point labelled by the face it exposes: a slice of the fan."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from normalfan.errors import InputError
from normalfan.geometry.face import Face, optimal_face
from normalfan.geometry.ties import DEFAULT_TIES, TieRule
from normalfan.problem.arrays import FloatArray, IntArray, check_finite, read_numbers, read_only
from normalfan.problem.losses import as_loss
from normalfan.problem.mdp import MDP
from normalfan.text import counted


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class FanSlice:
    """A plane through the space of losses, labelled by faces; `fan_slice` makes it.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0]], initial=0, horizon=1)
    >>> plane = nf.fan_slice(arms, [[[0, 0]]], [[[1, 0]]], [[[0, 1]]], xs=[0, 1], ys=[0, 1])
    >>> [face.dimension for face in plane.faces]                    # a tie, then each action alone
    [1, 0, 0]
    """

    xs: FloatArray  # [nx], the coordinates of the grid
    ys: FloatArray  # [ny]
    labels: IntArray  # [ny, nx]: the face of each grid point, numbered in the order of appearance
    faces: tuple[Face, ...]  # faces[label] belongs to label

    def __repr__(self) -> str:
        return f"FanSlice({counted(len(self.faces), 'face')} on a grid of {len(self.xs)} × {len(self.ys)})"

    def plot(self) -> Any:
        """Draw the plane, one colour for each face (they repeat after twenty); needs `normalfan[plot]`."""
        from normalfan.plots import new_figure

        title = f"Slice of the normal fan: {counted(len(self.faces), 'face')}"
        figure, axes = new_figure(title, x="x", y="y", size=(5.2, 4.6))
        axes.pcolormesh(
            self.xs, self.ys, self.labels % 20, cmap="tab20", vmin=-0.5, vmax=19.5, shading="nearest"
        )
        return figure


def fan_slice(
    mdp: MDP,
    origin: npt.ArrayLike,
    along_x: npt.ArrayLike,
    along_y: npt.ArrayLike,
    xs: npt.ArrayLike,
    ys: npt.ArrayLike,
    *,
    ties: TieRule = DEFAULT_TIES,
) -> FanSlice:
    """Label the losses origin + x·along_x + y·along_y by their faces: same label ⇔ same optimal plans.

    Parameters
    ----------
    mdp : MDP
    origin, along_x, along_y : array_like [H, S, A]
        The loss at (0, 0), and what x and y add to it.
    xs, ys : array_like [nx], [ny]
        The coordinates of the grid.
    ties : TieRule, optional
        When two actions count as equally good.

    Returns
    -------
    FanSlice

    Raises
    ------
    InputError
        If a loss has another shape, coordinates are not a list, or a number is not finite.

    Examples
    --------
    >>> import normalfan as nf
    >>> arms = nf.MDP([[0, 0, 0]], initial=0, horizon=1)
    >>> plane = nf.fan_slice(arms, [[[0, 0, 0]]], [[[1, 0, 0]]], [[[0, 1, 0]]], xs=[-1, 0, 1], ys=[0, 1])
    >>> plane, plane.labels.tolist()
    (FanSlice(5 faces on a grid of 3 × 2), [[0, 1, 2], [0, 3, 4]])
    """
    base = as_loss(mdp, origin, "origin")
    right, up = as_loss(mdp, along_x, "along_x"), as_loss(mdp, along_y, "along_y")
    columns, lines = _read_coordinates("xs", xs), _read_coordinates("ys", ys)
    seen: dict[Face, int] = {}
    labels = np.empty((len(lines), len(columns)), dtype=np.int64)
    for row, y in enumerate(lines):
        for column, x in enumerate(columns):
            face = optimal_face(mdp, base + x * right + y * up, ties=ties)
            labels[row, column] = seen.setdefault(face, len(seen))
    return FanSlice(columns, lines, read_only(labels), tuple(seen))


def _read_coordinates(name: str, coordinates: npt.ArrayLike) -> FloatArray:
    numbers = read_numbers(name, coordinates)
    if numbers.ndim != 1:
        raise InputError(
            f"{name} has shape {list(numbers.shape)}, but must be a list of coordinates: "
            f"flatten it, or use np.linspace."
        )
    check_finite(name, numbers)
    return read_only(np.array(numbers, dtype=np.float64))
