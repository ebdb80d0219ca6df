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
