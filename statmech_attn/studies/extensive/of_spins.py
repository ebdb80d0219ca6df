"""What spins with growing numbers of patterns do: files of scripts of analysis/."""

from statmech_attn.labels import Variable, Variables


_ALONG = (
    Variable("n_spins", "n_spins", "number of spins", symbol="N"),
    Variable("beta", "", "inverse temperature of the output", symbol="β"),
)
THRESHOLDS = Variables(
    Variable(
        "threshold", "context n_spins", "alpha at which half of the samples retrieve",
        symbol="α_N", parts="_error", group="",
    ),
    Variable(
        "after", "context", "alpha at which the theory does, after as many steps",
        symbol="α(t)", group="",
    ),
    Variable("context", "context", "length of the context window", "token", "C"),
    Variable("gamma", "", "inverse temperature of attention", symbol="γ"),
    *_ALONG, attributes=("steps",),
)  # fmt: skip
MOTION = Variables(
    Variable(
        "motion", "",
        "spread in time of the attention vector; error: the spread over later windows",
        symbol="σ_A", parts="_stderr", group="",
    ),
    Variable(
        "motion_spins", "n_spins",
        "the same of spins: root mean square over samples",
        symbol="σ_A", parts="_stderr", group="",
    ),
    Variable(
        "motion_limit", "", "square of the same, on a line in 1/N where 1/N = 0",
        symbol="σ_A²", parts="_stderr",
    ),
    Variable(
        "motion_slope", "", "slope of the line", symbol="dσ_A²/dN⁻¹", parts="_stderr"
    ),
    Variable(
        "motion_chi2", "", "sum of squares of deviations from the line, in errors",
        symbol="χ²",
    ),
    Variable(
        "difference", "n_spins",
        "root mean square difference of A from the theory, early tokens of a sample",
        symbol="ΔA", parts="_stderr",
    ),
    Variable("alpha", "", "further patterns per spin", symbol="α"),
    *_ALONG, attributes=("window",),
)  # fmt: skip
