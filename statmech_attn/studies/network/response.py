"""Response studies of a network: susceptibilities and spectra along beta."""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import jax
import numpy as np

from statmech_attn import dmft
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import FAILURE, over, Scan
from statmech_attn.studies.network import models
from statmech_attn.studies.network.tables import ResponseStudy


EACH = "beta frequency observable pattern"
VARIABLES = Variables(
    Variable("susceptibility_real", EACH, "susceptibility, real part", "1", "Re χ"),
    Variable("susceptibility_imag", EACH, "its imaginary part", "1", "Im χ"),
    Variable("spectrum", EACH, "spectrum of the noise, times N", "1", "N S", group=""),
    Variable("temperature", EACH, "effective temperature", "1", "T_eff"),
    Variable("period", "beta", "period of the orbit", "token", "p"),
    Variable("multiplier", "beta", "largest modulus of a multiplier", "1", "|μ|"),
    Variable("frequency", "frequency", "angular frequency", "rad / token", "ω"),
    Variable("observable", "observable", "observable", "1", flags=dmft.OBSERVABLES),
    Variable("pattern", "pattern", "pattern", "1", "a"),
    FAILURE,
    dmft.PARAMETERS,
)  # fmt: skip


def work(study: ResponseStudy) -> Scan:
    """The points that a study asks for."""
    model, run = models.model(study.network), study.run
    axes = models.only_beta(models.axes(study.parameters, model.file), "response")
    net, frequencies = model.net, models.numbers(run.frequencies)
    how = run.model_dump(include={"field", "pattern", "transient", "longest"})
    respond = partial(dmft.response, net, frequencies=frequencies, **how)
    return over(
        partial(_row, respond=respond, start=partial(models.starts, run, model)),
        axes.scanned | axes.fixed,
        variables=VARIABLES,
        numbers=["spectrum"],
        coordinates={
            "frequency": np.asarray(frequencies, float),
            "observable": np.arange(len(dmft.OBSERVABLES), dtype=np.int8),
            "pattern": np.arange(1, net.n_patterns + 1),
        },
        kind="response",
        about=dmft.network_attributes(net)
        | {"field": run.field, "field_pattern": run.pattern + 1}
        | {"start": models.describe_start(run, model)},
    )


def _row(
    point: Mapping[str, float],
    respond: Callable[..., dmft.Response],
    start: Callable[..., dmft.State],
) -> dict[str, Any]:
    params = dmft.parameters(**{n: np.array([x]) for n, x in point.items()})
    state = start(params, np.zeros(1, int))
    first = lambda x: x[..., 0] if np.ndim(x) else x
    result = respond(*jax.tree.map(first, (params, state)))
    names = "spectrum", "temperature", "period", "multiplier"
    return {
        "susceptibility_real": np.real(result.susceptibility),
        "susceptibility_imag": np.imag(result.susceptibility),
        **{name: getattr(result, name) for name in names},
    }
