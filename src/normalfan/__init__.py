"""normalfan: the rewards moved; did it matter, and what exactly does keeping the old plan cost?

    >>> import numpy as np
    >>> import normalfan as nf
    >>> corridor = np.array([[0, 1], [0, 2], [1, 2]])            # three cells; actions: left, right
    >>> mdp = nf.MDP(corridor, initial=1, horizon=2)
    >>> losses = np.zeros((3, 2, 3, 2))
    >>> losses[0, :, :, 0] = 1.0                                  # going left is dear,
    >>> losses[1, :, :, 0] = 5.0                                  # dearer still: nothing changes,
    >>> losses[2, :, :, 1] = 1.0                                  # until going right is dear
    >>> motion = nf.price_stream(mdp, losses)
    >>> motion.prices, motion.variation("l1")
    (array([0., 0., 2.]), array([ 0., 24., 36.]))

Importing the package loads NumPy and little else: SciPy, numba and polars come in when first needed.
"""

from __future__ import annotations

from normalfan import io, learners, replan
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
from normalfan.problem.losses import ArrayLosses, FactoredLosses, IterableLosses, rewards
from normalfan.problem.mdp import MDP
from normalfan.regret.decompose import Decomposition, decompose
from normalfan.regret.run import RunLog, run

__version__ = "0.1.0"

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
    "Monitor",
    "PricedMotion",
    "PricedRound",
    "RunLog",
    "TieRule",
    "certify",
    "check_certificate",
    "cone_margin",
    "decompose",
    "detect",
    "diameter",
    "fan_slice",
    "io",
    "learners",
    "objective_range",
    "occupancy",
    "optimal_face",
    "price",
    "price_stream",
    "replan",
    "rewards",
    "run",
    "value_error",
    "whole_polytope",
]
