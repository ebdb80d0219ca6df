"""Options of verdicts, diagrams, searches of attractors, and continuation."""

import sys
from dataclasses import dataclass
from typing import Annotated, Literal

from annotated_types import Ge, Le, MultipleOf

from statmech_attn.options import (
    Count,
    Fraction,
    NotNegative,
    Options,
    Positive,
    WholeNumber,
)


@dataclass(frozen=True)
class Criteria(Options):
    """Thresholds by which `classify` decides, dimensionless unless stated.

    Attributes:
        zero (nat / step): a weighted exponent below this is zero, unless its error says
            that it differs from zero.
        recurrence: largest distance of what recurs, relative to the size of the orbit.
        digits: decimal digits to which weighted averages on a torus agree.
        zero_one: K of the 0-1 test above which an orbit is irregular.
        broadband: median over mean spectral power above which it is irregular.
        lines: the same, below which there is no floor at all.
        positive_sigmas: standard errors that a positive exponent exceeds.
        clear_sigmas: standard errors beyond which it needs no other witness.
    """

    zero: NotNegative = 2e-5
    recurrence: NotNegative = 1e-9
    digits: float = 5.0
    zero_one: float = 0.5
    broadband: NotNegative = 1e-5
    lines: NotNegative = 1e-12
    positive_sigmas: NotNegative = 3.0
    clear_sigmas: NotNegative = 10.0


@dataclass(frozen=True)
class Plan(Options):
    """Numerical choices of a diagram.

    A section holds the displayed coordinate `value` where the coordinate `on` is within
    `section_tolerance` of `level`; or, where that is None, where it crosses the level
    from below, interpolated between two steps.

    Attributes:
        transient (step): steps before anything is kept or averaged.
        steps (step): steps that are kept or averaged.
        exponents: Lyapunov exponents that are computed, the largest first; 0: neither
            exponents nor phases.
        max_doublings: how often the window of an undecided point is doubled at most.
        section_tolerance: half width of the section.
        section_samples: samples on the section that are kept.
        strobe_samples: samples at the clock's phase 0 that are kept.
        tail (step): recorded after a window, for the 0-1 test and the spectrum.
        criteria: thresholds of the verdict.
        value: number of the displayed coordinate.
        on: number of the coordinate of the section, the last one where there are fewer.
        level: value of that coordinate on the section.
        compiler: makes the steps: "xla"; "llvm", which is faster for maps of a few
            coordinates on a CPU and needs llvmlite; or "auto": llvm where it can take
            the system, as a run finds when it begins. Last digits differ.
        entropy_production: whether entropy production is averaged beside exponents,
            over a quarter of `steps`, where a system defines it; takes 4 to 8 % longer.
    """

    transient: WholeNumber = 20_000
    steps: Count = 20_000
    exponents: WholeNumber = 4
    max_doublings: Annotated[int, Ge(0), Le(16)] = 4
    section_tolerance: Positive | None = 1e-3
    section_samples: Count = 128
    strobe_samples: Count = 64
    tail: WholeNumber = 3072
    criteria: Criteria = Criteria()
    value: WholeNumber = 0
    on: WholeNumber = 1
    level: float = 0.0
    compiler: Literal["auto", "xla", "llvm"] = "auto"
    entropy_production: bool = True

    def check(self, dimension: int, turn: int) -> None:
        """Raise `ValueError` for counts that make no sense for this system.

        Args:
            dimension: coordinates of a state.
            turn: steps after which the drive and the layout of a state repeat.

        Raises:
            ValueError: more exponents than coordinates, or too few steps in `tail`.
        """
        if self.tail < 30 * turn:
            raise ValueError(f"tail must be at least {30 * turn}; got {self.tail}.")
        if self.exponents > dimension:
            raise ValueError(
                f"exponents must lie in 0..{dimension}, the dimension of the state; "
                f"got {self.exponents}."
            )


WITHOUT_SECTION = {  # options of a plan whose section no orbit meets
    "on": 0,
    "level": sys.float_info.max,
    "section_samples": 1,
}


@dataclass(frozen=True)
class Confirm(Options):
    """How doubtful points of a diagram are run again.

    Attributes:
        starts: perturbed states from which a doubtful point is run again; 0: none is.
        transients: points are run for longer until at most this share of the chaotic
            points that are not doubtful is expected to be transient.
        horizon (step): steps for which a point is run again at most, in all; 96 times
            transient and steps when left out.
    """

    starts: Annotated[int, Ge(0), Le(1000)] = 4
    transients: Fraction = 0.002
    horizon: Count | None = None


@dataclass(frozen=True)
class Search(Options):
    """Options by which orbits are followed until they settle.

    Attributes:
        horizon (step): for how long an orbit is followed at most.
        transient (step): steps before which no orbit is accepted as regular.
        record: drive periods between two looks; cycles have up to a third of them.
        recurrence: distance of points that are one, relative to the same.
        capture: size of the neighbourhood of a set in which a transient ends, relative
            to 1 + the largest coordinate.
        digits: decimal digits to which the half averages of a regular orbit agree.
        memory: looks that can be computed again.
    """

    horizon: Count = 100_000
    transient: WholeNumber = 0
    record: Annotated[int, Ge(64), MultipleOf(2)] = 1024
    recurrence: Fraction = 1e-9
    capture: Fraction = 1e-3
    digits: float = 5.0
    memory: Annotated[int, Ge(2)] = 16


@dataclass(frozen=True)
class BasinPlan(Options):
    """Options of basins along a parameter: what is stored, how sets are matched.

    Attributes:
        steps (step): window from which the phase of an attractor is found.
        exponents: Lyapunov exponents of an attractor; as many as a state has
            coordinates, 2 at most, when left out.
        points: number of points of an attractor that are kept.
        matching: how attractors of neighbouring values are told to be one: by flow or
            by distance.
        furthest: largest distance of attractors that are one, in units of the points'
            extent.
    """

    steps: Count = 20_000
    exponents: Count | None = None
    points: Annotated[int, Ge(16), Le(512)] = 256
    matching: Literal["flow", "distance"] = "flow"
    furthest: Positive = 0.1


@dataclass(frozen=True)
class Settings(Options):
    """Numerical choices of a continuation.

    Attributes:
        first_step (arclength): first step along a branch.
        smallest_step (arclength): step at which Newton's method gives up.
        largest_step (arclength): largest step along a branch.
        max_points: points of a branch at most.
        tolerance: size of the last Newton correction, relative to 1 + |u|.
        max_iterations: Newton iterations of a step at most.
        bend: largest change of the Jacobian over a step, relative to the largest one
            met.
        bound: size of u beyond which a branch has diverged.
    """

    first_step: Positive = 0.01
    smallest_step: Positive = 1e-8
    largest_step: Positive = 0.1
    max_points: Count = 1000
    tolerance: Positive = 1e-10
    max_iterations: Count = 10
    bend: Positive = 0.5
    bound: Positive = 1e8

    def __post_init__(self):
        super().__post_init__()
        if self.smallest_step > self.largest_step:
            raise ValueError(
                "smallest_step must not exceed largest_step; "
                f"got {self.smallest_step:g} and {self.largest_step:g}."
            )
        if not self.smallest_step <= self.first_step <= self.largest_step:
            raise ValueError(
                "first_step must lie between smallest_step and largest_step, "
                f"{self.smallest_step:g} and {self.largest_step:g}; "
                f"got {self.first_step:g}."
            )
