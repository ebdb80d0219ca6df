"""Which comparison two files ask for, by their kinds."""

import xarray as xr

from statmech_attn.comparison import extensive, posteriors, trajectories


def compare(theory: xr.Dataset, *simulations: xr.Dataset) -> xr.Dataset:
    """Compare the file of a theory with those of its simulations.

    Trajectories and simulations that never were in a file need not name their kinds.

    Args:
        theory: a trajectory, patterns growing with N, or order parameters at the
            saddle point.
        simulations: one Monte Carlo file, one simulation of patterns growing with N, or
            one or more posterior files.

    Returns:
        A row of differences, standard errors and verdicts for every point.

    Raises:
        ValueError: files that do not belong together, in one line.

    Example:
        `compare(storage.read("orbit.h5"), storage.read("spins.h5"))`, of a trajectory
        and a simulation with one network, the same parameters and initial condition.
    """
    first, *simulated = (file.attrs.get("kind") for file in (theory, *simulations))
    if first == "order-parameter" and simulated and set(simulated) == {"posterior"}:
        return posteriors.compare(theory, simulations)
    if (first, *simulated) == ("extensive", "extensive-simulation"):
        return extensive.compare(theory, *simulations)
    dynamics = (first or "trajectory", *(kind or "monte-carlo" for kind in simulated))
    if dynamics == ("trajectory", "monte-carlo"):
        return trajectories.compare(theory, *simulations)
    raise ValueError(
        "compare takes a file of kind trajectory and one of kind monte-carlo, one of "
        "kind extensive and one of kind extensive-simulation, or one of kind "
        "order-parameter and one or more of kind posterior; got "
        f"{first} and {', '.join(map(str, simulated)) or 'no other file'}."
    )
