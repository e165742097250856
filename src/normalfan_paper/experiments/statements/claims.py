"""The statements, in our words, with the sentences their verdicts are explained by.

`measured` is a template: its names are the numbers that the run reported, and beside them

    tried, held, failed     trials of the claim as written, and how they went
    tried_assuming, …       the same under the assumption
    worst_*, least_*        the extreme values of a quantity over all trials, spaces as underscores
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
    beyond: bool = False  # a question of ours, not a claim of the paper


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
        assumption="two backups a round in a stream: the new loss's, whose ties are the face of the round "
        "after, "
        "and one restricted to the face held; with a decision of what counts as a tie",
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
        "inside a cone, variation {variation:.0e}, weighted estimate {weighted_estimate:g}, price {price:g} "
        "(diameter times variation is {diameter_times_variation:.0e}); along (0, 1) → (M+1, M), price "
        "{crossing_price:g} and an estimate up to {worst_estimate:.0e}",
        assumption="another sequence than the proof's, one that crosses by 1 while all losses rise by M "
        "(inside a "
        "cone the comparator stands still, and the weighted estimate is 0 like the price)",
        failure="inside a cone the comparator stands still, so the weighted estimate is 0 like the price",
    ),
    Claim(
        "classical-estimate",
        "Between vertices a round's regret is at most ‖v_{{t−1}} − v_t‖ · ‖ℓ_t − ℓ_{{t−1}}‖_*.",
        "violated in {failed:g} of {tried:g} bounds, in three pairs of dual norms",
    ),
    Claim(
        "fig-degenerate",
        "A crossing is priced exactly when the old and the new face do not meet.",
        "price and meeting agree in {held:g} of {tried:g} crossings, {priced:g} of them priced",
    ),
    Claim(
        "geometry/distance",
        "The distance of two occupancies is the largest value gap that a loss of dual norm 1 can open.",
        "attained to {worst_l1:.0e} and never exceeded in {held:g} of {tried:g} pairs, in three norms",
    ),
    Claim(
        "geometry/interior",
        "A loss in the relative interior of N(F) selects exactly F.",
        "the same face in {held:g} of {tried:g} instances, on faces of every dimension",
    ),
    Claim(
        "thm-varsep",
        "For every H ≥ 2 two problems with the same one-entry loss change have prices that differ by the "
        "factor H − 1, both old faces being vertices.",
        "exactly H − 1 at {held:g} of {tried:g} horizons, certified, by a pair of our own: on a chain one "
        "entry of "
        "the last layer moves by γ(H−1) + κ in both sequences, so that the layer is not what differs (the "
        "paper's pair, in the next row, moves an early and a late one)",
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
        "thm-varsep/bounded",
        "The pair exists for every γ and H, also where losses lie in [0, 1].",
        "with losses within [0, 1] and γ = ¼ at {held:g} of {tried:g} horizons; with γ(H−1) + κ ≤ 1 at "
        "{held_assuming:g} of {tried_assuming:g}, where the prices at H = 12 are {early_12:g} and "
        "{late_12:g}",
        assumption="γ(H−1) + κ ≤ 1: one entry moves by γ(H−1), so the larger price stays "
        "below 1 and the smaller one shrinks",
        failure="an entry that moves by more than 1 has no room in [0, 1]",
    ),
    Claim(
        "thm-varsep/path-length",
        "The comparator's path length does register the layer of the crossing.",
        "2 for the late and 2H for the early instance at {held:g} of {tried:g} horizons",
    ),
    Claim(
        "rem-twomdps",
        "Within one fixed problem a one-entry change cannot open a gap of order H.",
        "one entry of the paper's own tree that falls by (H+1)γ, from one base loss, costs Hγ if its path "
        "leaves "
        "at the last layer and γ if at the first: ratio {tree_8:g} at H = 8; one state and two actions reach "
        "{one_12:g} at H = 12, two problems {two_12:g}",
        failure="on one tree and from one loss, the entry's path decides: late over early is H",
    ),
    Claim(
        "rem-twomdps/small-constant",
        "A change of one entry has a price of at most a small constant times its size.",
        "the constant is 1: price over change is at most {worst_price_over_change:g} in {tried:g} random "
        "problems",
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
        "{rounding:.1e}); on separable chains, deterministic and layered as well, {failed:g} of {tried:g} "
        "flipped "
        "bits cost something else",
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
        beyond=True,
    ),
    Claim(
        "prop-conedetect/sharp",
        "The margin Δ is a weak-sharpness constant: J − J* ≥ Δ · dist(q, F).",
        "in L2, (J − J*) / dist falls to {least_sharpness_over_Δ:.2f} Δ: it is below Δ in {failed:g} of "
        "{tried:g} random "
        "policies, below Δ / diam Q in {failed_assuming:g}",
        assumption="the diameter: the constant is Δ / diam Q",
        failure="a distance has a scale that Δ does not know",
    ),
    Claim(
        "prop-gate",
        "The tracker's regret is at most r₁ + ΣΓ + B per unresolved round + selection terms.",
        "violated in {failed_assuming:g} of {tried_assuming:g} runs with each round's own B_t; with the last "
        "round's for all, regret {regret:g} stands against a bound of {bound_with_last_range:g}",
        assumption="B_t inside the sum, the range of the round that is counted (or the largest of them "
        "outside)",
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
        "for the geometric series alone, with g as the paper has it: no failure in the {own_settings:g} "
        "settings "
        "of the paper's own tables; {failed:g} of {tried:g} fail with ηg ≤ 1 at penalties up to 100, none "
        "with "
        "η(g+λ) ≤ 1; at ηg = {plain_step:.2g} the claim is {claimed:.2g} and the truth {measured:.3g}",
        assumption="η(g+λ) ≤ 1, as in all of the paper's own settings",
        failure="no penalty exceeds the factor 1/(1 − e^{{−ηg}})",
    ),
    Claim(
        "prop-gate/gap",
        "An action of optimal advantage β at layer h has the on-policy gap β/(H−h+1).",
        "on the tree the gap is γ(1 + p + … + p^(H−h)), p the chance of acting right later (to "
        "{formula_error:.1g}): β/(H−h+1) in {held:g} of {tried:g} settings, those with p = 0 or h = H; "
        "under mirror "
        "descent at H = {advantage:g} it goes from {first_gap:.2f} γ to {last_gap:.2f} γ, where β is "
        "{advantage:g} γ",
        failure="it is so only where every later step is wrong; as learning goes on the gap becomes β itself",
    ),
    Claim(
        "prop-gate/causal-factor",
        "Under a uniform margin the factor 1 + λ(H−h+1)/β is larger at earlier layers.",
        "a uniform margin γ means β = (H−h+1)γ, and the factor is 1 + λ/γ = {claimed_8:g} on every layer; "
        "with the "
        "true gap at p = ½ the first layer's factor is {true_8:.2f} times the last's",
        failure="β grows with the layers that are left, and cancels the factor; with the true gap early "
        "layers "
        "gain least",
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
        "In the proof's sketch: the two new faces share their best point on the old face.",
        "the best values differ by {value_gap:g}, the best points by {distance:g} in L1",
        assumption="«best value» in place of «best point», an erratum of the sketch that leaves the "
        "proposition as "
        "it is",
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
