"""Why a verdict of `classify` holds, in a sentence with its numbers.

The conditions are those of `phases.decide` (docs/theory/dynamics.md, section 2).
"""

from dataclasses import dataclass

import numpy as np

from statmech_attn.dynamics.options import Criteria
from statmech_attn.labels import with_count
from statmech_attn.presentation import quantity


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """One verdict and what it rests on, as plain numbers.

    A file holds neither the thresholds of its verdicts nor quarters of a window.
    """

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
    zeros: int
    zero_one: float
    broadband: float
    digits: float
    quarters: float
    drift: float
    unit: str
    of_cycle: bool = False  # whether the exponents are those of the cycle itself
    quarters_of_leading: np.ndarray | None = None  # averages of the leading exponent
    criteria: Criteria | None = None
    autonomous: bool = False

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
    def window(self) -> str:
        return f"the window of {self.after(self.steps)} and both of its halves"

    def after(self, steps: int) -> str:
        return with_count(steps, self.unit)

    def asked(self, words: str) -> str:
        """Words with thresholds in the places of their names; nothing of a file."""
        return words.format(c=self.criteria) if self.criteria else ""

    @property
    def sentence(self) -> str:
        """Why the phase is what it is."""
        return _TOLD.get(self.phase, undecided)(self)


def _recurrent(v: Verdict) -> str:
    sign = "zero, as of a neutral cycle" if v.zeros and not v.positive else "negative"
    if np.isnan(v.exponents[0]):
        sign = "hidden by rounding, and what bounds it is negative"
    return (
        f"the orbit recurs after {v.after(v.period)}, to {v.recurrence_error:.1g} of "
        f"its size{v.asked(' (at most {c.recurrence:g} is asked)')}, and {v.leading}"
        f"{', of the cycle itself,' * v.of_cycle} is {sign}"
    )


def _quasiperiodic(v: Verdict) -> str:
    return (
        f"{v.leading} is zero{v.asked(', to {c.zero:g},')} over {v.window}; the orbit "
        f"does not recur; weighted averages agree to {v.digits:.1f} digits"
        f"{v.asked(' (at least {c.digits:g} are asked)')}; {v.indicators} are those of "
        f"a regular orbit; {v.frequency}{_of_flow(v) if v.autonomous else ''}"
    )


def _of_flow(v: Verdict) -> str:
    """Limit cycle or torus: one exponent is 0 along every orbit of a flow."""
    motion, shown = "limit cycle or torus", "tells which"
    if v.zeros > 1:
        motion, shown = "torus", "shows a closed curve of it"
    elif len(v.exponents) > 1:
        motion, shown = "limit cycle", "has its period"
    among = with_count(len(v.exponents), "exponent")
    return (
        f"; {v.zeros} of {among} zero, and one always is along an orbit of a flow: a "
        f"{motion}; dynamics.section {shown}"
    )


def _chaotic(v: Verdict) -> str:
    many = v.stderr[0] > 0
    errors = f", {v.exponents[0] / v.stderr[0]:.3g} standard errors" if many else ""
    count = "" if v.positive < 2 else f", as {v.positive} exponents are"
    comma = "," * bool(errors or count)
    limits, witness = v.criteria, f"{v.indicators} are those of an irregular orbit"
    if limits is None:
        witness = v.indicators
    elif v.zero_one < limits.zero_one and v.broadband < limits.broadband:
        witness = (
            f"{v.indicators} look regular, but more than {limits.clear_sigmas:g} "
            "errors and a spectrum with a floor need no other witness"
        )
    return (
        f"{v.leading} is positive{errors}{count}{comma} over {v.window}; the orbit "
        f"does not recur; {witness}"
    )


def _transient(v: Verdict) -> str:
    if v.quarters_of_leading is None:
        return f"{v.leading} while it lasts"
    first, last = v.quarters_of_leading[[0, -1]]
    return (
        f"λ_1 is {first:.3g} nat/{v.unit} in the first quarter of the window of "
        f"{v.after(v.steps)} and {last:.3g} in the last: chaos that has ended; "
        f"{undecided(v)}"
    )


def undecided(v: Verdict) -> str:
    """Why there is no phase."""
    return "; ".join(
        f"{reason} ({numbers})" if (numbers := _numbers(v, reason)) else reason
        for reason in v.reasons
    )


def _diverged(v: Verdict) -> str:
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
        (
            "averages converge",
            f"{v.digits:.1f}{v.asked(' of {c.digits:g}')} digits",
        ),
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
