"""Which comparison two files ask for, by their kinds."""

import xarray as xr

from statmech_attn.comparison import posteriors, trajectories


def compare(theory: xr.Dataset, *simulations: xr.Dataset) -> xr.Dataset:
    """Compare the file of a theory with those of its simulations.

    Args:
        theory: a trajectory, or order parameters at the saddle point.
        simulations: one Monte Carlo file, or one or more posterior files.

    Raises:
        ValueError: files that do not belong together, in one line.
    """
    learning = theory.attrs.get("kind") == "order-parameter"
    if learning and simulations:
        return posteriors.compare(theory, simulations)
    if learning or len(simulations) != 1:
        raise ValueError(
            "a trajectory is compared with one Monte Carlo file, order parameters "
            f"with one or more posterior files; got a theory of kind "
            f"{theory.attrs.get('kind')!r} and {len(simulations)} files."
        )
    return trajectories.compare(theory, simulations[0])
