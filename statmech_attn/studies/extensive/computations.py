"""Studies of patterns growing with N: theory, simulation and capacity."""

from typing import Any

import jax

from statmech_attn import montecarlo
from statmech_attn.dmft import extensive
from statmech_attn.scan import Scan
from statmech_attn.studies.extensive.tables import (
    CapacityStudy,
    EnsembleSpec,
    ExtensiveSimulationStudy,
    ExtensiveStudy,
    PAIRS,
)
from statmech_attn.studies.network import models


def order_parameters(study: ExtensiveStudy) -> extensive.OrderParameters:
    """The order parameters that a study of the theory asks for."""
    model, run = models.model(study.network), study.run
    return extensive.OrderParameters(
        model.net,
        ensemble(study.ensemble),
        run.recall,
        **values(study.parameters, model),
        key=jax.random.key(run.seed),
    )


def samples(study: ExtensiveSimulationStudy) -> montecarlo.ExtensiveSamples:
    """The networks of N spins that a study asks for."""
    model, run = models.model(study.network), study.run
    return montecarlo.ExtensiveSamples(
        model.net,
        model.patterns,
        ensemble(study.ensemble),
        run.recall,
        n_spins=run.n_spins,
        **values(study.parameters, model),
        key=jax.random.key(run.seed),
    )


def capacities(study: CapacityStudy) -> Scan:
    """The ends of retrieval that a study asks for."""
    model, run = models.model(study.network), study.run
    return extensive.capacities(
        model.net,
        model.patterns,
        ensemble(study.ensemble),
        run.retrieval,
        **values(study.parameters, model),
        contexts=run.contexts,
    )


def values(table: Any, model: models.Model) -> dict[str, Any]:
    """Numbers and axes of the parameters of a study, in the order of its table."""
    grid = models.grid(models.defaults(dict(table), model.file), dict)
    known = grid.fixed | dict(grid.scanned)
    return {name: known[name] for name in dict(table)}


def ensemble(spec: EnsembleSpec) -> extensive.Ensemble:
    """The ensemble of a study."""
    if spec.patterns == "correlated":
        return extensive.correlated(**{name: getattr(spec, name) for name in PAIRS})
    return {
        "cycle": extensive.cycle,
        "identical": extensive.identical,
        "independent": extensive.independent,
    }[spec.patterns]()
