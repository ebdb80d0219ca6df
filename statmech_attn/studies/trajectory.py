"""Trajectories of the mean-field map, with the linear-noise spread."""

import numpy as np
import xarray as xr

from statmech_attn import dmft
from statmech_attn.comparison import network_digest
from statmech_attn.dmft.fluctuations import linear_noise
from statmech_attn.labels import labelled
from statmech_attn.reporting import Reporter, size
from statmech_attn.studies import build
from statmech_attn.studies.dmft_tables import TrajectoryStudy


LARGEST = 4 * 2**30  # bytes kept in memory


def run(study: TrajectoryStudy, report: Reporter) -> xr.Dataset:
    """Iterate every beta and keep `steps` tokens after the transient."""
    made = build.model(study.network)
    axes = build.only_beta(build.axes(study.parameters, made.file), "trajectory")
    params, options = axes.points(), study.run
    needed = 8 * options.steps * params.beta.size * made.net.n_patterns * 10
    if needed > LARGEST:
        raise ValueError(
            f"run.steps: these trajectories need {size(needed)} of memory, more than "
            f"{size(LARGEST)}; keep fewer steps or beta, or run a bifurcation study."
        )
    report.begin("trajectory", params.beta.size, params.beta.size)
    start = build.start(options, made, params)
    start = dmft.advance(made.net, params, start, options.transient)
    _, seen = dmft.trajectory(made.net, params, start, steps=options.steps)
    found = {name: getattr(seen, name) for name in ("A", "m_o_se", "m_v", "m_q", "m_k")}
    if options.noise:
        band = linear_noise(
            made.net, made.patterns, params, start, steps=options.steps
        ).std
        found |= {"A_noise_std": band.A, "m_o_se_noise_std": band.m_o_se}
    dims = ("beta", "time", "pattern")
    variables = {n: (dims, np.moveaxis(np.asarray(x), 2, 0)) for n, x in found.items()}
    coordinates = {
        "beta": axes.values[0],
        "time": np.arange(options.steps),
        "pattern": np.arange(1, made.net.n_patterns + 1),
    }
    report.advance(params.beta.size)
    report.finish()
    dataset = labelled(variables, coordinates).assign_attrs(
        kind="trajectory", network=network_digest(made.net), context=made.net.context,
        start=build.describe_start(options, made),
    )  # fmt: skip
    return build.with_fixed(dataset, axes)
