"""Long names, units and the papers' symbols of stored variables (docs/hdf5.md)."""

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn.bpkr import RESULTS
from statmech_attn.dynamics import continuation, cycles, PHASES, REASONS
from statmech_attn.scan import FAILURES
from statmech_attn.training import RESULTS as TRAINING_RESULTS


NATS = "nat / token"
LABELS = {
    "beta": ("inverse temperature of the output softmax", "1", "β"),
    "gamma": ("inverse temperature of attention", "1", "γ"),
    "epsilon": ("weight of the positional part", "1", "ε"),
    "time": ("token step, 0 is the first generated token", "token", "t"),
    "pattern": ("feature pattern", "1", "a"),
    "exponent": ("rank of the Lyapunov exponent", "1", "i"),
    "sample": ("sample on the section |m_o_se_2| < tolerance", "1", "n"),
    "strobe_sample": ("sample at the clock's phase 0, latest last", "1", "n"),
    "start": ("random start", "1", "s"),
    "level": ("level of refinement, 0 is the coarse grid", "1", "l"),
    "A": ("attention", "1", "A"),
    "m_o_se": ("semantic output overlap", "1", "m^{o,SE}"),
    "m_v": ("value overlap", "1", "m^v"),
    "m_q": ("query overlap", "1", "m^q"),
    "m_k": ("key overlap", "1", "m^k"),
    "A_noise_std": ("sqrt(N) times the linear-noise spread of A", "1", "√N σ_A"),
    "m_o_se_noise_std": (
        "sqrt(N) times the linear-noise spread of m_o_se", "1", "√N σ_m",
    ),
    "score_noise_std": (
        "sqrt(N) times the largest linear-noise spread of an attention score; linear "
        "noise holds where the spread is far below 1", "1", "√N σ_s",
    ),
    "lyapunov": ("Lyapunov exponents, plain average, largest first", NATS, "λ_i"),
    "lyapunov_weighted": ("Lyapunov exponents, weighted average", NATS, "λ_i"),
    "lyapunov_stderr": ("standard error of the plain average", NATS, "δλ_i"),
    "lyapunov_source": ("what the exponent was taken from", "1", "source"),
    "log_det": ("average of ln|det| of the Jacobian", NATS, "⟨ln|det J|⟩"),
    "sum_rule": ("sum of the averages less log_det", NATS, "Σλ - ⟨ln|det J|⟩"),
    "n_resolved": ("leading exponents above round-off", "1", "n"),
    "phase": ("phase of the orbit", "1", "phase"),
    "phase_paper": ("phase by the sign of the plain average", "1", "phase"),
    "period": ("period of the orbit, 0 if none", "token", "p"),
    "rotation_number": ("strongest frequency, cycles per clock period", "1", "ρ"),
    "reasons": ("why no phase was given", "1", "reasons"),
    "n_positive": ("positive exponents", "1", "n_+"),
    "n_zero": ("zero exponents", "1", "n_0"),
    "recurrence_error": ("largest |x(t+p) - x(t)|, relative", "1", "δ"),
    "zero_one": ("K of the 0-1 test", "1", "K"),
    "broadband": ("median over mean spectral power", "1", "S"),
    "convergence_digits": ("digits to which weighted half averages agree", "1", "d"),
    "quarter_disagreement": ("exponents by quarter, standard errors", "1", "z_λ"),
    "drift": ("observables by quarter (means, ranges), standard errors", "1", "z_m"),
    "window": ("steps of the window that decided", "token", "n"),
    "horizon": ("steps for which the verdict has held", "token", "t"),
    "doubtful": ("whether a neighbour makes the verdict doubtful", "1", "doubtful"),
    "confirmed": ("perturbed starts that kept to the verdict, -1: none run", "1", "n"),
    "section": ("m_o_se_1 on the section |m_o_se_2| < tolerance", "1", "m^{o,SE}_1"),
    "section_count": ("visits to the section in the recorded steps", "1", "n"),
    "strobe": ("m_o_se_1 at the clock's phase 0", "1", "m^{o,SE}_1"),
    "arclength": ("length along the branch, in units of its steps", "1", "s"),
    "state": ("attention window of a point of the cycle at clock 0", "1", "A"),
    "multiplier_re": ("multipliers of the cycle, real part", "1", "Re μ"),
    "multiplier_im": ("multipliers of the cycle, imaginary part", "1", "Im μ"),
    "n_unstable": ("multipliers outside the unit circle", "1", "n_u"),
    "end": ("end of a branch or curve, 0 before its first point", "1", "end"),
    "parent": ("special point on which it was born, -1 if none", "1", "n"),
    "origin": ("special point from which it was followed", "1", "n"),
    "unresolved": ("changes of sign that were not closed in on", "1", "n"),
    "kind": ("kind of bifurcation", "1", "kind"),
    "branch": ("branch", "1", "n"),
    "curve": ("curve", "1", "n"),
    "error": ("size of the last Newton step", "1", "δ"),
    "coefficient": ("coefficient of the normal form: b, c or Re d", "1", "b, c, Re d"),
    "criticality": ("whether what is born is stable", "1", "criticality"),
    "rotation": ("rotation number, turns per period of the cycle", "1", "ρ"),
    "radius": ("radius over the size of the attractor", "1", "r"),
    "correlation": ("share of pairs of points closer than the radius", "1", "C(r)"),
    "local_slope": ("d ln C / d ln r over an octave", "1", "d ln C/d ln r"),
    "correlation_dimension": ("correlation dimension", "1", "D_2"),
    "window_steps": ("length of a window", "token", "n"),
    "finite_time_exponent": ("largest exponent over a window", NATS, "λ_1^{(n)}"),
    "log_gali": ("log of the volume of two unit deviation vectors", "1",
                 "ln GALI_2"),
    "alignment_time": ("time since the deviation vectors were set out", "token", "n"),
    "lyapunov_rosenstein": ("largest exponent of a series, Rosenstein", NATS, "λ_1"),
    "dimension_series": ("correlation dimension of a series", "1", "D_2"),
    "sample_entropy": ("sample entropy", "nat / sample", "SampEn"),
    "slot": ("set on which starts ended, by number of starts", "1", "k"),
    "attractor": ("number of the set along the parameter, -1: none", "1", "k"),
    "count": ("starts that ended on the set", "1", "n_k"),
    "count_unsettled": ("starts that did not settle before the horizon", "1", "n"),
    "count_inexact": ("starts with an upper bound as their lifetime", "1", "n"),
    "count_diverged": ("starts that diverged", "1", "n"),
    "fraction": ("share of the starts", "1", "n_k/n"),
    "fraction_low": ("lower end of Wilson's interval, one standard error", "1", "p"),
    "fraction_high": ("upper end of Wilson's interval, one standard error", "1", "p"),
    "points": ("A on the set at the clock's phase 0", "1", "A"),
    "n_points": ("points of the set before they repeat", "1", "n"),
    "point": ("point of a set", "1", "i"),
    "states": ("attention windows on the set, newest first", "1", "z"),
    "turn": ("clock periods between states on the set", "1", "i"),
    "age": ("age of the attention vector in the window", "token", "τ"),
    "label": ("slot of the set, -1 not settled, -2 diverged", "1", "k"),
    "lifetime": ("tokens before the neighbourhood was entered for good", "token", "τ"),
    "lifetime_ended": ("False: still on the way after the lifetime", "1", "ended"),
    "lifetime_exact": ("False: settled at the lifetime or before", "1", "exact"),
    "escape_rate": ("rate at which transients end", NATS, "κ"),
    "escape_events": ("transients that ended after escape_after", "1", "e"),
    "escape_constancy": ("early minus late rate over its error", "1", "z"),
    "escape_after": ("beginning of the exponential tail", "token", "t_0"),
    "strobe_up": ("m_o_se_1 at the clock's phase 0, swept up", "1", "m^{o,SE}_1"),
    "strobe_down": ("m_o_se_1 at the clock's phase 0, swept down", "1", "m^{o,SE}_1"),
    "phase_up": ("phase of the orbit swept up", "1", "phase"),
    "phase_down": ("phase of the orbit swept down", "1", "phase"),
    "distance": ("distance of the sets of the two sweeps", "1", "D"),
    "differ": ("the sweeps end on different sets", "1", "differ"),
    "interval": ("value of the parameter around an interval of hysteresis", "1", "β"),
    "number": ("interval of hysteresis", "1", "k"),
    "edge": ("last value before, first and last in it, first after", "1", "edge"),
    "width": ("hidden width", "1", "N"),
    "temperature": ("temperature of the posterior", "1", "T"),
    "attention_head": ("layer.head", "1", "(l, h)"),
    "y": ("labels of the training examples", "1", "Y"),
    "y_test": ("labels of the test examples", "1", "Y"),
    "U_a": ("order parameter of the readout", "1", "U_a"),
    "action": ("action", "1", "S"),
    "energy": ("energy over the width", "1", "E/N"),
    "entropy": ("sum of the entropies", "1", "Σ s_l"),
    "gradient_norm": ("norm of the gradient of the action", "1", "|∇S|"),
    "iterations": ("Newton steps", "1", "n"),
    "result": ("how the iteration ended", "1", "result"),
    "outside_support": (
        "True: a width is below the size of its U, so the exact law, whose U are "
        "singular, has no saddle point in its support", "1", "N_l < d_l",
    ),
    "signature": ("negative, zero, positive eigenvalues of the Hessian", "1", "n"),
    "predictor_mean": ("mean of f over the posterior", "1", "⟨f⟩"),
    "predictor_variance": ("variance of f over the posterior", "1", "⟨δf²⟩"),
    "accuracy": ("share of test examples with the right sign", "1", "accuracy"),
    "accuracy_gp": ("accuracy in the GP limit", "1", "accuracy"),
    "choice": ("by what accuracy the temperature was chosen", "1", "choice"),
    "chosen_temperature": ("temperature with the highest accuracy", "1", "T"),
    "chosen_temperature_gp": (
        "temperature with the highest accuracy in the GP limit", "1", "T",
    ),
    "chosen_at_end": (
        "True: the chosen temperature is an end of the grid, and a better one may lie "
        "beyond", "1", "end",
    ),
    "chosen_at_end_gp": (
        "True: the temperature chosen in the GP limit is an end of the grid", "1",
        "end",
    ),
    "accuracy_chosen": ("accuracy at the chosen temperature", "1", "accuracy"),
    "accuracy_chosen_gp": (
        "accuracy in the GP limit at the chosen temperature", "1", "accuracy",
    ),
    "accuracy_gain": ("accuracy less that in the GP limit", "1", "Δ accuracy"),
    "accuracy_sets_gp": ("accuracy on a test set in the GP limit", "1", "accuracy"),
    "accuracy_gp_pair": (
        "accuracy in the GP limit of a network with two paths, or one", "1", "accuracy",
    ),
    "kernel_overlap": (
        "overlap of kernel eigenvectors with the labels", "1", "|v_i·Y|/|Y|",
    ),
    "kernel_overlap_gp": (
        "overlap of GP kernel eigenvectors with the labels", "1", "|v_i·Y|/|Y|",
    ),
    "accuracy_silenced": ("accuracy without the head", "1", "accuracy"),
    "head_score": ("weight of the head in U_1 over the largest", "1", "score"),
    "order": ("what gives heads their scores, or their order", "1", "order"),
    "n_pruned": ("heads pruned, the lowest scores first", "1", "n"),
    "pruning_score": ("score of the head over the largest", "1", "score"),
    "accuracy_pruned": ("accuracy without the head", "1", "accuracy"),
    "accuracy_drop": ("accuracy lost without the head", "1", "Δ accuracy"),
    "accuracy_cumulative": ("accuracy without n heads", "1", "accuracy"),
    "rank_correlation": ("rank correlation of score and accuracy lost", "1", "ρ_S"),
    "rank_correlation_mean": ("rank correlation, mean of trainings", "1", "⟨ρ_S⟩"),
    "path_kernel": ("kernel of one path alone, U = 1", "1", "K_π"),
    "kernel_gp": ("kernel in the GP limit", "1", "K"),
    "kernel": ("renormalised kernel", "1", "K"),
    "divergences": ("divergent draws of all chains", "1", "n"),
    "bfmi": ("Bayesian fraction of missing information, least of all chains", "1",
             "BFMI"),
    "leapfrog_steps": ("gradients for a draw, mean", "1", "n"),
    "step_size": ("step of the integrator", "1", "h"),
    "log_evidence": ("log of the probability of the labels", "nat", "ln p(Y)"),
    "chain": ("Markov chain", "1", "c"),
    "restart": ("training from initial weights of its own", "1", "r"),
    "step": ("step of gradient descent", "1", "n"),
    "loss": ("minus the log density of the weights, up to a constant", "1", "L"),
    "loss_data": ("squared errors over 2 T", "1", "Σ(f−Y)²/2T"),
    "loss_prior": ("half the squared norm of the whitened weights", "1", "|z|²/2"),
    "loss_gradient_norm": ("norm of the gradient of the loss", "1", "|∇L|"),
    "training_steps": ("steps of gradient descent", "1", "n"),
    "training_result": ("how the training ended", "1", "result"),
    "test_set": ("classes that the test tasks are made of", "1", "set"),
    "accuracy_sets": ("share of a test set with the right sign", "1", "accuracy"),
    "accuracy_validation": (
        "share of validation tasks with the right sign", "1", "accuracy",
    ),
    "loss_validation": ("squared errors of the validation tasks, mean", "1", "L"),
    "output_rms": ("root mean square of f on the validation tasks", "1", "rms f"),
    "best_step": ("step with the most validation tasks right", "1", "n"),
    "readout": ("weights of the readout", "1", "a"),
    "predictor": ("f of the trained network", "1", "f"),
    "accuracy_train": (
        "share of training examples with the right sign", "1", "accuracy",
    ),
    "estimate": ("what the numbers were estimated by", "1", "estimate"),
    "largest_z": ("largest difference from the reference, standard errors", "1",
                  "max|z|"),
    "comparisons": ("number of comparisons", "1", "n"),
    "threshold": ("difference in standard errors that chance allows", "1", "z*"),
    "failure": ("why a point has no numbers", "1", "failure"),
    "verdict": ("verdict on the estimate", "1", "verdict"),
}  # fmt: skip
NUMBERED = {
    r"path_(\d+)(_pair)?": ("attention path from layer {} on", "1", "π"),
    r"head_(\d+)": ("head of layer {}", "1", "h"),
    r"query_(\d+)": ("query matrices of layer {}", "1", "Q_{}"),
    r"key_(\d+)": ("key matrices of layer {}", "1", "K_{}"),
    r"value_(\d+)": ("value matrices of layer {}", "1", "V_{}"),
    r"U_(\d+)": ("order parameter, overlap of effective weights", "1", "U_{}"),
}

BEGINNINGS = {
    "branch_": "branch",
    "special_": "special point",
    "curve_": "curve of critical cycles",
    "degenerate_": "point of codimension two",
}
FLAGS = {
    "lyapunov_source": cycles.SOURCES,
    "doubtful": ("no", "yes"),
    "branch_result": continuation.RESULTS,
    "curve_result": continuation.CURVE_RESULTS,
    "special_kind": continuation.KINDS,
    "curve_kind": continuation.KINDS,
    "special_criticality": ("none", "supercritical", "subcritical"),
    "degenerate_kind": continuation.CODIMENSION_TWO,
    "failure": tuple(text.replace(" ", "_") for text in FAILURES),
    "training_result": tuple(text.replace(" ", "_") for text in TRAINING_RESULTS),
}
ENDINGS = {  # words, units (None: those of the quantity itself), symbol
    "_rms_slope": ("exponent of the difference in the width", "1", "d ln Δ{}/d ln N"),
    "_rms": ("root mean square difference from the reference", None, "Δ{}"),
    "_stderr": ("standard error", None, "s({})"),
    "_std": ("standard deviation over the posterior", None, "σ({})"),
    "_n_eff": ("effective number of draws", "1", "n_eff({})"),
    "_r_hat": ("split R-hat over chains", "1", "R̂({})"),
    "_draws": ("draws", None, "{}"),
    "_exact": ("by the exact law", None, "{}"),
    "_corrected": ("corrected to order 1/N", None, "{}"),
    "_grid": ("values of the finest grid", None, "{}"),
    "_index": ("place on the finest grid", "1", "i({})"),
    "_z": ("difference from the reference in standard errors", "1", "z({})"),
}


def _words(name: str) -> tuple[str, str, str]:
    if name in LABELS:
        return LABELS[name]
    for pattern, words in NUMBERED.items():
        if match := re.fullmatch(pattern, name):
            long_name, units, symbol = (text.format(match[1]) for text in words)
            return long_name, units, symbol
    for beginning, words in BEGINNINGS.items():
        if name.startswith(beginning):
            long_name, units, symbol = _words(name.removeprefix(beginning))
            return f"{words}: {long_name}", units, symbol
    for ending, (words, units, symbol) in ENDINGS.items():
        if name.endswith(ending):
            long_name, own_units, own_symbol = _words(name.removesuffix(ending))
            return (
                f"{long_name}: {words}",
                units or own_units,
                symbol.format(own_symbol),
            )
    raise KeyError(name)


def attributes(name: str) -> dict[str, Any]:
    """Attributes of one variable."""
    long_name, units, symbol = _words(name)
    found: dict[str, Any] = {"long_name": long_name, "units": units, "symbol": symbol}
    if name.startswith("phase"):
        found["flag_values"] = np.arange(len(PHASES), dtype=np.int8)
        found["flag_meanings"] = " ".join(PHASES)
    if name in FLAGS:
        found["flag_values"] = np.arange(len(FLAGS[name]), dtype=np.int8)
        found["flag_meanings"] = " ".join(FLAGS[name])
    if name == "reasons":
        found["flag_masks"] = 1 << np.arange(len(REASONS), dtype=np.int32)
        found["flag_meanings"] = " ".join(text.replace(" ", "_") for text in REASONS)
    if name == "result":
        found["flag_values"] = np.arange(len(RESULTS), dtype=np.int8)
        found["flag_meanings"] = " ".join(
            re.sub(r"\W+", "_", text.split(":")[0]) for text in RESULTS
        )
    return found


def labelled(
    variables: Mapping[str, tuple[tuple[str, ...], Any]],
    coordinates: Mapping[str, Any],
) -> xr.Dataset:
    """A data set with attributes on every variable and coordinate."""
    data = {
        name: (dims, np.asarray(values), attributes(name))
        for name, (dims, values) in variables.items()
    }
    coords = {n: ((n,), np.asarray(v), attributes(n)) for n, v in coordinates.items()}
    return xr.Dataset(data, coords)
