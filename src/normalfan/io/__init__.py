"""Problems and losses in files: what can be read, what can be written. Formats: docs/how-to/files.md."""

from normalfan.io.gym import expected_rewards, from_gymnasium
from normalfan.io.loss_files import open_losses, save_losses
from normalfan.io.loss_tables import read_features
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
