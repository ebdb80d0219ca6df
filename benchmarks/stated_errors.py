"""Scatter over stated error, for the errors that the package states.

python benchmarks/stated_errors.py [--only NAME ...] [--page]

Every setting repeats a computation with other keys or starts.  Its ratio is the root
mean square deviation, from the truth where that is known and else from the mean, over
the root mean square stated error: 1 where errors are right, with a statistical error of
1 / sqrt(2 repeats).  Rows are replaced one at a time in
paper_figs/results/stated_errors.csv; --page writes docs/stated_errors.md.
"""

import argparse
import csv
import runpy
from collections.abc import Callable
from functools import partial
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from scipy.stats import chi2

import statmech_attn
from statmech_attn import bpkr, dmft, dynamics, montecarlo, statistics
from statmech_attn.bpkr.heads.ablation import Mean
from statmech_attn.dmft import extensive
from statmech_attn.dynamics import continuation
from statmech_attn.dynamics.maps.catalogue import henon, lorenz


ROOT = Path(__file__).resolve().parents[1]
KEPT = ROOT / "paper_figs" / "results" / "stated_errors.csv"
PAGE = ROOT / "docs" / "stated_errors.md"
BEGIN, END = "<!-- generated: begin -->\n", "<!-- generated: end -->\n"
COMPARED = runpy.run_path(str(Path(__file__).with_name("compared_errors.py")))
COLUMNS = [*map(str, "quantity setting repeats ratio beyond_2 beyond_3 about".split())]
FEW, MANY = 30, 200


def keys(repeats: int):
    return jax.random.split(jax.random.key(0), repeats)


def starts(repeats: int, *shape: int) -> np.ndarray:
    return np.random.default_rng(0).uniform(size=(repeats, *shape))


def each(repeats: int, one: Callable) -> tuple[np.ndarray, np.ndarray]:
    """Values and errors of calls that are made one after the other."""
    values, errors = zip(*(one(key) for key in keys(repeats)), strict=True)
    return np.array(values), np.array(errors)


def exponent(step, steps, transient, repeats):
    """Largest exponent of a map of (0, 1), or of a plane near the origin."""
    x = starts(repeats, 2) / 10 if step is henon else starts(repeats, 1)
    of = lambda x: dynamics.lyapunov_spectrum(
        step, x, steps=steps, transient=transient, exponents=1
    )
    found = jax.vmap(of)(jnp.asarray(x))
    return found.exponents[:, 0], found.stderr[:, 0]


def logistic(r: float) -> Callable:
    return lambda x: r * x * (1 - x)


def roessler(u):
    x, y, z = u
    return jnp.array([-y - z, x + 0.2 * y, 0.2 + z * (x - 5.7)])


def flow_exponent(field, time, repeats):
    of = lambda x: dynamics.flow_spectrum(
        field, x, time=time, transient=30.0, substeps=5, exponents=1
    )
    found = jax.jit(jax.vmap(of))(1 + jnp.asarray(starts(repeats, 3)))
    return found.exponents[:, 0], found.stderr[:, 0]


def production(weighted, beta, steps, repeats):
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(beta, file.gamma, file.epsilon)
    of = lambda key: dmft.entropy_production(
        net, params, dmft.from_random(net, params, key), steps=steps, transient=4000
    )
    rate = jax.jit(jax.vmap(of))(keys(repeats))
    return (rate.weighted if weighted else rate.mean), rate.stderr


def rotation(omega, K, steps, repeats):
    lift = lambda x, p: x + p["omega"] - K / (2 * jnp.pi) * jnp.sin(2 * jnp.pi * x)
    found = dynamics.rotation_number(
        lift, starts(repeats), {"omega": omega}, steps=steps
    )
    return found.number, found.error


def escape(number, after, fast, repeats):
    """Of x' = 4.5 x (1 - x) on (0, 1); half of the starts leave at the rate `fast`."""
    rng = np.random.default_rng(0)

    def one(_):
        x, lifetime = rng.uniform(size=number), np.full(number, 200.0)
        for step in range(200):
            x = 4.5 * x * (1 - x)
            left = (x < 0) | (x > 1)
            lifetime[left & (lifetime == 200)] = step + 1
            x = np.where(left, 2.0, x)
        if fast:
            early = rng.geometric(-np.expm1(-fast), number)
            lifetime = np.where(rng.uniform(size=number) < 0.5, early, lifetime)
        rate = dynamics.escape_rate(lifetime, lifetime < 200, after=after)
        return rate.rate, rate.stderr

    return each(repeats, one)


def chains(draws, phi, repeats):
    """Means of four autoregressive chains with mean 0."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(draws, 4, repeats))
    x[1:] *= np.sqrt(1 - phi**2)
    for t in range(1, draws):
        x[t] += phi * x[t - 1]
    found = statistics.summary(x.swapaxes(0, 1))
    return found.mean, found.stderr


def posed(seed=0, examples=6, heads=(2,), width=7, temperature=0.2):
    rng = np.random.default_rng(seed)
    xi = rng.normal(size=(examples, 3, np.prod(heads)))
    Y = np.sign(xi[:, 0, 0] + 0.3 * rng.normal(size=examples))
    how = {"heads": heads, "width": width, "temperature": temperature}
    return bpkr.Problem(jnp.asarray(xi), Y, **how)


def integrals(problem, width, temperature) -> dict[str, float]:
    """Of one head, where U is a product of two chi-squared numbers."""
    factor = chi2.ppf((np.arange(1000) + 0.5) / 1000, width) / width
    U, xi = np.outer(factor, factor).reshape(-1, 1), np.asarray(problem.xi)[..., 0]
    kernel, vectors = np.linalg.eigh(xi @ xi.T / 3)
    spread, y = U * kernel + temperature, vectors.T @ np.asarray(problem.Y)
    p = np.exp(-(np.log(2 * np.pi * spread) + y**2 / spread).sum(1) / 2)
    return {"U": p @ U[:, 0] / p.sum(), "ln p(Y)": np.log(p.mean())}


def posterior(part, draws, heads, width, temperature, repeats):
    """Deviations from integrals for one head, else the values."""
    problem = posed(0, 7 * len(heads), heads, width, temperature)
    truth = integrals(problem, width, temperature)[part] if heads == (1,) else 0.0

    def one(key):
        drawn = problem.posterior(key, draws=draws)
        if part == "f":
            f = drawn.predict(jnp.asarray(starts(3, *problem.shape[1:3])))
            return f.mean, f.mean_stderr
        if part == "U":
            U = drawn.summary[0]
            return np.diagonal(U.mean) - truth, np.diagonal(U.stderr)
        found = bpkr.evidence(jax.random.fold_in(key, 1), drawn)
        return found.value - truth, found.stderr

    return each(repeats, one)


def curve(sets, repeats):
    pool, test = posed(1, 4000), posed(2, 100)

    def one(key):
        found = bpkr.learning_curve(
            key, pool, test.xi, test.Y, examples=[8], training_sets=sets
        ).sel(estimate="saddle", examples=8)
        return float(found.error), float(found.error_stderr)

    return each(repeats, one)


def scores(examples, repeats):
    """Shares of two heads in all weights; their errors are those of scores, scaled."""
    values, errors = [], []
    for seed, key in enumerate(keys(repeats)):
        found = bpkr.score(posed(100 + seed, examples), key)
        values.append(found.score / found.score.sum())
        errors.append(found.stderr)
    largest = np.array(values).max(axis=1).mean()
    return np.array(values) / largest, np.array(errors)


def ablation(law, number, repeats):
    """Losses gained per example, of a law with a mean of 1."""
    draw = {
        "normal": lambda rng: 1 + rng.normal(size=(repeats, number)),
        "lognormal": lambda rng: rng.lognormal(-2, 2, size=(repeats, number)),
        "rare": lambda rng: 1000.0 * (rng.uniform(size=(repeats, number)) < 1e-3),
    }
    return Mean.of(draw[law](np.random.default_rng(0)))


def spins(part, n_spins, runs, beta, repeats):
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(np.full(repeats, beta), file.gamma, file.epsilon)
    start, key = dmft.from_checkpoint(net, params, file), jax.random.key(0)
    how = {"n_spins": n_spins, "runs": runs, "steps": 40, "key": key}
    found = montecarlo.simulate(net, file.patterns, params, start, **how)
    mean, spread = (x.m_o_se[-1].T for x in (found.mean, found.spread))
    if part == "spread":
        return np.log(spread), np.full_like(spread, 1 / np.sqrt(2 * (runs - 1)))
    return mean, spread / np.sqrt(runs)


def critical(part, n_spins, runs, repeats, *, fold=False):
    """At Little's doubling, or at a fold; one relaxation below and above."""
    sign, begin, end = (1, 3.0, 1.0) if fold else (-1, 0.5, 2.0)
    code = np.ones((4, 1, 1)) if fold else None
    patterns = dmft.site_classes([[[1]], [[sign]], [[1]], [[1]]], positional=code)
    net, rest = dmft.network(patterns, context=1), jnp.full(1, float(fold))
    parameters = {"gamma": 1.0, "epsilon": 0.1 * fold}
    turn = dmft.strobe(net, parameters["epsilon"])
    problem = continuation.Problem(turn, rest, {"beta": begin} | parameters, "beta")
    rest = continuation.find_cycle(problem, rest, begin).x
    how = {"direction": 1 - 2 * fold, "within": (min(begin, end), max(begin, end))}
    branch = continuation.follow_cycle(problem, rest, begin, **how).run()
    law = dmft.critical_fluctuations(problem, branch.special[0])
    how = {"n_spins": n_spins, "distances": [-1.0, 0.0, 1.0], **parameters}
    sampling = montecarlo.CriticalSampling(runs=runs, samples=40)

    def one(key):
        of = montecarlo.FiniteSizes(key, net, patterns, law, sampling, **how)
        found = of.compute()
        return found[part].values, found[f"{part}_stderr"].values

    return each(repeats, one)


def load(alpha, beta):
    one = dmft.site_classes(np.ones((4, 1, 1)))
    net, how = dmft.network(one, context=1), {"alpha": alpha, "beta": beta}
    return extensive.loaded_network(net, extensive.identical(), **how), one


def correlations(part, beta, samples, repeats):
    """Of two tokens, with patterns that are drawn for every sample."""
    problem, one = load(0.1, beta)
    how = {"n_spins": 200, "samples": samples, "steps": 2}

    def of(key):
        found = montecarlo.simulate_extensive(problem, one, [1.0], key=key, **how)
        return (getattr(x, part)[2, 1] for x in (found.mean, found.stderr))

    return each(repeats, of)


def loaded(beta, alpha, steps, repeats):
    problem, _ = load(alpha, beta)

    def one(key):
        found = extensive.sampled(
            problem, [1.0], steps=steps, key=key, population=2**9, error=10.0
        )
        return (np.ravel(x.m_o_se[-1]) for x in (found.value, found.error))

    return each(repeats, one)


HENON, FOLD, DOUBLING = 0.41922, 1 + 8**0.5 - 1e-4, 3.449
ON_2, NEAR = (np.log(abs(4 + 2 * r - r * r)) / 2 for r in (3.2, DOUBLING))
ON_28, LOCKED = 0.3928694965929406, 0.3663793103448019  # 1 600 000 steps, +- 5e-14
LOGISTIC = 0.36150966984  # escape rate at 4.5, by cycles
_PRODUCTION = (
    ("chaos, β = 2, 2000 tokens", None, 2.0, 2000),
    ("weak chaos, β = 1.28, 500 tokens", None, 1.28, 500),
    ("weak chaos, β = 1.28, 8000 tokens", None, 1.28, 8000),
    ("cycle of 60 tokens, β = 1.46, 2000 tokens", None, 1.46, 2000),
)
_ONE_HEAD = (
    ("width 7, T = 0.2", 0.0, 150, (1,), 7, 0.2),
    ("width 7, T = 0.002", 0.0, 150, (1,), 7, 0.002),
    ("width 2, T = 0.2", 0.0, 150, (1,), 2, 0.2),
)
_SPINS = (
    ("N = 9999, 50 runs, β = 1.2", None, 9999, 50, 1.2),
    ("N = 999, 8 runs, β = 1.2", None, 999, 8, 1.2),
    ("N = 999, 8 runs, β = 2, chaos", None, 999, 8, 2.0),
)
# What is stated: its function, repeats, and settings in words, with the truth (None
# where it is not known) and arguments.
SETTINGS = {
    "exponents of maps": (
        exponent,
        MANY,
        ("logistic map, r = 4, 4096 steps", np.log(2), logistic(4), 4096, 100),
        ("Hénon map, 512 steps", HENON, henon, 512, 100),
        ("1e-4 below period three, 4096 steps", None, logistic(FOLD), 4096, 1000),
    ),
    "exponents of flows": (
        flow_exponent,
        FEW,
        ("Lorenz, time 200", 0.9056, lorenz, 200.0),
        ("Lorenz, time 25", 0.9056, lorenz, 25.0),
        ("Rössler, time 400", 0.0714, roessler, 400.0),
    ),
    "exponents of cycles": (
        exponent,
        MANY,
        ("logistic map, r = 3.2", ON_2, logistic(3.2), 1024, 2000),
        ("5e-4 below a doubling", NEAR, logistic(DOUBLING), 1024, 20_000),
        ("there, transient of 100", NEAR, logistic(DOUBLING), 1024, 100),
    ),
    "entropy production": (partial(production, False), MANY, *_PRODUCTION),
    "entropy production, `weighted`": (partial(production, True), MANY, *_PRODUCTION),
    "rotation numbers": (
        rotation,
        MANY,
        ("beside 11/28, 500 steps", ON_28, 0.4, 0.9, 500),
        ("beside 11/28, 4000 steps", ON_28, 0.4, 0.9, 4000),
        ("weakly locked to 85/232, 4000 steps", LOCKED, 0.381966, 0.99, 4000),
    ),
    "escape rates": (
        escape,
        MANY,
        ("20 000 starts, tail chosen", LOGISTIC, 20_000, None, None),
        ("1000 starts, tail chosen", LOGISTIC, 1000, None, None),
        ("1000 starts, tail given", LOGISTIC, 1000, 5, None),
        ("3000 starts, half at a rate of 2", LOGISTIC, 3000, None, 2.0),
        ("3000 starts, half at twice the rate", LOGISTIC, 3000, None, 2 * LOGISTIC),
        ("the same, tail after 10 steps", LOGISTIC, 3000, 10, 2 * LOGISTIC),
    ),
    "means of Markov chains": (
        chains,
        MANY,
        ("4 chains of 1000, autocorrelation 0.5", 0.0, 1000, 0.5),
        ("4 chains of 150, autocorrelation 0.5", 0.0, 150, 0.5),
        ("4 chains of 150, autocorrelation 0.95", 0.0, 150, 0.95),
    ),
    "posteriors by NUTS": (
        posterior,
        FEW,
        ("f, 4 chains of 150", None, "f", 150, (2,), 7, 0.2),
        ("U, 4 chains of 150", None, "U", 150, (2,), 7, 0.2),
        ("f, 4 chains of 150, two layers", None, "f", 150, (2, 2), 7, 0.2),
        ("f, 4 chains of 600, two layers", None, "f", 600, (2, 2), 7, 0.2),
    ),
    "order parameters of one head": (partial(posterior, "U"), MANY, *_ONE_HEAD),
    "ln p(Y) of one head": (partial(posterior, "ln p(Y)"), MANY, *_ONE_HEAD),
    "learning curves": (
        curve,
        FEW,
        *((f"8 examples, {n} training sets", None, n) for n in (3, 10, 30)),
    ),
    "head scores": (scores, FEW, *((f"{n} examples", None, n) for n in (12, 24, 48))),
    "ablation": (
        ablation,
        1000,
        ("normal losses of 200 examples", 1.0, "normal", 200),
        ("lognormal losses of 1000 examples", 1.0, "lognormal", 1000),
        ("losses of one in 1000 of 1000 examples", 1.0, "rare", 1000),
    ),
    "means of spins": (partial(spins, "mean"), MANY, *_SPINS),
    "spreads of spins": (partial(spins, "spread"), MANY, *_SPINS),
    "critical fluctuations": (
        critical,
        FEW,
        ("N = 300 to 3000, 64 runs", None, "mean_square", [300, 1000, 3000], 64),
        ("N = 30 to 300, 8 runs", None, "mean_square", [30, 100, 300], 8),
        ("their exponents, 8 runs", None, "exponent", [30, 100, 300], 8),
    ),
    "passages beside a fold": (
        partial(critical, fold=True),
        FEW,
        ("N = 10^4 and 10^5, 64 runs", None, "passage_time", [10**4, 10**5], 64),
        ("N = 10^4 and 10^5, 8 runs", None, "passage_time", [10**4, 10**5], 8),
        ("their exponents, 8 runs", None, "exponent", [10**4, 10**5], 8),
    ),
    "exponents in N": (
        COMPARED["trajectories"],
        MANY,
        ("of the bias, 100 runs", -1.0, "bias", True, 100),
        ("of the bias, 8 runs", -1.0, "bias", True, 8),
        ("of the bias, 100 runs, independent tokens", -1.0, "bias", False, 100),
        ("of the spread, 100 runs", -0.5, "spread", True, 100),
        ("of the spread, 8 runs", -0.5, "spread", True, 8),
        ("of the spread, 100 runs, independent tokens", -0.5, "spread", False, 100),
    ),
    "power laws in N": (
        COMPARED["power_law"],
        MANY,
        ("100 runs", -0.5, 0.1, 100),
        ("8 runs", -0.5, 0.1, 8),
        ("8 runs, noise of the size of the value", -0.5, 1.0, 8),
    ),
    "entropy production, spins less map": (
        COMPARED["production"],
        MANY,
        ("exponent of the bias, 100 runs", -1.0, "bias_slope", 0.0, 100),
        ("exponent of the bias, 8 runs", -1.0, "bias_slope", 0.0, 8),
        ("the same, error of the map", -1.0, "bias_slope", 2e-4, 100),
        ("limit of infinite N, 100 runs", 0.0, "limit", 0.0, 100),
        ("limit of infinite N, 8 runs", 0.0, "limit", 0.0, 8),
        ("limit of infinite N, error of the map", 0.0, "limit", 2e-4, 100),
    ),
    "exponents of distances of U_1": (
        COMPARED["distances"],
        MANY,
        ("20 errors at the largest N", -1.0, True, 0.0025),
        ("4 errors at the largest N", -1.0, True, 0.0125),
        ("20 errors, entries independent", -1.0, False, 0.0025),
    ),
    "correlations of spins": (
        correlations,
        MANY,
        ("spins, 30 samples, β = 1", None, "C", 1.0, 30),
        ("value overlaps, 30 samples, β = 1", None, "S", 1.0, 30),
        ("spins, 4 samples, β = 4", None, "C", 4.0, 4),
    ),
    "path integral of a load": (
        loaded,
        FEW,
        ("β = 1, α = 0.1, 2 steps", None, 1.0, 0.1, 2),
        ("β = 4, α = 0.1, 6 steps", None, 4.0, 0.1, 6),
        ("β = 4, α = 0.4, 6 steps", None, 4.0, 0.4, 6),
    ),
}


def row(name, words, repeats, truth, function) -> dict[str, str]:
    """The ratio of a setting, and shares of its numbers beyond two and three errors."""
    values, errors = (np.reshape(x, (repeats, -1)) for x in function(repeats))
    known = np.isfinite(values + errors).all(axis=1)
    values, errors, count = values[known], errors[known], known.sum()
    off = values - (values.mean(axis=0) if truth is None else truth)
    square = (off**2).sum(axis=0) / (count - (truth is None))
    ratio = np.sqrt((square / (errors**2).mean(axis=0)).mean())
    beyond = [f"{(abs(off) > n * errors).mean():.3f}" for n in (2, 3)]
    about = "mean" if truth is None else "truth"
    numbers = name, words, f"{count}", f"{ratio:.3g}", *beyond, about
    return dict(zip(COLUMNS, numbers, strict=True))


def kept(*new: dict[str, str]) -> list[dict[str, str]]:
    """Rows that were computed, in the order of the settings, with new ones in place."""
    with KEPT.open(newline="", encoding="utf-8") as file:
        rows = {(r["quantity"], r["setting"]): r for r in [*csv.DictReader(file), *new]}
    places = [(name, words) for name, of in SETTINGS.items() for words, *_ in of[2:]]
    return [rows[place] for place in places if place in rows]


def page() -> str:
    """The page with the table of the rows that are kept."""
    lines = ["| error of | setting | repeats | ratio | beyond 2 | beyond 3 |"]
    lines.append("| --- " * 6 + "|")
    for r in kept():
        ratio = float(r["ratio"])
        error = ratio / np.sqrt(2 * int(r["repeats"]))
        number = f"{ratio:.2f} ± {error:.2f}" if error >= 0.005 else f"{ratio:.1g}"
        shares = [f"{float(r[column]):.1%}" for column in ("beyond_2", "beyond_3")]
        words = r["setting"] + " (mean)" * (r["about"] == "mean")
        cells = r["quantity"], words, r["repeats"], number, *shares
        lines.append(f"| {' | '.join(cells)} |")
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    table = "\n".join(lines).replace("%", " %")
    return f"{before}{BEGIN}\n{table}\n\n{END}{rest.partition(END)[2]}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--page", action="store_true")
    options = parser.parse_args()
    if options.page:
        PAGE.write_text(page(), "utf-8")
        return
    statmech_attn.setup()
    for name in options.only:
        function, repeats, *settings = SETTINGS[name]
        for words, truth, *values in settings:
            new = row(name, words, repeats, truth, partial(function, *values))
            print(*new.values(), sep=" | ", flush=True)
            rows = kept(new)
            with KEPT.open("w", newline="", encoding="utf-8") as file:
                writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
                writer.writeheader()
                writer.writerows(rows)


if __name__ == "__main__":
    main()
