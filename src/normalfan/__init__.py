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

Every name is imported when it is first used; `__init__.pyi` says from where.
"""

import lazy_loader

from normalfan._version import __version__ as __version__

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
