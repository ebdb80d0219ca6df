"""Running Lyapunov averages and phases of the orbits of a trajectory file.

How long must exponents be averaged before their signs can be read, and in which phase
is each orbit?  Every orbit is continued from its last attention window, so that the
answers hold for the very orbits that the trajectory figures show:

    statmech-attn run analysis/trajectories.toml --output trajectories.h5
    python analysis/running_lyapunov.py trajectories.h5 --out results

Without a file the trajectories of analysis/trajectories.toml are computed first.
"""

import argparse
import tomllib
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

from statmech_attn import dmft, dynamics, storage, studies
from statmech_attn.dynamics.diagrams import Plan, Points, run, Scan
from statmech_attn.studies import holds, produce, records
from statmech_attn.studies.network import models


HERE = Path(__file__).resolve().parent
SMOKE = ("parameters.beta=[1.27, 1.4]", "run.transient=2000", "run.steps=400")
EXPONENTS = 4  # leading ones, stored and used to tell the phase


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    steps, blocks = (4000, 16) if options.smoke else (options.steps, options.blocks)
    file = options.file
    if file is None:
        file = options.out / "trajectories.h5"
        settings = SMOKE if options.smoke else ()
        produce(HERE / "trajectories.toml", file, settings, overwrite=options.overwrite)
    study = _study(file, steps, blocks, options.max_doublings)
    output = options.output or options.out / "running_lyapunov.h5"
    if holds(output, study):
        print(f"{output} holds this already")
        return
    storage.check_output(output, study=study, overwrite=options.overwrite)
    started = storage.now()
    dataset = running(storage.read(file), steps, blocks, options.max_doublings)
    storage.write(
        output, dataset, study=study, started=started, overwrite=options.overwrite
    )
    print(f"wrote {output}")


def running(
    trajectories: xr.Dataset, steps: int, blocks: int, max_doublings: int
) -> xr.Dataset:
    """Exponents by block and phases of the orbits that a trajectory file ends on."""
    study = studies.parse(tomllib.loads(trajectories.attrs["study"]))
    model = models.model(study.network)
    axes = models.axes(study.parameters, model.file)
    params = axes.points()
    state = _end(trajectories, study, model, params)
    spectrum = dynamics.lyapunov_spectrum(
        dmft.system(model.net),
        state,
        params,
        steps=steps,
        blocks=blocks,
        exponents=EXPONENTS,
        reorthonormalize_every=4,
    )
    system = dmft.system(model.net, float(jnp.max(params.epsilon)))
    plan = Plan(0, steps, EXPONENTS, max_doublings, compiler="xla")
    points = Points(params, state)
    verdicts = run(Scan(system, plan, points), points).verdicts
    dataset = _dataset(spectrum, verdicts, axes.values[0])
    kept = {k: trajectories.attrs[k] for k in ("network", "context", "start")}
    attributes = dmft.PARAMETERS.attributes
    fixed = {name: ((), x, attributes(name)) for name, x in axes.fixed.items()}
    return dataset.assign_attrs(kept).assign_coords(fixed)


def _end(trajectories: xr.Dataset, study, model, params) -> dmft.State:
    """State at the end of every orbit, from its last attention window."""
    context, options = model.net.context, study.run
    if trajectories.sizes["time"] < context:
        raise ValueError(f"trajectories must hold at least {context} tokens.")
    attention = trajectories.A.transpose("time", "pattern", "beta").values
    clock = int(models.start(options, model, params).clock)
    position = (clock + options.transient + options.steps) % context
    return dmft.from_window(model.net, params, attention[: -context - 1 : -1], position)


def _dataset(spectrum, verdicts, beta) -> xr.Dataset:
    over = ("beta", "exponent")
    of_blocks = lambda x: np.moveaxis(np.asarray(x), 2, 0)
    dataset = records.RUNNING_LYAPUNOV.labelled(
        {
            "lyapunov": (over, spectrum.exponents.T),
            "lyapunov_weighted": (over, spectrum.weighted.T),
            "lyapunov_stderr": (over, spectrum.stderr.T),
            "n_resolved": (("beta",), spectrum.resolved),
            "phase": (("beta",), verdicts.phase.astype(np.int8)),
            "period": (("beta",), verdicts.period),
            "reasons": (("beta",), verdicts.reasons.astype(np.int32)),
        },
        {"beta": beta, "exponent": np.arange(1, EXPONENTS + 1)},
    )
    length = int(spectrum.steps) // spectrum.blocks.shape[0]
    ends = length * np.arange(1, spectrum.blocks.shape[0] + 1)
    values = {"lyapunov_running": spectrum.running, "lyapunov_blocks": spectrum.blocks}
    dims = ("beta", "block", "exponent")
    attributes = records.RUNNING_LYAPUNOV.attributes
    for name, rows in values.items():
        dataset[name] = (dims, of_blocks(rows), attributes(name))
    return dataset.assign_coords(block_end=("block", ends, attributes("block_end")))


def _study(file: Path, steps: int, blocks: int, max_doublings: int) -> str:
    """What was computed from what, as TOML."""
    digest = storage.study_digest(storage.info(file).study)
    return (
        'kind = "running-lyapunov"\n\n[trajectories]\n'
        f'file = "{file.name}"\nstudy_digest = "{digest}"\n\n'
        f"[run]\nsteps = {steps}\nblocks = {blocks}\nexponents = {EXPONENTS}\n"
        f"max_doublings = {max_doublings}\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path, nargs="?", help="trajectory file (HDF5)")
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder")
    parser.add_argument("--output", type=Path, help="file, if not running_lyapunov.h5")
    parser.add_argument("--steps", type=int, default=100_000, help="tokens averaged")
    parser.add_argument("--blocks", type=int, default=400, help="a multiple of 4")
    parser.add_argument(
        "--max-doublings", type=int, default=4, help="of undecided orbits"
    )
    parser.add_argument("--smoke", action="store_true", help="a run of seconds")
    parser.add_argument("--overwrite", action="store_true")
    return parser


if __name__ == "__main__":
    main()
