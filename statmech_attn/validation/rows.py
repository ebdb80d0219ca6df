"""One reference system: what is measured, what it must be, and the verdict.

A row measures one or several quantities q_i of one system and knows their references:

    statistical     z_i = (q_i - reference_i) / hypot(error_i, reference error_i)
    deterministic   |q_i - reference_i| <= tolerance, derived where the row is made
    of both kinds   |q_i - reference_i| <= systematic_i + reference error_i + z error_i
    words           equal

A systematic error is a bound, which chance does not stretch.  The threshold on |z|
accounts for the number of statistical comparisons in the table and, by Student's law,
for the number of blocks that the errors were estimated from.
"""

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from statmech_attn.statistics import threshold


SPROTT = "Sprott 2003, app. A"


class Measurement(NamedTuple):
    """Values of a row's quantities; `blocks` behind the errors, None: no statistics.

    Attributes:
        values: of the quantities of a row.
        errors: their standard errors; none for deterministic values.
        blocks: number of blocks behind the errors.
        systematic: bounds beside the errors.
    """

    values: Sequence[float] | Sequence[str]
    errors: Sequence[float] | None = None
    blocks: int | None = None
    systematic: Sequence[float] | None = None


class Row(NamedTuple):
    """A reference system; one entry of the registry.

    Attributes:
        name: of the system, as `validate --only` takes it.
        quantities: names of what is measured.
        measure: the measurement.
        reference: published or exact values of the quantities.
        source: where they are from.
        error: of the reference: a unit of its last digit, or as published.
        tolerance: allowed deviation of a deterministic quantity.
        unit: of the quantities.

    Example:
        >>> row = Row("rounding", ("1/3 + 2/3",), lambda: Measurement((1/3 + 2/3,)),
        ...     (1.0,), "arithmetic", tolerance=1e-15)
        >>> judge([run_row(row)])[0].verdict
        'ok'
    """

    name: str
    quantities: tuple[str, ...]
    measure: Callable[[], Measurement]
    reference: Sequence[float] | Sequence[str]
    source: str
    error: float = 0.0
    tolerance: float | None = None
    unit: str = "nat/step"


class Result(NamedTuple):
    """A measured row and the seconds it took.

    Attributes:
        row: the reference system.
        measured: what was measured.
        seconds: that it took.
        failure: the error that ended the measurement; empty without one.
    """

    row: Row
    measured: Measurement
    seconds: float
    failure: str = ""


class Comparison(NamedTuple):
    """One line of the table.

    Attributes:
        name: of the system.
        quantity: what was measured.
        unit: of the values.
        value: measured value.
        error: its standard error; NaN where there is no statistics.
        reference: published or exact value.
        source: where it is from.
        deviation: in standard errors, or over the tolerance if deterministic.
        allowed: largest deviation that passes.
        verdict: "ok" or "MISS".
        seconds: that the whole row took.
        failure: why there is no value; empty otherwise.
    """

    name: str
    quantity: str
    unit: str
    value: float | str
    error: float
    reference: float | str
    source: str
    deviation: float
    allowed: float
    verdict: str
    seconds: float
    failure: str = ""


def run_row(row: Row) -> Result:
    """Measure one row; one that fails has no values, and says why.

    Args:
        row: one of `ROWS`, or a row of your own.

    Returns:
        The measured values, or the reason why there are none.

    Example:
        >>> row = Row("rounding", ("1/3 + 2/3",), lambda: Measurement((1/3 + 2/3,)),
        ...     (1.0,), "arithmetic", tolerance=1e-15)
        >>> run_row(row).measured.values
        (1.0,)
    """
    start = time.perf_counter()
    try:
        measured, failure = _measured(row), ""
    except Exception as error:
        first = (str(error).splitlines() or [""])[0]
        measured = Measurement([float("nan")] * len(row.reference))
        failure = f"{type(error).__name__}: {first}"
    return Result(row, measured, time.perf_counter() - start, failure)


def _measured(row: Row) -> Measurement:
    measured = row.measure()
    counts = {len(measured.values), len(row.quantities), len(row.reference)}
    if len(counts) > 1:
        raise ValueError(
            "quantities, references and values must be as many; got "
            f"{len(row.quantities)}, {len(row.reference)} and {len(measured.values)}."
        )
    return measured


def judge(results: Sequence[Result]) -> list[Comparison]:
    """Compare all results, the threshold set from their number.

    Args:
        results: of `run_row`.

    Returns:
        For every value its reference, its deviation, what is allowed and the verdict.

    Example:
        >>> row = Row("rounding", ("1/3 + 2/3",), lambda: Measurement((1/3 + 2/3,)),
        ...     (1.0,), "arithmetic", tolerance=1e-15)
        >>> judge([run_row(row)])[0].verdict
        'ok'
    """
    statistical = sum(
        len(r.row.reference) for r in results if r.measured.errors is not None
    )
    return [
        _compare(result, i, statistical)
        for result in results
        for i in range(len(result.row.reference))
    ]


def _compare(result: Result, i: int, statistical: int) -> Comparison:
    row, measured = result.row, result.measured
    value, reference = measured.values[i], row.reference[i]
    error, allowed = np.nan, 1.0
    if isinstance(value, str) or isinstance(reference, str):
        deviation = 0.0 if value == reference else np.inf
    elif measured.errors is None:
        deviation = _difference(value, reference) / (row.tolerance or 1e-300)
    else:
        error = float(measured.errors[i])
        allowed = threshold(statistical, measured.blocks)
        scale = np.hypot(error, row.error)
        if measured.systematic is not None:
            scale = measured.systematic[i] + row.error + allowed * error
            allowed = 1.0
        deviation = _difference(value, reference) / scale if scale > 0 else np.inf
    return Comparison(
        name=row.name,
        quantity=row.quantities[i],
        unit=row.unit,
        value=value,
        error=error,
        reference=reference,
        source=row.source,
        deviation=float(deviation),
        allowed=allowed,
        verdict="ok" if abs(deviation) <= allowed else "MISS",
        seconds=result.seconds,
        failure=result.failure,
    )


def _difference(value: float, reference: float) -> float:
    """value - reference, 0 for two equal infinities; NaN never passes."""
    return 0.0 if value == reference else float(value) - float(reference)
