"""What a scan holds of one of its points, as the page shows it."""

from typing import Any

import numpy as np
import xarray as xr

from statmech_attn.dynamics import diagrams, PHASES, REASONS
from statmech_attn.explore.result_files.files import finite, labelled
from statmech_attn.labels import rate, unit_of, with_count
from statmech_attn.presentation import quantity


OF_SAMPLES = ("section", "strobe")
IN_MEMORY = 200_000  # points whose verdicts are read at once


def verdict(part: xr.Dataset, names: tuple[str, ...]) -> dict[str, Any]:
    """The verdict of a point, in a sentence and in numbers."""
    part = part.drop_vars([n for n in OF_SAMPLES if n in part]).compute()
    values = {name: float(part[name].values.ravel()[0]) for name in names}
    answer: dict[str, Any] = {
        "values": [
            labelled(part, name) | {"value": value, "text": f"{value:.10g}"}
            for name, value in values.items()
        ]
    }
    if "phase" not in part:
        return answer | {"sentence": "The scan has no exponents and no phases."}
    if "reasons" not in part:  # of a large scan that was thinned out
        phase = PHASES[int(_first(part).phase)].capitalize()
        return answer | {"sentence": f"{phase}. The file does not say why."}
    sentences = diagrams.explain(part, **values)
    starts = [sentences] if isinstance(sentences, str) else sentences
    point = _first(part)
    failed = "failure" in point and int(point.failure) != 0
    bits = int(point.reasons)
    unit = unit_of(point.period.attrs)
    answer |= {
        "sentence": starts[0],
        "starts": starts[1:],
        "phase": -1 if failed else int(point.phase),
        "words": "not computed" if failed else PHASES[int(point.phase)],
        "period": int(point.period),
        "rows": [],
        "reasons": [text for i, text in enumerate(REASONS) if bits >> i & 1],
    }
    if failed:
        return answer
    exponents = zip(point.lyapunov.values, point.lyapunov_stderr.values, strict=True)
    answer["exponents"] = [
        {"value": finite(x), "error": finite(s), "text": quantity(x, s)}
        for x, s in exponents
    ]
    answer["exponent_unit"] = rate(unit_of(point.lyapunov.attrs))
    answer["rows"] = [
        [words, text]
        for words, text in (
            ("period", with_count(int(point.period), unit) if point.period else ""),
            ("rotation number", diagrams.rotation_text(point)),
            ("entropy production", _production(point)),
            ("0-1 test K", _known(point.zero_one)),
            ("decided over", with_count(int(point.window), unit)),
            ("has held for", with_count(int(point.horizon), unit)),
        )
        if text
    ]
    return answer


def _first(part: xr.Dataset) -> xr.Dataset:
    """The first start of the only point."""
    dims = [d for d in part.phase.dims]
    return part.isel(dict.fromkeys(dims, 0))


def _production(point: xr.Dataset) -> str:
    """Entropy production with its error, where the scan has it."""
    if "entropy_production" not in point:
        return ""
    value, error = point.entropy_production, point.entropy_production_stderr
    return f"{quantity(float(value), float(error))} {unit_of(value.attrs)}"


def _known(value: xr.DataArray) -> str:
    number = float(value)
    return "" if np.isnan(number) else f"{number:.3f}"
