"""Problems and losses in files: what can be read, what can be written. Formats: docs/how-to/files.md."""

from normalfan.io.arrays import expected_losses, from_arrays
from normalfan.io.cell_tables import losses_to_frame, read_features, read_plan, save_plan
from normalfan.io.gym import expected_rewards, from_gymnasium, gymnasium_losses
from normalfan.io.loss_files import open_losses, save_losses
from normalfan.io.models import load_mdp, mdp_to_frame, save_mdp

__all__ = [
    "expected_losses",
    "expected_rewards",
    "from_arrays",
    "from_gymnasium",
    "gymnasium_losses",
    "load_mdp",
    "losses_to_frame",
    "mdp_to_frame",
    "open_losses",
    "read_features",
    "read_plan",
    "save_losses",
    "save_mdp",
    "save_plan",
]
