"""Do spins of the published network move where the theory with crosstalk says so?

The published network carries alpha N further patterns, as in `crosstalk.py`.  From its
first pattern the script runs samples of N spins, and compares the attention vectors
A(t) with the theory

- token by token over the first ones: the root mean square difference of a sample, which
  falls like N^{-1/2},
- by how much they move on the attractor, with the variance in time at equal places of
  the clock,

    motion^2 = mean over patterns and places of the clock of var_t A_a(t),

which at rest is zero in the theory, and of order 1/N for spins.

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


PRESET = "poclopez-pe2"
BETAS = (1.255, 1.26451, 1.266, 1.27, 1.28, 1.4)
EARLY = 32  # tokens that are compared one by one
FIRST = 100  # tokens of spins before they count as on the attractor
SETTLING = 4000  # tokens of the theory before, and on, the attractor
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
    Variable(
        "difference",
        "n_spins",
        "root mean square difference of A from the theory, early tokens of a sample",
        symbol="ΔA",
        parts="_stderr",
    ),
    Variable("alpha", "", "further patterns per spin", symbol="α"),
    Variable("n_spins", "n_spins", "number of spins", symbol="N"),
    Variable("beta", "", "inverse temperature of the output", symbol="β"),
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

    def theory(
        self, beta: float, alpha: float, tokens: int, transient: int = 0
    ) -> np.ndarray:
        """A of tokens, (time, M); the first without a transient is number MEMORY."""
        given = {"alpha": alpha, "beta": beta} | self.fixed
        start = extensive.system_start(self.net, self.kinds, given, memory=MEMORY)
        loaded = extensive.system(self.net, self.kinds)
        counts = {"samples": tokens, "transient": transient}
        return np.asarray(dynamics.orbit(loaded, start, given, **counts))

    def spins(self, beta: float, alpha: float, n_spins: int, options) -> np.ndarray:
        """A of all tokens, (samples, time, M)."""
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
        return np.asarray(result.samples.A)


def of_point(network: Published, alpha: float, beta: float, options) -> dict:
    """Motion of theory and spins, and early differences, with standard errors."""
    attractor = network.theory(beta, alpha, SETTLING, transient=SETTLING)
    early = network.theory(beta, alpha, EARLY)
    samples = []
    for n_spins in options.sizes:
        A = network.spins(beta, alpha, n_spins, options)
        deviation = A[:, MEMORY : MEMORY + EARLY] - early
        moves = motion(A[:, FIRST:], network.period)
        samples.append((moves, np.sqrt((deviation**2).mean((1, 2)))))
    spread = np.std(samples, axis=-1, ddof=1)
    mean, error = np.mean(samples, axis=-1), spread / np.sqrt(options.samples)
    point = {
        "motion": motion(attractor, network.period),
        "motion_spins": mean[:, 0],
        "motion_spins_stderr": error[:, 0],
        "difference": mean[:, 1],
        "difference_stderr": error[:, 1],
    }
    words = "  ".join(f"{m:.4f} ± {s:.4f}" for m, s in zip(mean.T.flat, error.T.flat))
    print(f"{alpha:g} | {beta:g} | {point['motion']:.4f} | {words}", flush=True)
    return point


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--output", type=Path, default=Path("crosstalk_spins.h5"))
    parser.add_argument("--sizes", type=int, nargs="+", default=[3000, 12000])
    parser.add_argument("--loads", type=float, nargs="+", default=[0.01, 0.05, 0.1])
    parser.add_argument("--samples", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    statmech_attn.setup()
    network = Published()
    print(f"alpha | beta | motion: theory | N = {options.sizes} | difference: the same")
    points = [
        of_point(network, alpha, beta, options)
        for alpha, beta in itertools.product(options.loads, BETAS)
    ]
    dims, shape = ("alpha", "beta"), (len(options.loads), len(BETAS))
    of = lambda name: np.array([p[name] for p in points])
    variables = {
        name: ((*dims, "n_spins"), of(name).reshape(*shape, -1))
        for name in points[0]
        if name != "motion"
    }
    variables["motion"] = dims, of("motion").reshape(shape)
    coordinates = {
        "alpha": np.array(options.loads),
        "beta": np.array(BETAS),
        "n_spins": np.array(options.sizes),
    }
    dataset = LABELS.labelled(variables, coordinates).assign_attrs(
        kind="crosstalk-spins", samples=options.samples, tokens=options.tokens
    )
    chosen = {k: v for k, v in vars(options).items() if k != "output"}
    rows = (f"{name} = {value}\n" for name, value in chosen.items())
    study = f'kind = "{dataset.attrs["kind"]}"\n' + "".join(rows)
    storage.write(options.output, dataset, study=study)


if __name__ == "__main__":
    main()
