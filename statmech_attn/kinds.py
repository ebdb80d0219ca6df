"""What files of each kind hold at least: what their summaries and pictures read.

A layout is a list of groups of variables.  The first group is in every file of the
kind, each other one in whole or not at all.  Names in braces are those that the file
attribute of this name holds, such as the free parameter of a continuation.
"""

from collections.abc import Iterable

import xarray as xr

from statmech_attn.dynamics import PHASES


Group = dict[str, tuple[str, ...]]  # variable -> dimensions that it has among others


def _of(dims: str, names: str) -> Group:
    return {name: tuple(dims.split()) for name in names.split()}


BIFURCATION: list[Group] = [
    _of("sample", "section")
    | _of("strobe_sample", "strobe")
    | _of("", "section_count"),
    _of("exponent", "lyapunov lyapunov_stderr") | _of("", "phase phase_paper period"),
]
CONTINUATION: list[Group] = [
    _of("branch", "branch_period")
    | _of("branch end", "branch_result")
    | _of("branch point", "{free} arclength n_unstable")
    | _of("branch point strobe_sample", "strobe"),
    _of("special strobe_sample", "special_strobe")
    | _of(
        "special",
        "special_kind special_branch special_{free} special_arclength special_period "
        "special_coefficient special_criticality special_rotation",
    ),
    _of("curve", "curve_kind")
    | _of(
        "curve curve_point",
        "curve_{free} curve_{second} curve_coefficient curve_rotation",
    ),
    _of(
        "degenerate",
        "degenerate_kind degenerate_curve degenerate_{free} degenerate_{second} "
        "degenerate_rotation",
    ),
]
BASINS: list[Group] = [
    _of(
        "slot",
        "count fraction fraction_low fraction_high attractor phase period",
    )
    | _of("start", "label lifetime lifetime_ended")
    | _of(
        "",
        "count_unsettled count_diverged escape_rate escape_rate_stderr escape_after",
    ),
]
HYSTERESIS: list[Group] = [
    _of("strobe_sample", "strobe_up strobe_down")
    | _of("number edge", "interval")
    | _of("", "distance differ"),
]
U_1 = "path_1 path_1_pair"
ORDER_PARAMETER: list[Group] = [
    _of(f"width {U_1}", "U_1")
    | _of("width rank", "kernel_overlap")
    | _of("rank", "kernel_overlap_gp")
    | _of("width", "accuracy result iterations gradient_norm")
    | _of("", "accuracy_gp"),
    _of("width choice", "chosen_temperature")
    | _of("choice", "chosen_temperature_gp")
    | _of(
        "width choice test_set",
        "accuracy_chosen accuracy_chosen_stderr accuracy_gain accuracy_gain_stderr",
    )
    | _of("choice test_set", "accuracy_chosen_gp"),
    _of("example", "path_kernel kernel kernel_gp"),
]
POSTERIOR: list[Group] = [
    _of(f"width {U_1}", "U_1 U_1_n_eff U_1_r_hat")
    | _of("width", "accuracy accuracy_stderr divergences"),
    _of("width", "log_evidence log_evidence_stderr"),
]
TRAINING: list[Group] = [
    _of(f"width restart {U_1}", "U_1")
    | _of("width restart step", "loss")
    | _of(
        "width restart",
        "training_result accuracy accuracy_train loss_gradient_norm",
    ),
]
ONE_SHOT_TRAINING: list[Group] = [
    _of("restart step", "loss loss_validation accuracy_validation output_rms")
    | _of("restart test_set", "accuracy_sets accuracy_sets_stderr")
    | _of("restart", "training_result best_step"),
]
PRUNING: list[Group] = [
    _of("restart order attention_head", "pruning_score")
    | _of("restart test_set", "accuracy_sets")
    | _of("restart attention_head test_set", "accuracy_pruned accuracy_drop")
    | _of("restart attention_head test_set", "accuracy_drop_stderr")
    | _of(
        "restart order n_pruned test_set",
        "accuracy_cumulative accuracy_cumulative_stderr",
    )
    | _of("restart order test_set", "rank_correlation")
    | _of("order test_set", "rank_correlation_mean rank_correlation_mean_stderr"),
]
COMPARISON: list[Group] = [
    _of("beta", "verdict")
    | _of("n_spins beta", "largest_z comparisons")
    | _of("", "threshold slope_threshold")
    | _of(
        "beta",
        "A_spread_slope A_spread_slope_stderr A_bias_slope A_bias_slope_stderr",
    ),
]
POSTERIORS_COMPARED: list[Group] = [
    _of(f"estimate width temperature {U_1}", "U_1 U_1_stderr")
    | _of(
        "estimate width temperature",
        "accuracy accuracy_stderr largest_z verdict U_1_rms U_1_rms_stderr",
    )
    | _of("estimate temperature", "U_1_rms_slope U_1_rms_slope_stderr")
    | _of("", "threshold"),
]
CHAOS_INDICATORS: list[Group] = [
    _of("beta octave", "radius correlation local_slope")
    | _of("window beta bin", "finite_time_exponent density")
    | _of("alignment_time beta", "log_gali")
    | _of("beta exponent", "lyapunov")
    | _of("beta", "correlation_dimension correlation_dimension_stderr")
    | _of(
        "beta size",
        "lyapunov_rosenstein lyapunov_rosenstein_stderr dimension_series "
        "dimension_series_stderr sample_entropy sample_entropy_stderr",
    )
    | _of("window", "window_steps")
    | _of("size", "n_spins"),
]
LAYOUTS: dict[str, list[Group]] = {
    "trajectory": [_of("beta time pattern", "A m_o_se")],
    "monte-carlo": [_of("n_spins beta time pattern", "m_o_se_mean m_o_se_spread")],
    "bifurcation": BIFURCATION,
    "continuation": CONTINUATION,
    "basins": BASINS,
    "hysteresis": HYSTERESIS,
    "order-parameter": ORDER_PARAMETER,
    "posterior": POSTERIOR,
    "training": TRAINING,
    "pruning": PRUNING,
    "comparison": COMPARISON,
    "running-lyapunov": [_of("beta block exponent", "lyapunov_running")],
    "chaos-indicators": CHAOS_INDICATORS,
    "benchmark": [{f"cpu_{name}": (name,) for name in ("P", "N", "N_0", "n_paths")}],
}
ATTRIBUTES = {
    "bifurcation": ("section_tolerance",),
    "continuation": ("free",),
    "posterior": ("method",),
}
AT_ONCE = 2**28  # bytes of what a summary reads
CODES = {  # shown by words: those of `PHASES`, or of their `flag_meanings`
    "phase", "phase_paper", "result", "training_result", "verdict", "branch_result",
    "special_kind", "special_criticality", "curve_kind", "degenerate_kind",
}  # fmt: skip


def require_layout(dataset: xr.Dataset, path) -> None:
    """Refuse a file that lacks what files of its kind have.

    Kinds that are not known are let through: nothing is read of them.

    Args:
        path: of the file, for the message.

    Raises:
        ValueError: naming what is missing.
    """
    kind = dataset.attrs.get("kind")
    for lacking in _lacking(dataset, kind):
        raise ValueError(f"{path}: is no whole file of kind {kind!r}: {lacking}.")


def _lacking(dataset: xr.Dataset, kind) -> Iterable[str]:
    """What is missing, in words."""
    for name in ATTRIBUTES.get(kind, ()):
        if name not in dataset.attrs:
            yield f"it has no attribute {name}"
    first, *others = _layout(dataset, kind) or [{}]
    for group in (first, *others):
        named = {_named(n, dataset): dims for n, dims in group.items()}
        if group is not first and not named.keys() & dataset.variables.keys():
            continue
        for name, dims in named.items():
            if name not in dataset.variables:
                yield f"it has no variable {name}"
            elif missing := [d for d in dims if d not in dataset[name].dims]:
                yield f"its variable {name} has no dimension {missing[0]}"
            elif name in CODES and not _has_words(name, dataset[name]):
                yield f"its variable {name} has codes without a meaning"


def _has_words(name: str, codes: xr.DataArray) -> bool:
    """Whether every code has a word, or is -1: nothing to say of it.

    Codes are not read where they are so many that no summary shows them.
    """
    words = PHASES
    if not name.startswith("phase"):
        words = str(codes.attrs.get("flag_meanings", "")).split()
    if codes.dtype.kind not in "iu":
        return False
    if codes.nbytes > AT_ONCE or not codes.size:
        return True
    values = codes.values
    return bool(values.min() >= -1 and values.max() < len(words))


def _layout(dataset: xr.Dataset, kind) -> list[Group] | None:
    if kind == "comparison" and "estimate" in dataset.dims:
        return POSTERIORS_COMPARED
    if kind == "training" and "test_set" in dataset.dims:
        return ONE_SHOT_TRAINING
    return LAYOUTS.get(kind) if isinstance(kind, str) else None


def _named(name: str, dataset: xr.Dataset) -> str:
    """A name with the parameters of a file in place of braces."""
    return name.format(
        free=dataset.attrs.get("free", "?"), second=dataset.attrs.get("second", "?")
    )
