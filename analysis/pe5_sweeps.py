"""Attractors followed up and down in beta, then measured at all values at once.

A study with start = "continue-up" measures the attractor at one beta before it goes on
to the next.  Here only the transients go on from one beta to the next, both ways side
by side; exponents, phases and samples of all beta are then computed together, which is
some twenty times faster for a context of 32 tokens.  In the file start 1 was followed
upward and start 2 downward:

    python analysis/pe5_sweeps.py analysis/pe5_torus.toml --output pe5_torus.h5
"""

import argparse
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from statmech_attn import scan, storage, studies
from statmech_attn.dynamics import diagrams
from statmech_attn.studies import holds


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    study, text = studies.load(options.study, options.set)
    text += "\n# Followed up (start 1) and down (start 2) by analysis/pe5_sweeps.py.\n"
    if holds(options.output, text):
        print(f"{options.output} holds this already")
        return
    storage.check_output(options.output, study=text, overwrite=options.overwrite)
    started = storage.now()
    storage.write(
        options.output,
        swept(studies.work(study).diagram),
        study=text,
        started=started,
        overwrite=options.overwrite,
    )
    print(f"wrote {options.output}")


def swept(diagram: diagrams.Diagram) -> xr.Dataset:
    """The diagram with two starts at every value: followed upward and downward."""
    upward = np.argsort(diagram.axes.values[0])
    way = np.stack([upward, upward[::-1]], axis=1)
    states, turn = followed(diagram, way), np.argsort(way, axis=0)
    for shared in jax.tree.leaves(states):
        if shared.ndim == 1 and (shared != shared[0]).any():
            raise SystemExit("run.transient: must be a multiple of the context.")
    index = {value: i for i, value in enumerate(diagram.axes.values[0].tolist())}

    def start(params, numbers):
        points = [index[value] for value in params.beta.tolist()]
        lane = lambda x: jnp.moveaxis(x[turn[points, numbers], ..., numbers], 0, -1)
        return jax.tree.map(lambda x: lane(x) if x.ndim > 1 else x[0], states)

    dataset = scan.in_memory(
        diagrams.diagram_work(diagram._replace(starts=2, start=start))
    )
    words = f"followed up and down, {diagram.plan.transient} tokens at each beta"
    return dataset.assign_attrs(start=words)


def followed(diagram: diagrams.Diagram, way: np.ndarray):
    """States after the transient at every turn, each from the turn before.

    Args:
        way: (turns, ways) which value of the parameter each has.

    Returns:
        the states, turns first.
    """
    rows = [diagram.axes.at(turn[:, None]) for turn in way]
    params = jax.tree.map(lambda *leaves: np.stack(leaves), *rows)

    @jax.jit
    def follow(state, params):
        def onward(state, at):
            step = lambda _, state: diagram.system.steps(state, at)
            state = jax.lax.fori_loop(0, diagram.plan.transient, step, state)
            return state, state

        return jax.lax.scan(onward, state, params)[1]

    return follow(diagram.start(rows[0], np.arange(2)), params)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("study", type=Path, help="bifurcation study over one parameter")
    parser.add_argument("--output", type=Path, required=True, help="file (HDF5)")
    parser.add_argument(
        "--set", action="append", default=[], help="KEY=VALUE of the study"
    )
    parser.add_argument("--overwrite", action="store_true")
    return parser


if __name__ == "__main__":
    main()
