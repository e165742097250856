from . import io, jobs, learners, replan, report
from .errors import InputError
from .exact.certificate import Certificate, check_certificate
from .exact.certify import certify
from .geometry.bellman import occupancy
from .geometry.change import value_error, value_error_bound
from .geometry.cone import cone_margin, detect
from .geometry.face import Face, optimal_face, whole_polytope
from .geometry.ties import TieRule
from .pricing.crossing import Crossing, price
from .pricing.monitor import Monitor, PricedRound
from .pricing.motion import PricedMotion
from .pricing.stream import price_stream
from .pricing.summary import Summary, summarise
from .problem.factored import FactoredLosses
from .problem.losses import ArrayLosses, IterableLosses, LossStream, rewards
from .problem.mdp import MDP, Labels
from .ranges.line import Breakpoints, breakpoints
from .ranges.plane import Regions, region, regions
from .ranges.radius import Radius, radius
from .ranges.ranging import Ranging, ranging
from .regret import Decomposition, RunLog, decompose, run

__version__: str

__all__ = [
    "MDP",
    "ArrayLosses",
    "Breakpoints",
    "Certificate",
    "Crossing",
    "Decomposition",
    "Face",
    "FactoredLosses",
    "InputError",
    "IterableLosses",
    "Labels",
    "LossStream",
    "Monitor",
    "PricedMotion",
    "PricedRound",
    "Radius",
    "Ranging",
    "Regions",
    "RunLog",
    "Summary",
    "TieRule",
    "breakpoints",
    "certify",
    "check_certificate",
    "cone_margin",
    "decompose",
    "detect",
    "io",
    "jobs",
    "learners",
    "occupancy",
    "optimal_face",
    "price",
    "price_stream",
    "radius",
    "ranging",
    "region",
    "regions",
    "replan",
    "report",
    "rewards",
    "run",
    "summarise",
    "value_error",
    "value_error_bound",
    "whole_polytope",
]
