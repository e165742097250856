"""What only the paper needs beyond `normalfan.learners`: two more learners, and two selectors."""

from __future__ import annotations

from normalfan_paper.learners.fixed_share import FixedShare
from normalfan_paper.learners.oreps import OReps
from normalfan_paper.learners.sticky import StickyEntropy, StickyEuclidean

__all__ = ["FixedShare", "OReps", "StickyEntropy", "StickyEuclidean"]
