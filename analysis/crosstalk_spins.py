"""Do spins of the published network move where the theory with crosstalk says so?

The published network carries alpha N further patterns, as in `crosstalk.py`.  From its
first pattern the script runs samples of N spins and the theory for as many tokens, and
compares by how much the attention vector moves,

    motion^2 = mean over patterns and places of the clock of var_t A_a(t),

over the tokens of a place of the clock after the first ones.  At rest it is zero in the
theory, and of order 1/N for spins.

    python analysis/crosstalk_spins.py --output crosstalk_spins.h5 [--sizes 3000 12000]

prints a table, and writes a file that plotting.phases_against_load(phases, spins)
draws.
"""

import argparse
import itertools
from pathlib import Path

import jax
import numpy as np

import statmech_attn
from statmech_attn import dmft, dynamics, montecarlo, storage
from statmech_attn.dmft import extensive
from statmech_attn.labels import Variable, Variables
from statmech_attn.studies import build


PRESET = "poclopez-pe2"
BETAS = (1.255, 1.26451, 1.266, 1.27, 1.28, 1.4)
FIRST = 150  # tokens that are left out
MEMORY = 8  # tokens, as in crosstalk.py
LABELS = Variables(
    Variable("motion", "", "spread in time of the attention vector", symbol="σ_A"),
    Variable(
        "motion_spins",
        "n_spins",
        "the same of spins: mean over samples",
        symbol="σ_A",
        parts="_stderr",
    ),
    Variable("alpha", "", "further patterns per spin", symbol="α"),
    Variable("n_spins", "n_spins", "number of spins", symbol="N"),
    build.PARAMETERS,
)


def motion(A: np.ndarray, period: int) -> np.ndarray:
    """Spread of A (..., time, M) at equal places of the clock."""
    turns = A[..., : A.shape[-2] // period * period, :]
    turns = turns.reshape(*A.shape[:-2], -1, period, A.shape[-1])
    return np.sqrt(turns.var(-3, ddof=1).mean((-2, -1)))


class Published:
    """The published network, its parameters, and its spins."""

    def __init__(self) -> None:
        file = dmft.load(PRESET)
        self.patterns, self.period = file.patterns, file.context
        self.net = dmft.network(file.patterns, context=file.context)
        self.fixed = {"gamma": file.gamma, "epsilon": file.epsilon}
        self.kinds = extensive.independent()

    def theory(self, beta: float, alpha: float, tokens: int) -> np.ndarray:
        """A of the tokens after the first, (time, M)."""
        given = {"alpha": alpha, "beta": beta} | self.fixed
        start = extensive.system_start(self.net, self.kinds, given, memory=MEMORY)
        loaded = extensive.system(self.net, self.kinds)
        counts = {"samples": tokens - FIRST, "transient": FIRST - MEMORY}
        return np.asarray(dynamics.orbit(loaded, start, given, **counts))

    def spins(self, beta: float, alpha: float, n_spins: int, options) -> np.ndarray:
        """A of the tokens after the first, (samples, time, M)."""
        given = {"alpha": alpha, "beta": beta} | self.fixed
        result = montecarlo.simulate_extensive(
            extensive.loaded_network(self.net, self.kinds, **given),
            self.patterns,
            self.net.output[0],
            n_spins=n_spins,
            samples=options.samples,
            steps=options.tokens - 1,
            key=jax.random.fold_in(jax.random.key(options.seed), n_spins),
        )
        return np.asarray(result.samples.A[:, FIRST:])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("crosstalk_spins.h5"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[3000, 12000])
    parser.add_argument("--loads", type=float, nargs="+", default=[0.01, 0.05, 0.1])
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    statmech_attn.setup()
    network = Published()
    of_theory, of_spins = [], []
    print(f"alpha | beta | theory | N = {options.sizes}")
    for alpha, beta in itertools.product(options.loads, BETAS):
        value = motion(network.theory(beta, alpha, options.tokens), network.period)
        samples = np.array(
            [
                motion(network.spins(beta, alpha, N, options), network.period)
                for N in options.sizes
            ]
        )
        mean, error = samples.mean(1), samples.std(1, ddof=1) / samples.shape[1] ** 0.5
        words = " | ".join(f"{m:.4f} ± {s:.4f}" for m, s in zip(mean, error))
        print(f"{alpha:g} | {beta:g} | {value:.4f} | {words}", flush=True)
        of_theory.append(value)
        of_spins.append((mean, error))
    dims, shape = ("alpha", "beta"), (len(options.loads), len(BETAS))
    mean, error = np.swapaxes(of_spins, 0, 1).reshape(2, *shape, -1)
    coordinates = {
        "alpha": np.array(options.loads),
        "beta": np.array(BETAS),
        "n_spins": np.array(options.sizes),
    }
    dataset = LABELS.labelled(
        {
            "motion": (dims, np.reshape(of_theory, shape)),
            "motion_spins": ((*dims, "n_spins"), mean),
            "motion_spins_stderr": ((*dims, "n_spins"), error),
        },
        coordinates,
    ).assign_attrs(
        kind="crosstalk-spins", samples=options.samples, tokens=options.tokens
    )
    chosen = {k: v for k, v in vars(options).items() if k != "output"}
    rows = (f"{name} = {value}\n" for name, value in chosen.items())
    study = f'kind = "{dataset.attrs["kind"]}"\n' + "".join(rows)
    storage.write(options.output, dataset, study=study)


if __name__ == "__main__":
    main()
