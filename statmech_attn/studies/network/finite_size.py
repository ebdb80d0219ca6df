"""Finite-size studies of a network: spins at a bifurcation that continuation finds."""

from typing import get_args

import jax

from statmech_attn.dmft import critical_fluctuations, CriticalFluctuations
from statmech_attn.dynamics import continuation
from statmech_attn.montecarlo import CriticalSampling, FiniteSizes
from statmech_attn.studies.network import models
from statmech_attn.studies.network.continuation import diagram, network_source
from statmech_attn.studies.network.continuation_table import (
    Bifurcation,
    FiniteSizeStudy,
)
from statmech_attn.studies.tables import chosen


def work(study: FiniteSizeStudy) -> FiniteSizes:
    """The points that a study asks for, around the bifurcation that it finds."""
    source, run = network_source(study), study.run
    model = models.model(study.network)
    return FiniteSizes(
        jax.random.key(run.seed),
        model.net,
        model.patterns,
        _law(study, diagram(study, source).follow()),
        chosen(CriticalSampling, run),
        gamma=source.values["gamma"],
        epsilon=source.values["epsilon"],
        n_spins=run.n_spins,
        distances=run.distances,
        about={"start": source.about["start"]},
    )


def _law(
    study: FiniteSizeStudy, followed: continuation.BifurcationDiagram
) -> CriticalFluctuations:
    """The law at the bifurcation that is asked for."""
    kind, number = study.run.bifurcation, study.run.number
    known = [kind] if kind else get_args(Bifurcation)
    places = [
        (branch.problem, special)
        for branch in followed.branches
        for special in branch.special
        if special.kind in known
    ]
    if len(places) < number:
        bounds = study.parameters.beta
        others = ", ".join(f"{s.kind} at {s.value:.6g}" for s in followed.special)
        raise ValueError(
            f"run.bifurcation: no {kind or 'bifurcation'} of number {number} on the "
            f"branch from beta = {bounds.start:g} to {bounds.stop:g}; there is "
            f"{others or 'none at all'}."
        )
    return critical_fluctuations(*places[number - 1])
