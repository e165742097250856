"""Problems and losses in files: what can be read, what can be written.

    >>> import numpy as np, tempfile
    >>> from pathlib import Path
    >>> folder = Path(tempfile.mkdtemp())
    >>> _ = (folder / "shop.csv").write_text('''state,action,next_state,probability
    ... open,sell,open,0.9
    ... open,sell,closed,0.1
    ... open,wait,open,1
    ... ''')
    >>> shop = load_mdp(folder / "shop.csv", horizon=2, start="open")
    >>> shop, shop.labels.states                    # "closed" has no rows: it is an end
    (MDP(horizon=2, states=2, actions=2, Dense), ('open', 'closed'))
    >>> _ = (folder / "losses.csv").write_text('''round,state,action,loss
    ... monday,open,sell,-3
    ... tuesday,open,sell,1
    ... ''')
    >>> losses = open_losses(folder / "losses.csv", shop, default=0)
    >>> losses.axes, losses.round_names
    ('TSA', ('monday', 'tuesday'))

Formats: docs/files.md.
"""

from normalfan.io.factored import read_features
from normalfan.io.gym import expected_rewards, from_gymnasium
from normalfan.io.loss_files import open_losses, save_losses
from normalfan.io.models import load_mdp, save_mdp

__all__ = [
    "expected_rewards",
    "from_gymnasium",
    "load_mdp",
    "open_losses",
    "read_features",
    "save_losses",
    "save_mdp",
]
