"""What the file of a diagram holds, and how it is labelled."""

from collections.abc import Iterable

from statmech_attn.dynamics.exponents import cycles
from statmech_attn.dynamics.motion.phases import PHASES, REASONS
from statmech_attn.labels import cf_words, STEP, Variable, Variables
from statmech_attn.scan import FAILURE


_EXPONENTS = "NaN: not resolved, -inf: exact collapse"
_EVIDENCE = "evidence of the phase, docs/theory/dynamics.md"
_FINAL = "of a transient what follows it, else as above"
_GRID = "of a refined file"


# Braces stand for what `variables` is told.
_VALUES = (
    Variable(
        "section", "sample", "{shown} on the section {section}", "{shown_unit}",
        "{symbol}", group="section"
    ),
    Variable(
        "strobe", "strobe_sample", "{shown} at the clock's phase 0", "{shown_unit}",
        "{symbol}", group="section"
    ),
    Variable(
        "section_count", "", "visits to the section in the recorded steps", "1", "n",
        group="section"
    ),
    Variable(
        "lyapunov", "exponent", "Lyapunov exponents, plain average, largest first",
        "nat / {unit}", "λ_i", group="verdicts", note=_EXPONENTS
    ),
    Variable(
        "lyapunov_weighted", "exponent", "Lyapunov exponents, weighted average",
        "nat / {unit}", "λ_i", note=_EXPONENTS
    ),
    Variable(
        "lyapunov_stderr", "exponent", "standard error of the plain average",
        "nat / {unit}", "δλ_i", group="verdicts"
    ),
    Variable(
        "lyapunov_source", "exponent", "what the exponent was taken from", "1",
        "source", flags=cycles.SOURCES,
        note="of a cycle itself the errors are those of rounding"
    ),
    Variable(
        "log_det", "", "average of ln|det| of the Jacobian", "nat / {unit}",
        "⟨ln|det J|⟩", note="beside all exponents"
    ),
    Variable(
        "sum_rule", "", "sum of the averages less log_det", "nat / {unit}",
        "Σλ - ⟨ln|det J|⟩", note="beside all exponents"
    ),
    Variable("n_resolved", "", "leading exponents above round-off", "1", "n"),
    Variable(
        "phase", "", "phase of the orbit", "1", "phase", group="verdicts", flags=PHASES
    ),
    Variable(
        "phase_paper", "", "phase by the sign of the plain average", "1", "phase",
        flags=PHASES
    ),
    Variable(
        "period", "", "period of the orbit, 0 if none", "{unit}", "p", group="verdicts"
    ),
    Variable(
        "rotation_number", "", "rotation number, cycles per clock period", "1", "ρ"
    ),
    Variable(
        "rotation_error", "", "error of it, by halves of the record and cycles nearby",
        "1", "δρ"
    ),
    Variable(
        "rotation_oriented", "",
        "whether it is one in [0, 1), from the first of two observables to the second, "
        "or a spectral line in (0, 1/2], the same for ρ and 1 - ρ", "1", "oriented",
        flags=("no", "yes")
    ),
    Variable(
        "reasons", "", "why no phase was given", "1", "reasons",
        flags=cf_words(REASONS), masks=True
    ),
    Variable("n_positive", "", "positive exponents", "1", "n_+", note=_EVIDENCE),
    Variable("n_zero", "", "zero exponents", "1", "n_0", note=_EVIDENCE),
    Variable(
        "recurrence_error", "", "largest |x(t+p) - x(t)|, relative", "1", "δ",
        note=_EVIDENCE
    ),
    Variable("zero_one", "", "K of the 0-1 test", "1", "K", note=_EVIDENCE),
    Variable(
        "broadband", "", "median over mean spectral power", "1", "S", note=_EVIDENCE
    ),
    Variable(
        "convergence_digits", "", "digits to which weighted half averages agree", "1",
        "d", note=_EVIDENCE
    ),
    Variable(
        "quarter_disagreement", "", "exponents by quarter, standard errors", "1", "z_λ",
        note=_EVIDENCE
    ),
    Variable(
        "drift", "", "observables by quarter (means, ranges), standard errors", "1",
        "z_m", note=_EVIDENCE
    ),
    Variable(
        "entropy_production", "", "entropy production", "nat / ({unit} spin)", "σ",
        group="production", note="over a quarter of the recorded steps"
    ),
    Variable(
        "entropy_production_weighted", "", "entropy production, weighted average",
        "nat / ({unit} spin)", "σ", group="production"
    ),
    Variable(
        "entropy_production_stderr", "", "standard error of entropy production",
        "nat / ({unit} spin)", "δσ", group="production"
    ),
    Variable("window", "", "steps of the window with the verdict", "{unit}", "n"),
    Variable("horizon", "", "steps for which the phase has lasted", "{unit}", "t"),
    Variable(
        "doubtful", "", "whether neighbours make chaos doubtful", "1", "doubtful",
        flags=("no", "yes"), note="no where a longer look has kept it"
    ),
    Variable(
        "transient_probability", "", "probability that chaos is a transient", "1", "P",
        note="exponential lifetimes, docs/theory/dynamics.md; NaN: no chaos, or no "
        "orbit has left any"
    ),
    Variable(
        "confirmed", "", "perturbed starts with the same phase, -1: none run", "1",
        "n", note="of `confirm_starts`, over `confirm_horizon` steps at most"
    ),
    Variable(
        "final_phase", "", "phase on which the orbit settles", "1", "phase",
        flags=PHASES, note=_FINAL
    ),
    Variable(
        "final_period", "", "period on which the orbit settles, 0 if none", "{unit}",
        "p", note=_FINAL
    ),
    Variable(
        "final_lyapunov", "", "largest exponent of what the orbit settles on",
        "nat / {unit}", "λ_1", note=_FINAL
    ),
    Variable(
        "final_lyapunov_stderr", "", "standard error of it", "nat / {unit}", "δλ_1",
        note=_FINAL
    ),
    Variable(
        "final_starts", "", "perturbed starts that settle on it, -1: no transient", "1",
        "n", note="fewer than have left where attractors coexist"
    ),
)  # fmt: skip
_COORDINATES = (
    Variable(
        "level", "", "level of refinement, 0 is the coarse grid", "1", "l", note=_GRID
    ),
    Variable("start", "start", "random start", "1", "s"),
    Variable("exponent", "exponent", "rank of the Lyapunov exponent", "1", "i"),
    Variable("sample", "sample", "sample on the section {section}", "1", "n"),
    Variable(
        "strobe_sample", "strobe_sample", "sample at the clock's phase 0, latest last",
        "1", "n"
    ),
)  # fmt: skip
INDEX = Variable("index", "", "point of the list", "1", "i", note="from 0")
ROWS = {row.name: row for row in (*_VALUES, *_COORDINATES)}


def variables(
    parameters: Iterable[Variable],
    *,
    unit: str,
    shown: str = "displayed coordinate",
    shown_unit: str = "1",
    section: str = "",
    symbol: str = "x",
) -> Variables:
    """What the file of a diagram holds.

    Files have the scanned parameters as dimensions before these, or `point`.
    """
    words = {"unit": unit, "shown": shown, "section": section, "symbol": symbol}
    words["shown_unit"] = shown_unit
    fill = lambda text: text.format(**words).rstrip()
    return Variables(
        *(row.filled(fill) for row in _VALUES),
        FAILURE,
        *(
            row if row == INDEX else row._replace(parts="_index _grid")
            for row in parameters
        ),
        *(row.filled(fill) for row in _COORDINATES),
        attributes={"section_tolerance": "section_count"},
    )


VARIABLES = variables((), unit=STEP)
