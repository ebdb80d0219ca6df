"""Monte Carlo studies: simulations of N spins for several N and beta."""

import jax
import numpy as np
import xarray as xr

from statmech_attn import dmft
from statmech_attn.comparison import network_digest
from statmech_attn.montecarlo import class_counts, monte_carlo_dataset, simulate
from statmech_attn.reporting import Reporter
from statmech_attn.studies import build
from statmech_attn.studies.dmft_tables import MonteCarloStudy


def run(study: MonteCarloStudy, report: Reporter) -> xr.Dataset:
    """Simulate every N at every beta from the study's start."""
    made = build.model(study.network)
    axes, options = build.axes(study.parameters, made.file), study.run
    params = build.only_beta(axes, "monte-carlo").points()
    sizes = sorted(set(options.n_spins))
    for n_spins in sizes:
        class_counts(made.patterns, n_spins)
    state = build.start(options, made, params)
    state = dmft.advance(made.net, params, state, options.mean_field_transient)
    key = jax.random.key(options.seed)
    cost = np.array(sizes if options.method == "spins" else [1] * len(sizes), float)
    points = params.beta.size * len(sizes)
    report.begin("monte-carlo", points, points)
    simulations = []
    for index, n_spins in enumerate(sizes):
        simulations.append(
            simulate(
                made.net,
                made.patterns,
                params,
                state,
                n_spins=n_spins,
                runs=options.runs,
                steps=options.steps,
                key=jax.random.fold_in(key, index),
                method=options.method,
                transient=options.transient,
                stored=options.stored,
            )  # fmt: skip
        )
        report.advance(points * cost[index] / cost.sum())
    report.finish()
    dataset = monte_carlo_dataset(
        simulations, axes.values[0],
        attrs={
            "network": network_digest(made.net),
            "start": build.describe_start(options, made),
            "context": made.net.context,
        },
    )  # fmt: skip
    return build.with_fixed(dataset, axes)
