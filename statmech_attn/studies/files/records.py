"""Variables of the files that scripts of analysis/ make."""

from statmech_attn import dmft
from statmech_attn.dynamics import diagrams
from statmech_attn.labels import NATS, Variable, Variables


_DIAGRAM = diagrams.variables((), unit="token")


def _of_diagram(name: str, group: str | None = None) -> Variable:
    """A quantity of a diagram, over beta."""
    row = _DIAGRAM.variable(name)
    return row.over(f"beta {row.dims}".strip(), group=group, note="")


OF_ORBIT = """
    lyapunov lyapunov_weighted lyapunov_stderr n_resolved phase period reasons
""".split()
RUNNING_LYAPUNOV = Variables(
    Variable(
        "lyapunov_running", "beta block exponent",
        "Lyapunov exponents, plain average so far", NATS, "λ_i", group="",
    ),
    Variable(
        "lyapunov_blocks", "beta block exponent",
        "Lyapunov exponents, plain average over a block", NATS, "λ_i",
    ),
    *map(_of_diagram, OF_ORBIT),
    dmft.PARAMETERS,
    _DIAGRAM.variable("exponent"),
    Variable("block_end", "block", "steps up to the end of a block", "token", "n"),
)  # fmt: skip
CHAOS_INDICATORS = Variables(
    Variable(
        "finite_time_exponent", "window beta bin", "largest exponent over a window",
        NATS, "λ_1^{(n)}", group="",
    ),
    Variable(
        "density", "window beta bin", "density of the finite-time exponent",
        "token / nat", "p(λ)", group="",
    ),
    Variable(
        "log_gali", "alignment_time beta",
        "log of the volume of two unit deviation vectors", "1", "ln GALI_2", group="",
    ),
    _of_diagram("lyapunov", group=""),
    _of_diagram("lyapunov_stderr"),
    Variable(
        "lyapunov_rosenstein", "beta size", "largest exponent of a series, Rosenstein",
        NATS, "λ_1", "_stderr", group="",
    ),
    Variable(
        "dimension_series", "beta size", "correlation dimension of a series", "1",
        "D_2", "_stderr", group="",
    ),
    Variable(
        "sample_entropy", "beta size", "sample entropy", "nat / sample", "SampEn",
        "_stderr", group="",
    ),
    Variable("window_steps", "window", "length of a window", "token", "n", group=""),
    Variable(
        "n_spins", "size", "number of spins, inf: mean field", "1", "N", group=""
    ),
    dmft.PARAMETERS,
    _DIAGRAM.variable("exponent"),
    Variable(
        "alignment_time", "alignment_time",
        "time since the deviation vectors were set out",
        "token", "n",
    ),
)  # fmt: skip
_OF_SPINS = (
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
    *_OF_SPINS, attributes=("steps",),
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
    *_OF_SPINS, attributes=("window",),
)  # fmt: skip
