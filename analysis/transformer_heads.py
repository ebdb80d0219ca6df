"""Which score says which heads a transformer needs? (docs/transformer_heads.md)

Trains small transformers with all that the theory leaves out (attention of the hidden
state, softmax, MLP, layer norm, skip connections) on MNIST and on the characters of
Python's documentation, scores their heads by the theory and by usual baselines, and
holds every score against what the trained network loses without the head.

python analysis/transformer_heads.py FOLDER            # needs MNIST's test set, see
                                                       # statmech-attn download
python analysis/transformer_heads.py FOLDER --quick    # seconds; numbers of no meaning

FOLDER receives scores.csv, summary.csv, pruning.csv, a figure, and for every training
an npz for `statmech-attn score`.  The same command goes on where it was stopped.
"""

import gzip
import json
import math
import pydoc_data.topics
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pandas as pd

import statmech_attn
from statmech_attn import bpkr, plotting
from statmech_attn.bpkr import pruning
from statmech_attn.tasks import images, trained_arrays


LAYERS, HEADS, WIDTH, HIDDEN = 2, 4, 32, 64
TEMPERATURE = 0.1
SCORES = {  # name: what it is
    "theory": "theory, paths from the embedding",
    "theory by layer": "theory, each layer on its hidden state",
    "trained values": "U of the trained value weights",
    "gradient": "gradient of a mask, E|dL/dg|",
    "output norm": "norm of the head's output",
    "weights": "norm of its value weights",
    "entropy": "low entropy of its attention",
    "random": "random",
}


class Settings(NamedTuple):
    """Sizes of the whole comparison."""

    trainings: int = 10
    steps: int = 500
    batch: int = 64
    train: int = 8000
    test: int = 1000
    scored: int = 1000  # examples that every score is taken from
    resamples: int = 4  # for errors of the theory's scores
    random_orders: int = 3


TABLES = "scores", "correlations", "pruning"
QUICK = Settings(2, 20, 16, 400, 100, 40, 2, 2)


class Task(NamedTuple):
    """Data of one task, and how the network reads it.

    Attributes:
        x, y: training inputs (P, T, F) or characters (P, T), and classes.
        x_test, y_test: the same for tests.
        columns: one for each of the theory's labels, of every class -1 or 1.
        causal: whether a token sees earlier ones alone, and the last one is read;
            otherwise all are seen, and their mean is read.
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
    patches = pixels.reshape(-1, 4, 7, 4, 7).swapaxes(2, 3).reshape(-1, 16, 49)
    patches = np.float32(patches) / 255
    order = np.random.default_rng(seed).permutation(len(labels))
    return _split("digits", patches[order], labels[order] % 2, [[-1], [1]], settings)


def characters(settings: Settings, seed: int) -> Task:
    """The next character of Python's documentation, after 16 of them.

    The theory's labels are whether it is a vowel, and whether it is a consonant.
    """
    text = " ".join(pydoc_data.topics.topics.values()).lower()
    text = " ".join("".join(c if c.isascii() else "?" for c in text).split())
    known = sorted(set(text))
    codes = np.searchsorted(known, list(text))
    starts = np.random.default_rng(seed).permutation(len(codes) // 17) * 17
    windows = codes[starts[: settings.train + settings.test, None] + np.arange(17)]
    vowel = np.isin(known, list("aeiou"))
    consonant = np.array([c.isalpha() for c in known]) & ~vowel
    columns = np.where(np.stack([vowel, consonant], axis=1), 1, -1)
    return _split(
        "characters", windows[:, :-1], windows[:, 1:], columns, settings, True
    )


def _split(name, x, y, columns, settings: Settings, causal: bool = False) -> Task:
    train = slice(0, settings.train)
    test = slice(settings.train, settings.train + settings.test)
    return Task(name, x[train], y[train], x[test], y[test], np.array(columns), causal)


# --- the transformer ---


def initial(key, task: Task) -> dict[str, Any]:
    """Weights before training."""
    classes, keys = len(task.columns), iter(jax.random.split(key, 20))
    size = WIDTH // HEADS

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

    features = classes if task.causal else task.x.shape[2]
    return {
        "embed": normal(features, WIDTH, fan=1 if task.causal else features),
        "place": normal(task.x.shape[1], WIDTH, fan=4),
        "layers": [layer() for _ in range(LAYERS)],
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
        gates: (LAYERS, HEADS), factors of the outputs of the heads.
    """
    embedded = weights["embed"][x] if causal else x @ weights["embed"]
    hidden = embedded + weights["place"]
    seen = np.tril(np.ones((x.shape[1],) * 2, bool)) if causal else True
    seen_by_scores = []
    for gate, w in zip(gates, weights["layers"], strict=True):
        z = normalised(hidden, w["norm"][0], w["shift"][0])
        q, k, v = (
            jnp.einsum("pti,hgi->phtg", z, w[name])
            for name in ("queries", "keys", "values")
        )
        products = jnp.einsum("phtg,phsg->phts", q, k) / math.sqrt(q.shape[-1])
        omega = jax.nn.softmax(jnp.where(seen, products, -jnp.inf), axis=-1)
        heads = jnp.einsum("phts,phsg,hig->phti", omega, v, w["out"])
        seen_by_scores.append((hidden, z, omega, heads))
        hidden = hidden + jnp.einsum("phti,h->pti", heads, gate)
        z = normalised(hidden, w["norm"][1], w["shift"][1])
        hidden = hidden + jax.nn.gelu(z @ w["up"].T) @ w["down"].T
    hidden = hidden if causal else hidden.mean(axis=1, keepdims=True)
    z = normalised(hidden, weights["norm"], weights["shift"])
    return z @ weights["read"].T, seen_by_scores


ALL = np.ones((LAYERS, HEADS), np.float32)


@partial(jax.jit, static_argnames=("causal", "last"))
def losses(weights, x, y, gates, *, causal: bool, last: bool = False):
    """Cross entropy of every example, and whether its largest logit is right."""
    logits, _ = forward(weights, x, gates, causal=causal)
    y = y if causal else y[:, None]
    if last:
        logits, y = logits[:, -1:], y[:, -1:]
    found = optax.softmax_cross_entropy_with_integer_labels(logits, y)
    return found.mean(axis=1), (logits.argmax(axis=-1) == y).mean(axis=1)


def trained(key, task: Task, settings: Settings):
    """Weights after Adam with a falling rate."""
    start, order = jax.random.split(key)
    shape = settings.steps, settings.batch
    rows = jax.random.randint(order, shape, 0, len(task.x))
    return descended(initial(start, task), task.x, task.y, rows, causal=task.causal)


@partial(jax.jit, static_argnames="causal")
def descended(weights, x, y, rows, *, causal: bool):
    rate = optax.cosine_decay_schedule(3e-3, len(rows))
    optimiser = optax.chain(optax.clip_by_global_norm(1.0), optax.adam(rate))
    mean = lambda *args: losses(*args, ALL, causal=causal)[0].mean()

    def step(carry, batch):
        weights, state = carry
        slope = jax.grad(mean)(weights, x[batch], y[batch])
        updates, state = optimiser.update(slope, state)
        return (optax.apply_updates(weights, updates), state), None

    return jax.lax.scan(step, (weights, optimiser.init(weights)), rows)[0][0]


# --- scores ---


@partial(jax.jit, static_argnames="causal")
def mask_slopes(weights, x, y, *, causal: bool):
    """dL/dg of every example and head."""
    loss = lambda gates: losses(weights, x, y, gates, causal=causal, last=True)[0]
    return jax.jacfwd(loss)(ALL)


def scored(task: Task, weights, key, settings: Settings, file: Path):
    """Every score of all heads, layer by layer; those of theory with resamples."""
    x, y = task.x[: settings.scored], task.y[: settings.scored]
    _, layers = forward(weights, x, ALL, causal=task.causal)
    slopes = mask_slopes(weights, x, y, causal=task.causal)
    labels = task.columns[y[:, -1] if task.causal else y].astype(float)
    labels = (labels - labels.mean(axis=0)) / labels.std(axis=0)

    attention = [omega.swapaxes(0, 1) for _, _, omega, _ in layers]
    tokens = layers[0][0].swapaxes(1, 2)
    path_key, layer_key = jax.random.split(key)
    whole = theory(tokens, attention, labels, task, path_key, settings.resamples)
    by_layer = [
        theory(z.swapaxes(1, 2), [omega], labels, task, layer_key, settings.resamples)
        for (_, z, _, _), omega in zip(layers, attention, strict=True)
    ]
    values, readout = value_weights(task, weights)
    given = bpkr.Weights(
        jnp.eye(WIDTH),
        tuple(np.sqrt(WIDTH * HEADS) * np.float64(V) for V in values),
        np.sqrt(WIDTH) * np.float64(readout),
        (1.0,) * LAYERS,
    )
    U = bpkr.order_parameters(given)[0][0]
    np.savez_compressed(
        file,
        x=tokens,
        Y=labels[:, 0],
        **{f"attention_{l}": omega for l, omega in enumerate(attention, 1)},
        **{f"V_{l}": V for l, V in enumerate(values, 1)},
        a=readout[0],
    )
    by_name = {
        "theory": whole[0],
        "theory by layer": in_order(part[0] for part in by_layer),
        "trained values": without_skips(bpkr.head_scores(U, (HEADS + 1,) * LAYERS)),
        **baselines(layers, values, slopes),
        "random": np.random.default_rng(np.asarray(jax.random.key_data(key))).random(
            LAYERS * HEADS
        ),
    }
    rows = min(map(len, by_layer))
    layered = np.concatenate([part[:rows] for part in by_layer], axis=1)
    return by_name, {"theory": whole, "theory by layer": layered}


def value_weights(task: Task, weights) -> tuple[list[jax.Array], jax.Array]:
    """What the heads of every layer add to the hidden state, and its readout."""
    values = [
        jnp.einsum("hig,hgj->hij", w["out"], w["values"]) * w["norm"][0]
        for w in weights["layers"]
    ]
    return values, weights["norm"] * (task.columns.T @ weights["read"])


def baselines(layers, values, slopes) -> dict[str, np.ndarray]:
    """Scores that are in use.

    Args:
        layers: what `forward` gives of them.
        values: value weights of their heads.
        slopes: of `mask_slopes`.
    """
    norm = lambda out: jnp.linalg.norm(out, axis=-1).mean(axis=(0, 2))
    entropy = lambda omega: -(omega * jnp.log(omega + 1e-30)).sum(axis=-1).mean((1, 2))
    return {
        "gradient": in_order(jnp.abs(slopes).mean(axis=0)),
        "output norm": in_order(norm(out) for _, _, _, out in layers),
        "weights": in_order(jnp.linalg.norm(V, axis=(1, 2)) for V in values),
        "entropy": -in_order(
            entropy(omega.swapaxes(0, 1)) for _, _, omega, _ in layers
        ),
    }


def in_order(of_layers) -> np.ndarray:
    """Numbers of all heads, layer by layer."""
    return np.concatenate([np.asarray(layer, float) for layer in of_layers])


def theory(tokens, attention, labels, task: Task, key, resamples: int) -> np.ndarray:
    """Scores of the heads without the skips: the examples' first, then of resamples.

    The mean over the labels of the theory, each learned alone.  Resamples are the same
    examples for every label, and so are left out if one of them has no saddle point.
    """
    omega = bpkr.attention_arrays(attention, queries="rows")
    xi = bpkr.attended(tokens, omega, readout=task.readout, skip=1.0)
    skip, of_labels = (1.0,) * len(attention), []
    for Y in jnp.asarray(labels.T):
        given = trained_arrays.Scored(xi, Y, omega.heads, (), None, skip)
        problem = given.problem(width=WIDTH, temperature=TEMPERATURE)
        of_labels.append(bpkr.score(problem, key, resamples=resamples))
    rows = [[scores.score, *scores.resampled] for scores in of_labels]
    whole = 1 if any(scores.failed for scores in of_labels) else None
    heads = [not name.startswith("skip") for name in of_labels[0].names]
    return np.mean([of_label[:whole] for of_label in rows], axis=0)[:, heads]


def without_skips(scores) -> np.ndarray:
    """Scores of the heads alone; each layer's skip connection comes before them."""
    return np.concatenate([np.asarray(layer)[1:] for layer in scores])


# --- what the trained network loses ---


class Pruned(NamedTuple):
    """Loss and accuracy on the test set of the network with some heads.

    Attributes:
        number: rows by mask.
        loss, right: of every mask and example.
    """

    number: dict[bytes, int]
    loss: np.ndarray
    right: np.ndarray

    def of(self, off) -> int:
        """The row of the network without these heads."""
        return self.number[mask(off).tobytes()]


def mask(off) -> np.ndarray:
    gates = np.ones(LAYERS * HEADS, np.float32)
    gates[list(off)] = 0.0
    return gates


def pruned(task: Task, weights, orders) -> Pruned:
    """Every head alone, and the first 0, 1, 2, ... of each order."""
    sets = [[head] for head in range(LAYERS * HEADS)]
    sets += [order[:n] for order in orders for n in range(LAYERS * HEADS + 1)]
    gates = {mask(off).tobytes(): mask(off) for off in sets}
    evaluate = partial(losses, causal=task.causal, last=True)
    found = [
        evaluate(weights, task.x_test, task.y_test, gate.reshape(LAYERS, HEADS))
        for gate in gates.values()
    ]
    loss, right = (np.stack(x) for x in zip(*found, strict=True))
    return Pruned(dict(zip(gates, range(len(gates)))), loss, right)


def one_training(make: Callable, number: int, settings: Settings, folder: Path):
    """Rows of the three tables for one training of one task."""
    task = make(settings, number)
    train_key, score_key = jax.random.split(jax.random.key(number))
    weights = trained(train_key, task, settings)
    file = folder / f"{task.name}_{number}.npz"
    found, resampled = scored(task, weights, score_key, settings, file)
    orders = {name: [pruning.ascending(values)] for name, values in found.items()}
    random = np.random.default_rng(number)
    orders["random"] = [
        random.permutation(LAYERS * HEADS) for _ in range(settings.random_orders)
    ]
    every = pruned(
        task, weights, [order for group in orders.values() for order in group]
    )
    whole = every.of([])
    alone = [every.of([head]) for head in range(LAYERS * HEADS)]
    gain = every.loss[alone] - every.loss[whole]
    drop = every.right[whole] - every.right[alone]
    error = lambda x: x.std(axis=1, ddof=1) / np.sqrt(x.shape[1])
    base = {"task": task.name, "training": number}
    table = pd.DataFrame(
        base
        | {"head": [f"{l}.{h}" for l in (1, 2) for h in range(1, HEADS + 1)]}
        | {"loss gained": gain.mean(axis=1), "its error": error(gain)}
        | {"accuracy lost": drop.mean(axis=1), "error of that": error(drop)}
        | found
        | {
            f"{name}, error": x[1:].std(axis=0, ddof=1) if len(x) > 2 else math.nan
            for name, x in resampled.items()
        }
    )
    correlations = pd.DataFrame(
        base
        | {
            "score": list(found),
            "rank correlation": [
                pruning.rank_correlation(values, gain.mean(axis=1))
                for values in found.values()
            ],
            "accuracy": every.right[whole].mean(),
        }
    )
    curves = pd.DataFrame(
        base | {"score": name, "pruned": n, "accuracy": accuracy}
        for name, group in orders.items()
        for n in range(LAYERS * HEADS + 1)
        for accuracy in [np.mean([every.right[every.of(o[:n])].mean() for o in group])]
    )
    return table, correlations, curves


# --- tables and figure ---


def within_layers(table: pd.DataFrame) -> pd.Series:
    """Rank correlations among the heads of one layer, as a mean over both layers."""
    layer = table["head"].str[0]
    rows = {
        (task, score, training, number): pruning.rank_correlation(
            heads[score], heads["loss gained"]
        )
        for (task, training, number), heads in table.groupby(
            ["task", "training", layer]
        )
        for score in SCORES
    }
    found = pd.Series(rows).rename_axis(["task", "score", "training", "layer"])
    return found.groupby(["task", "score", "training"], sort=False).mean()


def summary(
    table: pd.DataFrame, correlations: pd.DataFrame, curves: pd.DataFrame
) -> pd.DataFrame:
    """Means over trainings with their errors, of a task and score each."""
    over = ["task", "score"]
    within = within_layers(table).groupby(over, sort=False)
    area = curves.groupby([*over, "training"], sort=False).accuracy.mean()
    found = correlations.groupby(over, sort=False)["rank correlation"]
    means = area.groupby(over, sort=False)
    rows = pd.DataFrame(
        {
            "rank correlation": found.mean(),
            "its error": found.sem(),
            "within layers": within.mean(),
            "error within layers": within.sem(),
            "mean accuracy of the curve": means.mean(),
            "error of that": means.sem(),
        }
    )
    return rows.reindex(found.mean().index).reset_index()


def figure(means: pd.DataFrame, curves: pd.DataFrame):
    """Rank correlations, and accuracy against the number of pruned heads."""
    import matplotlib.pyplot as plt

    plt.rcParams.update(plotting.SETTINGS)
    tasks = means.task.unique()
    drawn, axes = plt.subplots(
        2,
        len(tasks),
        figsize=(plotting.DOUBLE, 5.0),
        layout="constrained",
        squeeze=False,
    )
    colours = dict(zip(SCORES, ("k", "C0", "C2", "C1", "C3", "C4", "C5", "0.6")))
    for (top, bottom), task in zip(axes.T, tasks, strict=True):
        rows, of_task = means[means.task == task], curves[curves.task == task]
        trainings = of_task.training.nunique()
        chance = 1 / np.sqrt(trainings * (LAYERS * HEADS - 1))
        top.axvspan(-chance, chance, color="0.9", lw=0)
        top.axvline(0, color="0.6", lw=0.6)
        for place, row in enumerate(rows.itertuples(index=False)):
            top.errorbar(
                row[2], place, xerr=row[3], fmt="o", ms=4, color=colours[row[1]]
            )
        top.set_yticks(range(len(rows)), rows.score)
        top.invert_yaxis()
        top.set(
            title=f"{task}, {trainings} trainings",
            xlabel="rank correlation with the loss gained",
            xlim=(-1, 1),
        )
        for name, group in of_task.groupby("score", sort=False):
            by_number = group.groupby("pruned").accuracy
            bottom.errorbar(
                by_number.mean().index,
                by_number.mean(),
                by_number.sem(),
                color=colours[name],
                label=name,
                lw=1.0,
                elinewidth=0.7,
            )
        bottom.set(xlabel="number of pruned heads", ylabel="accuracy")
    axes[1, 0].legend(fontsize=7)
    return drawn


def training_tables(make: Callable, number: int, settings: Settings, folder: Path):
    """The tables of one training, computed or as they were stored before.

    Raises:
        SystemExit: they were stored with other settings.
    """
    file = folder / f"{make.__name__}_{number}.json"
    if not file.exists():
        rows = one_training(make, number, settings, folder)
        columns = [table.to_dict("list") for table in rows]
        content = settings._asdict() | dict(zip(TABLES, columns, strict=True))
        written = file.with_suffix(".tmp")
        written.write_text(json.dumps(content))
        written.replace(file)
    content = json.loads(file.read_text())
    others = {k: content[k] for k, v in settings._asdict().items() if content[k] != v}
    if others.keys() - {"trainings"}:
        raise SystemExit(f"{file} is of other settings: {others}; remove it.")
    return [pd.DataFrame(content[name]) for name in TABLES]


def main(arguments: list[str] | None = None) -> None:
    words = sys.argv[1:] if arguments is None else arguments
    statmech_attn.setup()
    settings = QUICK if "--quick" in words else Settings()
    folder = Path(words[0])
    folder.mkdir(parents=True, exist_ok=True)
    parts = []
    for number in range(settings.trainings):
        for make in (digits, characters):
            parts.append(training_tables(make, number, settings, folder))
            print(f"{make.__name__}, training {number}", flush=True)
    tables = [*map(pd.concat, zip(*parts, strict=True))]
    means = summary(*tables)
    for name, rows in zip((*TABLES, "summary"), (*tables, means), strict=True):
        rows.to_csv(folder / f"{name}.csv", index=False, float_format="%.4g")
    _, correlations, curves = tables
    once = correlations.groupby(["task", "training"]).accuracy.first()
    print(once.groupby("task").agg(["mean", "sem"]))
    print(means.to_string(index=False, float_format="%.3f"))
    drawn = figure(means, curves)
    plotting.save(drawn, folder, "transformer_heads", ["png"])


if __name__ == "__main__":
    main()
