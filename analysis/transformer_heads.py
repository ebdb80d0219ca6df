"""Which score says which heads a transformer needs? (docs/transformer_heads.md)

Trains transformers of two sizes with all that the theory leaves out (attention of the
hidden state, softmax, MLP, layer norm, skip connections) on four tasks, scores their
heads by the theory and by usual baselines, and holds every score against what the
trained network loses without the head.

python analysis/transformer_heads.py FOLDER            # needs MNIST's test set, see
                                                       # statmech-attn download
python analysis/transformer_heads.py FOLDER --quick    # a minute; of no meaning

Protocol, fixed before any number was seen: quantities of the theory beside its scores
are candidates.  The task `CHOOSES` names the best one over all heads and the best one
within layers, by the mean rank correlation over both sizes.  Each is then held against
the theory's score on the three other tasks, by differences of the same trainings, and
is confirmed if it is better on all three, each at level `LEVEL` / 2, one-sided.

FOLDER receives scores.csv, summary.csv, candidates.csv, a figure, and for the first
training of each network an npz for `statmech-attn score`.  The same command goes on
where it was stopped.
"""

import gzip
import itertools
import json
import math
import pydoc_data.topics
import re
import sys
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd
from scipy import stats

import statmech_attn
from statmech_attn import bpkr, plotting
from statmech_attn.bpkr import prior, pruning
from statmech_attn.plotting.frame import sheets, style
from statmech_attn.tasks import images, trained_arrays


HEADS, WIDTH, HIDDEN, TOKENS = 4, 32, 64, 16
DEPTHS = 2, 4  # layers of the two sizes
TEMPERATURE = 0.1
CHOOSES, LEVEL, POWER = "digits", 0.05, 0.9
BASELINES = (
    "gradient",  # of a gate, E|dL/dg|
    "gradient, signed",  # loss gained to first order, -E dL/dg
    "output norm",
    "weights",  # norm of the value weights
    "entropy",  # of attention, low ones first
    "trained values",  # U_1 of theirs
    "random",
)
SHOWN = "theory", "theory by layer", *BASELINES


class Settings(NamedTuple):
    """Sizes of the whole comparison."""

    trainings: int = 10
    steps: int = 500
    batch: int = 64
    train: int = 8000
    test: int = 1000
    scored: int = 400  # examples that every score is taken from
    permuted: int = 8  # sets of labels of which z is taken


QUICK = Settings(2, 20, 16, 400, 100, 40, 2)


class Task(NamedTuple):
    """Data of one task, and how the network reads it.

    Attributes:
        x, y: training inputs (P, T, F) or symbols (P, T), and classes.
        x_test, y_test: the same for tests.
        columns: one for each of the theory's labels, of every class -1 or 1.
        causal: whether a token sees earlier ones alone, every token is read in
            training, and the last one is scored; otherwise all are seen, and their mean
            is read.
    """

    name: str
    x: np.ndarray
    y: np.ndarray
    x_test: np.ndarray
    y_test: np.ndarray
    columns: np.ndarray
    causal: bool

    @property
    def readout(self) -> str:
        return "last" if self.causal else "mean"


def digits(settings: Settings, seed: int) -> Task:
    """Odd or even digit, of 16 patches of 7 x 7 pixels."""
    folder = images.data_folder() / "mnist"
    content = lambda name: gzip.open(folder / f"t10k-{name}-ubyte.gz").read()
    pixels = np.frombuffer(content("images-idx3"), np.uint8, offset=16)
    labels = np.frombuffer(content("labels-idx1"), np.uint8, offset=8)
    patches = pixels.reshape(-1, 4, 7, 4, 7).swapaxes(2, 3).reshape(-1, TOKENS, 49)
    patches = np.float32(patches) / 255
    order = np.random.default_rng(seed).permutation(len(labels))
    return _split("digits", patches[order], labels[order] % 2, [[-1], [1]], settings)


def order(settings: Settings, seed: int) -> Task:
    """Whether the first 3 comes before the first 5, in 16 random digits with both."""
    x = np.random.default_rng(seed).integers(10, size=(4 * settings.train, TOKENS))
    x = x[(x == 3).any(axis=1) & (x == 5).any(axis=1)]
    first = lambda digit: (x == digit).argmax(axis=1)
    y = np.int64(first(3) < first(5))
    return _split("order", x, y, [[-1], [1]], settings)


def characters(settings: Settings, seed: int) -> Task:
    """The next character of Python's documentation, after 16 of them.

    The theory's labels are whether it is a vowel, and whether it is a consonant.
    """
    text = " ".join(pydoc_data.topics.topics.values()).lower()
    text = " ".join("".join(c if c.isascii() else "?" for c in text).split())
    known = sorted(set(text))
    vowel = np.isin(known, list("aeiou"))
    consonant = np.array([c.isalpha() for c in known]) & ~vowel
    codes = np.searchsorted(known, list(text))
    return _next("characters", codes, [vowel, consonant], settings, seed)


def words(settings: Settings, seed: int) -> Task:
    """The next word of Python's documentation, after 16 of the 255 most frequent.

    All others are one word.  The theory's labels are whether the next is one of these,
    and whether it is among the ten most frequent.
    """
    text = " ".join(pydoc_data.topics.topics.values()).lower()
    text = re.findall("[a-z]+", text)
    known = [word for word, _ in Counter(text).most_common(255)]
    code = {word: number for number, word in enumerate(known)}
    codes = np.array([code.get(word, len(known)) for word in text])
    classes = np.arange(len(known) + 1)
    return _next("words", codes, [classes == len(known), classes < 10], settings, seed)


def _next(name, codes, of_classes, settings: Settings, seed: int) -> Task:
    """A task of what comes after `TOKENS` symbols, in windows that do not overlap."""
    count = len(codes) // (TOKENS + 1)
    windows = codes[: count * (TOKENS + 1)].reshape(count, TOKENS + 1)
    windows = windows[np.random.default_rng(seed).permutation(count)]
    columns = np.where(np.stack(of_classes, axis=1), 1, -1)
    return _split(name, windows[:, :-1], windows[:, 1:], columns, settings, True)


def _split(name, x, y, columns, settings: Settings, causal: bool = False) -> Task:
    test = slice(settings.test)
    train = slice(settings.test, settings.test + settings.train)
    return Task(name, x[train], y[train], x[test], y[test], np.array(columns), causal)


TASKS: tuple[Callable[[Settings, int], Task], ...] = digits, words, order, characters


# --- the transformer ---


def initial(key, task: Task, depth: int) -> dict[str, Any]:
    """Weights before training."""
    classes, keys = len(task.columns), iter(jax.random.split(key, 3 + 6 * depth))
    size = WIDTH // HEADS
    symbols = task.x.ndim == 2

    def normal(*shape, fan: int):
        return jax.random.normal(next(keys), shape, jnp.float32) / math.sqrt(fan)

    def layer():
        return {
            "queries": normal(HEADS, size, WIDTH, fan=WIDTH),
            "keys": normal(HEADS, size, WIDTH, fan=WIDTH),
            "values": normal(HEADS, size, WIDTH, fan=WIDTH),
            "out": normal(HEADS, WIDTH, size, fan=WIDTH),
            "up": normal(HIDDEN, WIDTH, fan=WIDTH),
            "down": normal(WIDTH, HIDDEN, fan=HIDDEN),
            "norm": jnp.ones((2, WIDTH), jnp.float32),
            "shift": jnp.zeros((2, WIDTH), jnp.float32),
        }

    features = int(task.x.max()) + 1 if symbols else task.x.shape[2]
    return {
        "embed": normal(features, WIDTH, fan=1 if symbols else features),
        "place": normal(task.x.shape[1], WIDTH, fan=4),
        "layers": [layer() for _ in range(depth)],
        "norm": jnp.ones(WIDTH, jnp.float32),
        "shift": jnp.zeros(WIDTH, jnp.float32),
        "read": normal(classes, WIDTH, fan=WIDTH),
    }


def normalised(x, gain, shift):
    """Layer norm over the features."""
    x = x - x.mean(axis=-1, keepdims=True)
    return gain * x / jnp.sqrt((x**2).mean(axis=-1, keepdims=True) + 1e-5) + shift


@partial(jax.jit, static_argnames="causal")
def forward(weights, x, gates, *, causal: bool):
    """Logits, and what scores need: tokens, attention and head outputs of each layer.

    Args:
        gates: for every layer, factors of the outputs of its heads.
    """
    embedded = weights["embed"][x] if x.ndim == 2 else x @ weights["embed"]
    hidden = embedded + weights["place"]
    seen = np.tril(np.ones((x.shape[1],) * 2, bool)) if causal else True
    of_layers = []
    for gate, w in zip(gates, weights["layers"], strict=True):
        z = normalised(hidden, w["norm"][0], w["shift"][0])
        q, k, v = (
            jnp.einsum("pti,hgi->phtg", z, w[name])
            for name in ("queries", "keys", "values")
        )
        products = jnp.einsum("phtg,phsg->phts", q, k) / math.sqrt(q.shape[-1])
        omega = jax.nn.softmax(jnp.where(seen, products, -jnp.inf), axis=-1)
        heads = jnp.einsum("phts,phsg,hig->phti", omega, v, w["out"])
        of_layers.append((hidden, z, omega, heads))
        hidden = hidden + jnp.einsum("phti,h->pti", heads, gate)
        z = normalised(hidden, w["norm"][1], w["shift"][1])
        hidden = hidden + jax.nn.gelu(z @ w["up"].T) @ w["down"].T
    hidden = hidden if causal else hidden.mean(axis=1, keepdims=True)
    z = normalised(hidden, weights["norm"], weights["shift"])
    return z @ weights["read"].T, of_layers


def all_on(weights) -> tuple[np.ndarray, ...]:
    return (np.ones(HEADS, np.float32),) * len(weights["layers"])


@partial(jax.jit, static_argnames=("causal", "last"))
def losses(weights, x, y, gates, *, causal: bool, last: bool = False):
    """Cross entropy of every example, and whether its largest logit is right."""
    logits, _ = forward(weights, x, gates, causal=causal)
    y = y if causal else y[:, None]
    if last:
        logits, y = logits[:, -1:], y[:, -1:]
    values = optax.softmax_cross_entropy_with_integer_labels(logits, y)
    return values.mean(axis=1), (logits.argmax(axis=-1) == y).mean(axis=1)


@partial(jax.jit, static_argnames="causal")
def gate_slopes(weights, x, y, *, causal: bool):
    """Derivatives of the loss of every example in the gates."""
    loss = lambda gates: losses(weights, x, y, gates, causal=causal, last=True)[0]
    return jax.jacfwd(loss)(all_on(weights))


def trained(key, task: Task, depth: int, settings: Settings):
    """Weights after Adam with a falling rate."""
    start, rows_key = jax.random.split(key)
    shape = settings.steps, settings.batch
    rows = jax.random.randint(rows_key, shape, 0, len(task.x))
    start = initial(start, task, depth)
    return descended(start, task.x, task.y, rows, causal=task.causal)


@partial(jax.jit, static_argnames="causal")
def descended(weights, x, y, rows, *, causal: bool):
    rate = optax.cosine_decay_schedule(3e-3, len(rows))
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))
    gates = all_on(weights)
    mean = lambda *args: losses(*args, gates, causal=causal)[0].mean()

    def step(carry, batch):
        weights, state = carry
        slope = jax.grad(mean)(weights, x[batch], y[batch])
        updates, state = optimiser.update(slope, state)
        return (optax.apply_updates(weights, updates), state), None

    return jax.lax.scan(step, (weights, optimiser.init(weights)), rows)[0][0]


# --- scores ---


def scored(task: Task, weights, seed: int, settings: Settings) -> dict[str, np.ndarray]:
    """Every score of all heads, layer by layer."""
    x, y = task.x[: settings.scored], task.y[: settings.scored]
    _, layers = forward(weights, x, all_on(weights), causal=task.causal)
    attention = [omega.swapaxes(0, 1) for _, _, omega, _ in layers]
    labels = labels_of(task, y)
    pairs = [
        theory(layers[first][0], attention[first : first + 2], labels, task)
        for first in range(0, len(layers), 2)
    ]
    singles = [
        theory(z, [omega], labels, task, settings.permuted)
        for (_, z, _, _), omega in zip(layers, attention, strict=True)
    ]
    joined = lambda parts: {name: in_order(p[name] for p in parts) for name in parts[0]}
    by_layer = {f"{name} by layer": v for name, v in joined(singles).items()}
    slopes = gate_slopes(weights, x, y, causal=task.causal)
    return joined(pairs) | by_layer | baselines(task, weights, layers, slopes, seed)


def labels_of(task: Task, y) -> np.ndarray:
    """The theory's labels (P, K), of zero mean and unit variance."""
    labels = task.columns[y[:, -1] if task.causal else y].astype(float)
    return (labels - labels.mean(axis=0)) / labels.std(axis=0)


def theory(tokens, attention, labels, task: Task, permuted: int = 0):
    """Score and candidates of the heads of some layers, from the tokens they see.

    Skip connections are paths of the theory, and no heads of the tables.  Each number
    is the mean over the labels, each of which the theory learns alone.

    Args:
        tokens: (P, T, N_0).
        attention: of each layer, (H, P, T, T) with queries on rows.
        labels: (P, K).
        task: whose readout is taken.
        permuted: sets of permuted labels that give z; none gives no z.
    """
    omega = bpkr.attention_arrays(attention, queries="rows")
    xi = bpkr.attended(tokens.swapaxes(1, 2), omega, readout=task.readout, skip=1.0)
    skip, rng = (1.0,) * len(attention), np.random.default_rng(0)

    def problem(Y) -> bpkr.Problem:
        given = trained_arrays.Scored(xi, Y, omega.heads, (), None, skip)
        return given.problem(width=WIDTH, temperature=TEMPERATURE)

    rows = []
    for Y in labels.T:
        posed = problem(jnp.asarray(Y))
        others = [problem(jnp.asarray(rng.permutation(Y))) for _ in range(permuted)]
        rows.append(of_problem(posed, others))
    return {name: np.mean([row[name] for row in rows], axis=0) for name in rows[0]}


def of_problem(problem: bpkr.Problem, permuted=()) -> dict[str, np.ndarray]:
    """Score of every head, and the candidates, of one label.

    excess, ratio    of the weight in U_1 and its floor
    evidence         gain of -2 ln p(Y) without the head's paths, at the same U
    error            squared error that <f> gains without them
    size             root mean square of what they add to <f>
    alignment        share of the head's kernel that is along the labels
    z                of the ratio against permuted labels
    """
    scores = bpkr.score(problem, jax.random.key(0), resamples=0)
    on = scores.is_head
    heads = [h for h, of in zip(pruning.heads_in_order(problem.branches), on) if of]
    full = problem.theory(scores.solution.U[0])
    parts = np.asarray(pruning.mean_contributions(full, problem.xi))
    sizes = pruning.contribution_sizes(parts, problem.heads, problem.skip)
    parts = parts / np.sqrt(prior.path_shares(problem.heads, problem.skip))
    y, xi = np.asarray(problem.Y), np.asarray(problem.xi)
    along = np.square(np.einsum("p,pia->ia", y, xi)).sum(axis=0)
    size = len(y) * np.square(xi).sum(axis=(0, 1))
    through = [bpkr.paths_through(problem.branches, *head) for head in heads]
    of_heads = np.array([parts[:, paths].sum(axis=1) for paths in through])
    rest = y - parts.sum(axis=1)
    whole = minus_log_evidence(full)
    rows = {
        "theory": scores.score[on],
        "excess": (scores.score - scores.floor)[on],
        "ratio": (scores.score / scores.floor)[on],
        "evidence": np.array(
            [minus_log_evidence(full.silenced([head])) - whole for head in heads]
        ),
        "error": ((rest + of_heads) ** 2 - rest**2).mean(axis=1),
        "size": sizes[on],
        "alignment": np.array([along[p].sum() / size[p].sum() for p in through]),
    }
    if permuted:
        solutions = [other.solve() for other in permuted]
        chance = [
            in_order(s.head_scores()) / in_order(s.head_floors()) for s in solutions
        ]
        mean, spread = np.mean(chance, axis=0)[on], np.std(chance, axis=0, ddof=1)[on]
        rows["z"] = (rows["ratio"] - mean) / spread
    return rows


def minus_log_evidence(theory: bpkr.Theory) -> float:
    """-2 ln p(Y) at given order parameters, up to a constant of the problem."""
    half, y = np.asarray(theory.half), np.asarray(theory.problem.rows.y)
    return float(((half @ y) ** 2).sum() - 2 * np.log(np.diagonal(half)).sum())


def value_weights(task: Task, weights) -> tuple[list[jax.Array], jax.Array]:
    """What the heads of every layer add to the hidden state, and its readout."""
    values = [
        jnp.einsum("hig,hgj->hij", w["out"], w["values"]) * w["norm"][0]
        for w in weights["layers"]
    ]
    return values, weights["norm"] * (task.columns.T @ weights["read"])


def baselines(task: Task, weights, layers, slopes, seed: int) -> dict[str, np.ndarray]:
    """Scores that are in use, and U_1 of the trained values.

    Args:
        task: whose readout is taken.
        weights: of the network.
        layers: what `forward` gives of them.
        slopes: of `gate_slopes`.
        seed: of the random score.
    """
    norm = lambda out: jnp.linalg.norm(out, axis=-1).mean(axis=(0, 2))
    entropy = lambda omega: -(omega * jnp.log(omega + 1e-30)).sum(axis=-1).mean((0, 2))
    values, readout = value_weights(task, weights)
    rng = np.random.default_rng([seed, len(values), *task.name.encode()])
    U = bpkr.order_parameters(
        bpkr.Weights(
            jnp.eye(WIDTH),
            tuple(np.sqrt(WIDTH * HEADS) * np.float64(V) for V in values),
            np.sqrt(WIDTH) * np.float64(readout),
            (1.0,) * len(values),
        )
    )[0][0]
    of_values = bpkr.head_scores(U, (HEADS + 1,) * len(values))
    return {
        "gradient": in_order(jnp.abs(slope).mean(axis=0) for slope in slopes),
        "gradient, signed": -in_order(slope.mean(axis=0) for slope in slopes),
        "output norm": in_order(norm(out) for _, _, _, out in layers),
        "weights": in_order(jnp.linalg.norm(V, axis=(1, 2)) for V in values),
        "entropy": -in_order(entropy(omega) for _, _, omega, _ in layers),
        "trained values": in_order(of_layer[1:] for of_layer in of_values),
        "random": rng.random(HEADS * len(values)),
    }


def in_order(of_layers) -> np.ndarray:
    """Numbers of all heads, layer by layer."""
    return np.concatenate([np.asarray(layer, float) for layer in of_layers])


# --- one training ---


def one_training(
    make: Callable, depth: int, number: int, settings: Settings, folder: Path
) -> dict[str, pd.DataFrame]:
    """A table of the heads of one trained network, and one of rank correlations."""
    task = make(settings, number)
    weights = trained(jax.random.key(number), task, depth, settings)
    read = partial(losses, weights, causal=task.causal, last=True)
    ablation = bpkr.ablate(
        lambda gates: read(task.x_test, task.y_test, gates)[0], (HEADS,) * depth
    )
    scores = scored(task, weights, number, settings)
    if number == 0:
        write_arrays(folder / f"{task.name}_{depth}.npz", task, weights, settings)
    accuracy = read(task.x_test, task.y_test, all_on(weights))[1].mean()
    base = {"task": task.name, "layers": depth, "training": number}
    heads = pd.DataFrame(
        base
        | {"head": ablation.names, "loss gained": ablation.gained.value}
        | {"its error": ablation.gained.stderr}
        | scores
    )
    rows = []
    for name, values in scores.items():  # of one training alone no level is used
        agreement = ablation.agreement({name: values}, resamples=1)
        over, within = agreement.correlation.item(), agreement.within.item()
        rows.append(base | {"score": name, "all heads": over, "within layers": within})
    told = {"accuracy": accuracy.item(), "loss": ablation.loss.value.item()}
    return {"scores": heads, "correlations": pd.DataFrame(rows).assign(**told)}


def write_arrays(file: Path, task: Task, weights, settings: Settings) -> None:
    """What `statmech-attn score` reads of a trained network (docs/data.md)."""
    x, y = task.x[: settings.scored], task.y[: settings.scored]
    _, layers = forward(weights, x, all_on(weights), causal=task.causal)
    values, readout = value_weights(task, weights)
    arrays = {"x": layers[0][0].swapaxes(1, 2), "Y": labels_of(task, y)[:, 0]}
    for number, (V, (_, _, omega, _)) in enumerate(zip(values, layers), 1):
        arrays |= {f"V_{number}": V, f"attention_{number}": omega.swapaxes(0, 1)}
    np.savez_compressed(file, a=readout[0], **arrays)


def tables(make: Callable, depth: int, number: int, settings: Settings, folder: Path):
    """Those of `one_training`, computed or as they were stored before.

    Raises:
        SystemExit: they were stored with other settings.
    """
    file = folder / f"{make.__name__}_{depth}_{number}.json"
    if not file.exists():
        rows = one_training(make, depth, number, settings, folder)
        columns = {name: table.to_dict("list") for name, table in rows.items()}
        written = file.with_suffix(".tmp")
        written.write_text(json.dumps(settings._asdict() | columns))
        written.replace(file)
    content = json.loads(file.read_text())
    others = {k: content[k] for k, v in settings._asdict().items() if content[k] != v}
    if others.keys() - {"trainings"}:
        raise SystemExit(f"{file} is of other settings: {others}; remove it.")
    return [pd.DataFrame(content[name]) for name in ("scores", "correlations")]


# --- what all trainings say ---

MEASURES = "all heads", "within layers"
REACH = -0.7, 1.0  # of the correlations in the figure
FILES = "scores", "correlations", "summary", "candidates"


def summary(correlations: pd.DataFrame) -> pd.DataFrame:
    """Means over trainings, their errors and levels, and what would have been seen.

    A row for each task, and the mean of all, of each size, score and measure.  `level`
    is two-sided, by Student's law, of a mean of tasks with the degrees of freedom of
    Satterthwaite (Biometrics Bulletin 2, 110, 1946).  Scores in use and those of
    `bpkr.score` are significant at `LEVEL` over the number of their rows; `seen from`
    is the mean that would have been significant with probability `POWER`.
    """
    over = ["layers", "score", "measure"]
    long = correlations.melt(
        ["task", "training", *over[:2]], MEASURES, "measure", "correlation"
    )
    single = long.groupby(["task", *over], sort=False).correlation
    single = single.agg(["mean", "sem", "count"]).reset_index()
    single["degrees"] = single.pop("count") - 1.0
    squares = single["sem"] ** 2
    joint = single.assign(square=squares, fourth=squares**2 / single.degrees)
    joint = joint.groupby(over, sort=False)[["mean", "square", "fourth"]].mean()
    tasks = single.task.nunique()
    joint["sem"] = np.sqrt(joint.square / tasks)
    joint["degrees"] = tasks * joint.pop("square") ** 2 / joint.pop("fourth")
    rows = pd.concat([single, joint.reset_index().assign(task="all")])
    of_family = rows.score.isin(set(SHOWN) - {"random"})
    bound, degrees = LEVEL / of_family.sum(), rows.degrees
    rows["level"] = 2 * stats.t.sf(abs(rows["mean"] / rows["sem"]), degrees)
    rows["significant"] = of_family & (rows.level < bound)
    rows["seen from"] = rows["sem"] * detectable(bound / 2, degrees)
    return rows


def detectable(level: float, degrees):
    """Mean, in its standard errors, that is above level with probability `POWER`.

    By the normal approximation of the noncentral t distribution (Johnson and Welch,
    Biometrika 31, 362, 1940).
    """
    above = stats.t.isf(level, degrees)
    return above + stats.norm.ppf(POWER) * np.sqrt(1 + above**2 / (2 * degrees))


def candidates(correlations: pd.DataFrame) -> pd.DataFrame:
    """The candidate that `CHOOSES` names, against the theory's score on other tasks.

    A row for each measure and task, of differences over all sizes and trainings.
    """
    names = correlations.score[
        ~correlations.score.isin(["theory", *BASELINES])
    ].unique()
    rows = []
    for measure in MEASURES:
        table = correlations.pivot_table(
            measure, ["task", "layers", "training"], "score", sort=False
        )
        chosen = table.loc[CHOOSES, names].mean().idxmax()
        difference = (table[chosen] - table["theory"]).groupby("task", sort=False)
        of_tasks = difference.agg(["mean", "sem", "count"]).drop(CHOOSES).reset_index()
        of_tasks["level"] = stats.t.sf(
            of_tasks["mean"] / of_tasks["sem"], of_tasks["count"] - 1
        )
        confirmed = bool((of_tasks.level < LEVEL / len(MEASURES)).all())
        told = {"measure": measure, "chosen": chosen, "confirmed": confirmed}
        rows.append(of_tasks.assign(**told))
    return pd.concat(rows, ignore_index=True)


def known(heads: pd.DataFrame) -> float:
    """Share of the variance of losses gained that is no error of the test examples."""
    return 1 - np.mean(heads["its error"] ** 2) / np.var(heads["loss gained"], ddof=1)


@style.styled
def figure(means: pd.DataFrame, names: list[str]):
    """Mean rank correlations of some scores: a column for each task."""
    tasks = [task for task in means.task.unique() if task != "all"]
    sheet = sheets.sheet(
        None, 2 * len(tasks), lambda: sheets.grid(style.DOUBLE, 5.4, 2, len(tasks))
    )
    panels = zip(sheet.axes, itertools.product(MEASURES, tasks), strict=True)
    for number, (axis, (measure, task)) in enumerate(panels):
        of_panel = means[(means.task == task) & (means.measure == measure)]
        axis.axvline(0, color=style.GREY, lw=0.6)
        between = np.arange(0.5, len(names) - 1)
        axis.hlines(between, *REACH, color=style.PALE, lw=0.4, zorder=0)
        for place, depth in enumerate(of_panel.layers.unique()):
            rows = of_panel[of_panel.layers == depth].set_index("score").loc[names]
            heights = np.arange(len(names)) + 0.3 * (place - 0.5)
            look = {"ls": "none", "marker": "os"[place], "color": style.SERIES[place]}
            axis.errorbar(
                rows["mean"],
                heights,
                xerr=rows["sem"],
                label=f"{depth} layers",
                **(style.OPEN | look),
            )
            clear = rows["significant"].to_numpy()
            axis.plot(rows["mean"][clear], heights[clear], ms=3.4, zorder=3, **look)
        first = number % len(tasks) == 0
        axis.set(xlim=REACH, ylim=(len(names) - 0.5, -0.5))
        axis.set_title(task if number < len(tasks) else "")
        axis.set_xlabel("" if number < len(tasks) else "mean rank correlation")
        axis.set_yticks(range(len(names)), names if first else [])
        axis.tick_params(axis="y", length=0)
        if first:
            axis.set_ylabel(measure)
    sheet.legend()
    sheet.letters()
    sheet.note(
        "bars: one standard error over trainings; filled: score in use that differs "
        f"from 0 at {100 * LEVEL:g} % over all comparisons"
    )
    return sheet.figure


def main(arguments: list[str] | None = None) -> None:
    folder, *options = sys.argv[1:] if arguments is None else arguments
    statmech_attn.setup()
    quick = "--quick" in options
    settings, depths = (QUICK, DEPTHS[:1]) if quick else (Settings(), DEPTHS)
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for depth, make in itertools.product(depths, TASKS):
        for number in range(settings.trainings):
            parts.append(tables(make, depth, number, settings, folder))
            print(f"{make.__name__}, {depth} layers, training {number}", flush=True)
    heads, correlations = map(pd.concat, zip(*parts, strict=True))
    means, chosen = summary(correlations), candidates(correlations)
    for name, rows in zip(FILES, (heads, correlations, means, chosen), strict=True):
        rows.to_csv(folder / f"{name}.csv", index=False, float_format="%.4g")
    of_networks = ["task", "layers", "training"]
    networks = correlations.groupby(of_networks, sort=False)[["accuracy", "loss"]]
    networks = networks.first().assign(known=heads.groupby(of_networks).apply(known))
    networks = networks.groupby(of_networks[:2], sort=False).agg(["mean", "sem"])
    print(networks.round(3).to_string())
    means["told"] = [
        f"{row.mean:.2f} ± {row.sem:.2f}{'*' * int(row.significant)}"
        for row in means[["mean", "sem", "significant"]].itertuples(index=False)
    ]
    for measure, rows in means.groupby("measure", sort=False):
        columns = rows.pivot(index="score", columns=["layers", "task"], values="told")
        print(f"\n{measure}\n{columns.reindex(rows.score.unique()).to_string()}")
    print(f"\n{chosen.to_string(index=False, float_format='%.3g')}")
    drawn = figure(means, list(dict.fromkeys([*SHOWN[:2], *chosen.chosen, *BASELINES])))
    plotting.save(drawn, folder, "transformer_heads", ["png"])


if __name__ == "__main__":
    main()
