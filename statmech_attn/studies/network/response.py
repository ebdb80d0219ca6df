"""Response studies of a network: susceptibilities and spectra along beta."""

from functools import partial

import numpy as np

from statmech_attn.dmft import Parameters, Responses, State
from statmech_attn.studies.network import models
from statmech_attn.studies.network.tables import ResponseStudy


def work(study: ResponseStudy) -> Responses:
    """The points that a study asks for."""
    model, run = models.model(study.network), study.run
    axes = models.only_beta(models.axes(study.parameters, model.file), "response")
    return Responses(
        model.net,
        axes.fixed | axes.scanned,
        partial(_start, study, model),
        frequencies=models.numbers(run.frequencies),
        about={"start": models.describe_start(run, model)},
        field=run.field,
        pattern=run.pattern,
        transient=run.transient,
        longest=run.longest,
    )


def _start(study: ResponseStudy, model: models.Model, params: Parameters) -> State:
    numbers = np.zeros(params.beta.shape, int)
    return models.starts(study.run, model, params, numbers)
