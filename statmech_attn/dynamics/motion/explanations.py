"""Why a verdict of `classify` holds, in a sentence with its numbers.

The conditions are those of `phases.decide` (docs/theory/dynamics.md, section 2).
"""

from dataclasses import dataclass

import numpy as np

from statmech_attn.dynamics.options import Criteria
from statmech_attn.labels import counted
from statmech_attn.presentation import quantity


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One verdict and what it rests on, as plain numbers."""

    phase: str
    period: int  # steps
    rotation_number: float
    rotation_error: float
    oriented: bool
    reasons: list[str]  # why there is no phase; words of `phases.REASONS`
    exponents: np.ndarray
    stderr: np.ndarray
    steps: int  # of the window
    recurrence_error: float
    positive: int
    zero_one: float
    broadband: float
    digits: float
    quarters: float
    drift: float
    unit: str

    @property
    def leading(self) -> str:
        """The largest exponent with its error and unit."""
        value = quantity(self.exponents[0], self.stderr[0])
        return f"λ_1 = {value} nat/{self.unit}"

    @property
    def frequency(self) -> str:
        """The rotation number with its error and unit."""
        value = quantity(self.rotation_number, self.rotation_error)
        words = f"{value} cycles per period of the drive (per step without one)"
        if self.oriented:
            return f"its rotation number is {words}"
        return f"its strongest frequency is {words}, the rotation number ρ or 1 - ρ"

    @property
    def indicators(self) -> str:
        return f"0-1 test K = {self.zero_one:.3g}, broadband power {self.broadband:.2g}"

    @property
    def digits_required(self) -> str:
        """How many digits were asked for, where that is known."""
        return ""

    def after(self, steps: int) -> str:
        return counted(steps, self.unit)


@dataclass(frozen=True, kw_only=True)
class JudgedVerdict(Verdict):
    """A verdict with the criteria that it was judged by."""

    zeros: int
    quarters_of_leading: np.ndarray  # averages of the leading exponent
    criteria: Criteria
    autonomous: bool

    def explain(self) -> str:
        """The sentence that explains the verdict."""
        tell = _TOLD.get(self.phase, undecided)
        return f"{self.phase}: {tell(self)}."

    @property
    def digits_required(self) -> str:
        return f" of {self.criteria.digits:g}"

    @property
    def regular(self) -> bool:
        """Whether the 0-1 test and the spectrum say so."""
        limits = self.criteria
        return self.zero_one < limits.zero_one and self.broadband < limits.broadband


def _recurrent(v: JudgedVerdict) -> str:
    neutral = v.zeros > 0 and v.positive == 0
    sign = "zero, as of a neutral cycle" if neutral else "negative"
    if np.isnan(v.exponents[0]):
        sign = "hidden by rounding, and what bounds it is negative"
    return (
        f"the orbit recurs after {v.after(v.period)}, to {v.recurrence_error:.1g} of "
        f"its size (at most {v.criteria.recurrence:g} is asked), and {v.leading} is "
        f"{sign}"
    )


def _quasiperiodic(v: JudgedVerdict) -> str:
    return (
        f"{v.leading} is zero, to {v.criteria.zero:g}, over the window of "
        f"{v.after(v.steps)} and both of its halves; the orbit does not recur; "
        f"weighted averages agree to {v.digits:.1f} digits (at least "
        f"{v.criteria.digits:g} are asked); {v.indicators} are those of a regular "
        f"orbit; {v.frequency}{_of_flow(v) if v.autonomous else ''}"
    )


def _of_flow(v: JudgedVerdict) -> str:
    """Limit cycle or torus: one exponent is 0 along every orbit of a flow."""
    motion, shown = "limit cycle or torus", "tells which"
    if v.zeros > 1:
        motion, shown = "torus", "shows a closed curve of it"
    elif len(v.exponents) > 1:
        motion, shown = "limit cycle", "has its period"
    among = counted(len(v.exponents), "exponent")
    return (
        f"; {v.zeros} of {among} zero, and one always is along an orbit of a flow: a "
        f"{motion}; dynamics.section {shown}"
    )


def _chaotic(v: JudgedVerdict) -> str:
    many = v.stderr[0] > 0
    errors = f", {v.exponents[0] / v.stderr[0]:.3g} standard errors" if many else ""
    count = "" if v.positive < 2 else f", as {v.positive} exponents are"
    comma = "," * bool(errors or count)
    witness = (
        f"{v.indicators} look regular, but more than {v.criteria.clear_sigmas:g} "
        "errors and a spectrum with a floor need no other witness"
        if v.regular
        else f"{v.indicators} are those of an irregular orbit"
    )
    return (
        f"{v.leading} is positive{errors}{count}{comma} over the window of "
        f"{v.after(v.steps)} and both of its halves; the orbit does not recur; "
        f"{witness}"
    )


def _transient(v: JudgedVerdict) -> str:
    first, last = v.quarters_of_leading[[0, -1]]
    return (
        f"λ_1 is {first:.3g} nat/{v.unit} in the first quarter of the window of "
        f"{v.after(v.steps)} and {last:.3g} in the last: chaos that has ended; "
        f"{undecided(v)}"
    )


def why(v: Verdict, source: str) -> str:
    """Why a phase was given to a point of a file, which has no criteria."""
    match v.phase:
        case "fixed" | "periodic":
            of = ", of the cycle itself" if source == "cycle" else ""
            return (
                f"the orbit recurs after {v.after(v.period)}, to "
                f"{v.recurrence_error:.1g} of its size; {v.leading}{of}"
            )
        case "quasiperiodic":
            return (
                f"{v.leading} counts as zero; the orbit does not recur; weighted "
                f"averages agree to {v.digits:.1f} digits; {v.indicators}; "
                f"{v.frequency}"
            )
        case "chaotic" | "hyperchaotic":
            many = f", as {v.positive} exponents are" if v.positive > 1 else ""
            errors = ""
            if v.stderr[0] > 0:
                errors = f", {v.exponents[0] / v.stderr[0]:.3g} standard errors"
            return (
                f"{v.leading} is positive{errors}{many}; the orbit does not recur; "
                f"{v.indicators}"
            )
        case "transient":
            return f"{v.leading} while it lasts"
        case "diverged":
            return "the state became infinite or not a number"
    return undecided(v)


def undecided(v: Verdict) -> str:
    """Why there is no phase."""
    return "; ".join(
        f"{reason} ({numbers})" if (numbers := _numbers(v, reason)) else reason
        for reason in v.reasons
    )


def _diverged(v: JudgedVerdict) -> str:
    return "the state became infinite or not a number"


def _numbers(v: Verdict, reason: str) -> str:
    """What a reason goes by."""
    for words, numbers in (
        ("the quarters", f"by {v.quarters:.3g} standard errors"),
        ("like its beginning", f"by {v.drift:.3g} standard errors"),
        ("of one sign", v.leading),
        ("an exponent is positive", v.leading),
        ("still converging", f"returns to {v.recurrence_error:.1g} of its size"),
        (
            "no recurrence was found",
            f"{v.leading}; nearest return to {v.recurrence_error:.1g} of its size",
        ),
        ("averages converge", f"{v.digits:.1f}{v.digits_required} digits"),
        ("irregular", v.indicators),
        ("say regular", v.indicators),
        ("the cap", f"{v.after(v.steps)}"),
    ):
        if words in reason:
            return numbers
    return ""


_TOLD = {
    "fixed": _recurrent,
    "periodic": _recurrent,
    "quasiperiodic": _quasiperiodic,
    "chaotic": _chaotic,
    "hyperchaotic": _chaotic,
    "transient": _transient,
    "diverged": _diverged,
}
