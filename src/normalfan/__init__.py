"""normalfan: the rewards moved; did it matter, and what exactly does keeping the old plan cost?

    >>> import numpy as np
    >>> import normalfan as nf
    >>> corridor = np.array([[0, 1], [0, 2], [1, 2]])            # three cells; actions: left, right
    >>> mdp = nf.MDP(corridor, initial=1, horizon=2)
    >>> losses = np.zeros((3, 2, 3, 2))
    >>> losses[0, :, :, 0] = 1.0                                  # going left is costly,
    >>> losses[1, :, :, 0] = 5.0                                  # costlier still: nothing changes,
    >>> losses[2, :, :, 1] = 1.0                                  # until going right is costly
    >>> motion = nf.price_stream(mdp, losses)
    >>> motion.prices, motion.variation("l1")
    (array([0., 0., 2.]), array([ 0., 24., 36.]))

Importing the package loads NumPy and little else: SciPy, numba and polars come in when first needed, and so
do the folders `io`, `jobs`, `learners`, `replan` and `report`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from normalfan._version import __version__ as __version__
from normalfan.errors import InputError
from normalfan.exact.certificate import Certificate, check_certificate
from normalfan.exact.certify import certify
from normalfan.geometry.bellman import occupancy
from normalfan.geometry.cone import (
    ConeMargin,
    Detection,
    cone_margin,
    detect,
    objective_range,
    value_error,
)
from normalfan.geometry.diameter import Diameter, diameter
from normalfan.geometry.face import Face, optimal_face, whole_polytope
from normalfan.geometry.fan_slice import FanSlice, fan_slice
from normalfan.geometry.ties import TieRule
from normalfan.pricing.crossing import Crossing, price
from normalfan.pricing.monitor import Monitor, PricedRound
from normalfan.pricing.motion import PricedMotion
from normalfan.pricing.stream import price_stream
from normalfan.pricing.summary import Summary, summarise
from normalfan.problem.labels import Labels
from normalfan.problem.losses import ArrayLosses, FactoredLosses, IterableLosses, LossStream, rewards
from normalfan.problem.mdp import MDP
from normalfan.regret.decompose import Decomposition, decompose
from normalfan.regret.run import RunLog, run

if TYPE_CHECKING:
    from normalfan import io, jobs, learners, replan, report

__all__ = [
    "MDP",
    "ArrayLosses",
    "Certificate",
    "ConeMargin",
    "Crossing",
    "Decomposition",
    "Detection",
    "Diameter",
    "Face",
    "FactoredLosses",
    "FanSlice",
    "InputError",
    "IterableLosses",
    "Labels",
    "LossStream",
    "Monitor",
    "PricedMotion",
    "PricedRound",
    "RunLog",
    "Summary",
    "TieRule",
    "certify",
    "check_certificate",
    "cone_margin",
    "decompose",
    "detect",
    "diameter",
    "fan_slice",
    "io",
    "jobs",
    "learners",
    "objective_range",
    "occupancy",
    "optimal_face",
    "price",
    "price_stream",
    "replan",
    "report",
    "rewards",
    "run",
    "summarise",
    "value_error",
    "whole_polytope",
]


def __getattr__(name: str) -> Any:
    """The folders of `__all__`, each imported when first asked for."""
    if name in __all__:
        return import_module(f"normalfan.{name}")
    raise AttributeError(f"module 'normalfan' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]
