"""The statements, in our words, with the sentences their verdicts are explained by.

`measured` is a template: its names are the numbers that the run reported, and beside them

    tried, held, failed     trials of the claim as written, and how they went
    tried_assuming, …       the same under the assumption
    worst_*                 the largest value of a quantity over all trials, spaces as underscores
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Claim:
    """A statement of the paper, and how to speak of what came out."""

    id: str
    says: str
    measured: str
    assumption: str = ""  # what it needs, where it holds under an assumption only
    failure: str = ""  # what goes wrong, where it fails


CLAIMS = (
    Claim(
        "thm-decomp",
        "On the previous face, regret is price plus selection error.",
        "largest residual {worst_listed_residual:.1e} against lists of vertices and exact rationals, "
        "{worst_backup_residual:.1e} by backups, in {instances:g} instances",
    ),
    Claim(
        "thm-decomp/off-face",
        "Off the previous face the selection error can be negative.",
        "ε = {worst_selection:g} in a two-armed instance; negative for {share:.0%} of random policies",
    ),
    Claim(
        "thm-bellman",
        "Suboptimality is the expected sum of optimal advantages, and the price is its minimum over the "
        "policies that were optimal a round earlier.",
        "largest error {worst_performance_difference:.1e} and {worst_restricted_backup:.1e} against exact "
        "rationals, {worst_linear_programs:.1e} against linear programs, in {instances:g} instances",
    ),
    Claim(
        "thm-bellman/one-backup",
        "A single value backup gives the price.",
        "the same new loss costs {price_from_first:g} or {price_from_second:g}, by what was optimal before; "
        "a step of {step:.0e} off a tie moves the price from {price_at_tie:g} to {price_beside_tie:g}",
        assumption="three backups: the previous loss's, the new loss's, and one restricted to the old face, "
        "with a decision of what counts as a tie",
        failure="the price is no function of the new loss's advantages",
    ),
    Claim(
        "prop-largevar",
        "Loss variation can be arbitrarily large at zero price.",
        "variation up to {worst_variation:.1e} at a price of {price:g} at most",
    ),
    Claim(
        "prop-largevar/estimate",
        "The same sequences open an unbounded gap to the estimate that weights variation by the "
        "comparator's motion.",
        "variation {variation:.0e}, weighted estimate {weighted_estimate:g}, price {price:g}; diameter times "
        "variation is {diameter_times_variation:.0e}",
        failure="inside a cone the comparator stands still, so the weighted estimate is 0 like the price; "
        "the gap is to diameter times variation",
    ),
    Claim(
        "thm-varsep",
        "For every H ≥ 2 two problems with the same one-entry loss change have prices that differ by the "
        "factor H − 1, both old faces being vertices.",
        "exactly H − 1 at {held:g} of {tried:g} horizons, certified, on a chain on whose last "
        "layer one entry moves by γ(H−1) + κ",
    ),
    Claim(
        "thm-varsep/construction",
        "The paper's pair has the prices γ and γ(H−1) − κ for every H ≥ 2.",
        "certified at {held_assuming:g} of {tried_assuming:g} horizons H ≥ 3 (ratio {ratio_10:g} at H = 10, "
        "that is H − 1 − κ/γ); at H = 2 the late price is {late_at_2:g}, on a face "
        "of dimension {dimension_at_2:g}; with a "
        "free action at the toll node the early price at H = 6 is {free_toll_action:g} or {undercut:g}",
        assumption="H ≥ 3, an action 0 at the toll node that pays γ and joins the expensive line, and a "
        "costlier second action on both lines",
        failure="at H = 2 the late instance starts on a wall of the fan",
    ),
    Claim(
        "rem-twomdps",
        "Within one fixed problem a one-entry change cannot open a gap of order H.",
        "one state and two actions reach the ratio {one_12:g} at H = 12, two problems {two_12:g}",
        failure="(0, κ) → (0, κ−R) against (0, R−γ) → (0, −γ) in a single bandit has the theorem's own ratio",
    ),
    Claim(
        "rem-twomdps/two",
        "In one problem the price-to-trigger ratio stays near two.",
        "price over change at most {worst_price_over_change:g}; change over price with the lead restored "
        "{restored_least_8:g} to {restored_most_8:g}; late over early price {late_over_early_8:g} at H = 8",
        failure="price over change never exceeds one",
    ),
    Claim(
        "cor-causal",
        "A crossing forced at layer h with margin γ costs (H−h+1)γ.",
        "exact on the tree in {held_assuming:g} of {tried_assuming:g} crossings (largest rounding in floats "
        "{rounding:.1e}); on separable chains {failed:g} of {tried:g} flipped bits cost something else",
        assumption="that the old path errs by γ on every layer from h to H",
        failure="a flip on a separable chain costs γ at any layer",
    ),
    Claim(
        "prop-predsel",
        "A predictive selector errs by at most the face's diameter times the prediction's error.",
        "violated in {failed:g} of {tried:g} bounds, in three pairs of dual norms",
    ),
    Claim(
        "prop-bregsel",
        "A Bregman selector errs by at most the same plus λR.",
        "violated in {failed:g} of {tried:g} bounds, entropic and Euclidean",
    ),
    Claim(
        "prop-bregsel/finite",
        "The term λR is finite, hence controllable, with an entropy and the previous representative as z.",
        "R is {entropy_spread:g} at a vertex, {mixed_entropy_spread:.3g} with one hundredth mixed in, "
        "{euclidean_spread:g} by the Euclidean divergence; infinite in {failed:g} of {tried:g} "
        "random instances",
        assumption="that z takes every action of the face with positive probability",
        failure="an entropy's divergence from a vertex is infinite",
    ),
    Claim(
        "prop-conedetect",
        "A model's optimum loses at most 2ε, and nothing where 2ε is below the cone margin.",
        "violated in {failed:g} of {tried:g} trials; margins within "
        "{worst_margin_against_the_list:.1e} of the list",
    ),
    Claim(
        "prop-conedetect/thin",
        "The margin test tells the rounds that are free from those that are not.",
        "all wrong actions cost {advantage_gap:g}, the model errs by {error:.2g}, and the margin is "
        "{margin:.0e} where a state has that probability: the test is silent about {failed:g} of {tried:g} "
        "such rounds, on which the model's plan loses {lost:g}",
        assumption="that no state of the face is rare (a floor on occupancy makes the test speak, for less)",
        failure="a rare state makes the margin tiny whatever its advantages",
    ),
    Claim(
        "prop-gate",
        "The tracker's regret is at most r₁ + ΣΓ + B per unresolved round + selection terms.",
        "violated in {failed_assuming:g} of {tried_assuming:g} runs with the largest B; with the last "
        "round's, regret {regret:g} stands against a bound of {bound_with_last_range:g}",
        assumption="that B is the largest range of the objective over all rounds",
        failure="with one round's B the bound fails",
    ),
    Claim(
        "prop-gate/same-face",
        "On a resolved round the model and the loss select the same face.",
        "the model's face lies inside the loss's in {included:.0%} of resolved rounds, but differs in "
        "{failed:g} of {tried:g}",
        assumption="that the loss's optimal face is a vertex; in general the model's lies inside it",
        failure="a small error breaks a tie of the loss",
    ),
    Claim(
        "prop-gate/free-round",
        "If moreover the faces meet, the selection error is zero.",
        "zero in {held_assuming:g} of {tried_assuming:g} such rounds without a divergence; {selection:.3g} "
        "with λ = ½ and a perfect prediction",
        assumption="λ = 0",
        failure="a sticky selector stays behind",
    ),
    Claim(
        "prop-gate/speed",
        "Where ηg ≲ 1 the penalty speeds suppression up by Ω(1 + λ(H−h+1)/β).",
        "fails in {failed:g} of {tried:g} settings with ηg ≤ 1, in {failed_assuming:g} of {tried_assuming:g} "
        "with η(g+λ) ≤ 1; at ηg = {plain_step:.2g} the claim is {claimed:.2g} and the truth {measured:.3g}",
        assumption="η(g+λ) ≤ 1",
        failure="no penalty exceeds the factor 1/(1 − e^{{−ηg}})",
    ),
    Claim(
        "prop-lower",
        "Against a fair coin every learner's expected regret is at least γT/2.",
        "equal to γT/2 in expectation, to {worst_relative_gap:.0e}; in the runs of three learners the ratio "
        "is {ratio_0:.3f} ± {error_0:.3f}, {ratio_1:.3f} ± {error_1:.3f} and {ratio_2:.3f} ± {error_2:.3f}",
    ),
    Claim(
        "prop-lower/margin",
        "What makes it hard is a margin that goes to zero.",
        "margins from {smallest_margin:g} to {largest_margin:g} over all rounds, where γ is {gamma:g}",
        failure="the margin is γ throughout; it is the prediction's error that is large",
    ),
    Claim(
        "prop-degsel",
        "Equal prices can go with different regret of a fixed selector.",
        "prices {price_0:g} and {price_1:g}, regrets {regret_0:g} and {regret_1:g}",
    ),
    Claim(
        "prop-degsel/best-point",
        "The two new faces share their best point on the old face.",
        "the best values differ by {value_gap:g}, the best points by {distance:g} in L1",
        failure="opposite suffixes are different points; what the faces share is the best value",
    ),
    Claim(
        "disc-path",
        "The price can stay zero while the comparator's path grows without bound.",
        "path length {path_length:g} at price {price:g} over ties; between vertices {held:g} of {tried:g} "
        "free moves have any length",
        assumption="degenerate faces",
        failure="two vertices that meet are equal",
    ),
)
