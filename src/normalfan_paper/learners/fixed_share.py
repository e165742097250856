"""Fixed share: exponential weights that forget."""

from __future__ import annotations

from normalfan.errors import InputError
from normalfan.learners.learner import DEFAULT_ETA, StepSize, check_one_state
from normalfan.learners.mirror import MirrorDescent
from normalfan.problem.mdp import MDP


class FixedShare(MirrorDescent):
    """Hedge that forgets: after each step a share α of all weight is divided evenly among all actions.

    w_{t+1}(a) = (1 − α) v(a) + α / A, where v is Hedge's step from w_t: Hedge with the floor α / A. It
    competes with a best action that changes about α·T times. In Herbster and Warmuth (1998) an action
    shares with the *others*, α / (A − 1) each; here, as in Bousquet and Warmuth (2002) where the share goes
    to the uniform past, it gets a part back: the same rule with α (A − 1) / A in place of α.

    Parameters
    ----------
    mdp : MDP
        A problem of one step and one state.
    eta : float or callable
        The step size η, or a function that gives it for each round.
    share : float
        α, at least 0 and below 1.

    Raises
    ------
    InputError
        If the problem has more steps or states, eta is not positive and finite, or the share not in [0, 1).

    Examples
    --------
    >>> learner = FixedShare(MDP([[0, 0]], initial=0, horizon=1), eta=1.0, share=0.5)
    >>> learner.observe(0, [[[0.0, 1000.0]]])
    >>> learner.act(1)
    array([[[0.75, 0.25]]])
    """

    def __init__(self, mdp: MDP, eta: StepSize = DEFAULT_ETA, *, share: float = 0.01) -> None:
        if not 0 <= share < 1:
            raise InputError(
                f"share is {share}, but must be at least 0 and below 1 (a share of all weight): "
                f"0 switches it off."
            )
        self.share = float(share)
        super().__init__(check_one_state("FixedShare", mdp), eta, floor=self.share / mdp.n_actions)
