"""Chaos indicators of the network at three values of beta, and of its finite runs.

For an infinite network the map is known: finite-time exponents and alignment are taken
from its orbit.  For N spins only series are at hand; nolds sees
them with their noise, and the file shows from which N on its numbers mean the orbit's.

    python analysis/chaos_indicators.py --out results
"""

import argparse
from pathlib import Path

import jax
import numpy as np
import xarray as xr

from statmech_attn import dmft, dynamics, montecarlo, storage
from statmech_attn.dynamics import timeseries
from statmech_attn.studies import holds, records


PRESET = "poclopez-pe2"
BETAS = (1.255, 1.27, 1.28)  # torus, cycle of period 28, chaos
SIZES = 3 * 10 ** np.array([3, 5, 7, 9, 11, 13])
DELAYS = dict(embedding=6, lag=1)
HORIZON = 12  # tokens that neighbours are followed
WINDOWS = (16, 64, 256)  # tokens
LEFT_OUT = 500  # tokens of a run before its series


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    jax.config.update("jax_enable_x64", True)
    length, points, runs = (
        (400, 2000, 2)
        if options.smoke
        else (
            options.length,
            options.points,
            options.runs,
        )
    )
    sizes = SIZES[[0, -1]] if options.smoke else SIZES
    study = _study(length, points, runs, sizes)
    output = options.output or options.out / "chaos_indicators.h5"
    if holds(output, study):
        print(f"{output} holds this already")
        return
    storage.check_output(output, study=study, overwrite=options.overwrite)
    started = storage.now()
    dataset = measure(length, points, runs, sizes)
    storage.write(
        output,
        dataset,
        study=study,
        started=started,
        keys=seeds(sizes),
        overwrite=options.overwrite,
    )
    print(f"wrote {output}")


def measure(length: int, points: int, runs: int, sizes) -> xr.Dataset:
    """All indicators, as one labelled data set."""
    file = dmft.load(PRESET)
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(BETAS, file.gamma, file.epsilon)
    start = dmft.from_checkpoint(net, params, file)
    state = dmft.advance(net, params, start, 200_000)
    system = dmft.system(net)
    variables = of_map(system, state, params, points)
    series = finite_series(file, net, params, state, sizes, length, runs)
    orbit = dynamics.orbit(system, state, params, samples=length)[:, :1]
    series = np.concatenate([series, _repeated(orbit, runs)], axis=1)
    variables |= of_series(series)
    spectrum = dynamics.lyapunov_spectrum(
        system,
        state,
        params,
        steps=50 * points // 10,
        exponents=2,
        reorthonormalize_every=4,
    )
    over = ("beta", "exponent")
    variables["lyapunov"] = over, spectrum.exponents.T
    variables["lyapunov_stderr"] = over, spectrum.stderr.T
    return _dataset(variables, sizes)


def of_map(system, state, params, points: int) -> dict:
    """Finite-time exponents and alignment of the mean-field orbits."""
    short = dynamics.finite_time_exponents(
        system, state, params, window=WINDOWS[0], count=points, exponents=1
    )
    histograms = [_density(short.merged(n // WINDOWS[0]).values[:, 0]) for n in WINDOWS]
    centres, density = (np.stack(x) for x in zip(*histograms, strict=True))
    aligned = dynamics.gali(system, state, params, samples=400, every=4)
    over = ("window", "beta", "bin")
    return {
        "finite_time_exponent": (over, centres),
        "density": (over, density),
        "log_gali": (("alignment_time", "beta"), aligned.log_gali[:, 0]),
        "alignment_time": (("alignment_time",), aligned.time),
    }


def _density(values, bins: int = 40):
    """Histograms of (count, beta), as bin centres and densities (beta, bins)."""
    histograms = [np.histogram(x, bins, density=True) for x in np.asarray(values).T]
    return (
        np.stack([(edges[1:] + edges[:-1]) / 2 for _, edges in histograms]),
        np.stack([height for height, _ in histograms]),
    )


def seeds(sizes) -> dict[str, int]:
    """The seed of the runs of every size, the order of magnitude of N."""
    return {f"runs, N = {n}": int(np.log10(n)) for n in sizes}


def finite_series(file, net, params, state, sizes, length: int, runs: int):
    """A_1 of finite runs (beta, size, run, time)."""
    series = []
    for n, seed in zip(sizes, seeds(sizes).values(), strict=True):
        result = montecarlo.simulate(
            net,
            file.patterns,
            params,
            state,
            n_spins=int(n),
            runs=runs,
            steps=LEFT_OUT + length,
            transient=LEFT_OUT,
            stored=runs,
            key=jax.random.key(seed),
        )
        series.append(result.sample.A[LEFT_OUT:, 0])
    return np.stack(series).transpose(2, 0, 3, 1)


def _repeated(own, runs: int):
    """The one series of the infinite network, in the shape of the runs."""
    one = np.asarray(own)[:, 0].T[:, None, None]
    return np.broadcast_to(one, (*one.shape[:2], runs, one.shape[3]))


def of_series(series) -> dict:
    """What nolds says of every series: mean over runs and its standard error."""
    estimators = {
        "lyapunov_rosenstein": lambda x: timeseries.largest_exponent(
            x, horizon=HORIZON, **DELAYS
        ),
        "dimension_series": lambda x: timeseries.correlation_dimension(x, **DELAYS),
        "sample_entropy": timeseries.sample_entropy,
    }
    over = ("beta", "size")
    variables = {}
    for name, estimate in estimators.items():
        one = lambda x: estimate(x).value
        values = np.apply_along_axis(one, -1, series)
        variables[name] = over, values.mean(axis=-1)
        error = values.std(axis=-1, ddof=1) / np.sqrt(values.shape[-1])
        variables[f"{name}_stderr"] = over, error
    return variables


def _dataset(variables: dict, sizes) -> xr.Dataset:
    coordinates = {"beta": np.array(BETAS), "exponent": np.arange(1, 3)}
    time = variables.pop("alignment_time")[1]
    variables |= {
        "n_spins": (("size",), np.append(sizes.astype(float), np.inf)),
        "window_steps": (("window",), np.array(WINDOWS)),
    }
    dataset = records.CHAOS_INDICATORS.labelled(
        variables, coordinates | {"alignment_time": time}
    )
    file = dmft.load(PRESET)
    fixed = {"gamma": file.gamma, "epsilon": file.epsilon}
    of = records.CHAOS_INDICATORS.attributes
    return dataset.assign_coords(
        {name: ((), value, of(name)) for name, value in fixed.items()}
    ).assign_attrs(network=PRESET, context=file.context)


def _study(length: int, points: int, runs: int, sizes) -> str:
    return (
        f'kind = "chaos-indicators"\n\n[network]\npatterns = "{PRESET}"\n\n'
        f"[parameters]\nbeta = {list(BETAS)}\n\n[run]\nlength = {length}\n"
        f"points = {points}\nruns = {runs}\nn_spins = {[int(n) for n in sizes]}\n"
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("results"), help="folder")
    parser.add_argument("--output", type=Path, help="file, if not chaos_indicators.h5")
    parser.add_argument("--length", type=int, default=2000, help="tokens of a series")
    parser.add_argument("--points", type=int, default=20_000, help="of an orbit")
    parser.add_argument("--runs", type=int, default=5, help="series for every N")
    parser.add_argument("--smoke", action="store_true", help="a run of seconds")
    parser.add_argument("--overwrite", action="store_true")
    return parser


if __name__ == "__main__":
    main()
