"""From a checked study to networks, parameters, starts and labelled axes."""

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import PyTree

from statmech_attn import dmft
from statmech_attn.dmft import PatternFile, Patterns
from statmech_attn.dynamics import diagrams
from statmech_attn.kinds import GENERATORS
from statmech_attn.studies.network.tables import NetworkSpec, ParametersSpec, StartSpec
from statmech_attn.studies.tables import MAX_POINTS, Range


class Model(NamedTuple):
    """A network with the patterns it came from and the defaults stored beside them."""

    net: dmft.Network
    patterns: Patterns
    file: PatternFile | None


def check_refined(axes: diagrams.Axes, levels: int) -> None:
    """Refuse axes that cannot be refined, or not so often."""
    try:
        size = math.prod(map(len, axes.refined(levels).values))
    except ValueError as error:
        raise ValueError(f"run.{error}") from None
    if size > MAX_POINTS:
        raise ValueError(
            f"run.refine: {levels} levels make a finest grid of {size} points, "
            f"more than {MAX_POINTS}."
        )


def model(spec: NetworkSpec) -> Model:
    """The network of a study."""
    if generator := spec.generator:
        draw = GENERATORS.part(generator, "draw")
        sizes = {name: getattr(spec, name) for name in generator.sizes}
        file, patterns = None, draw(jax.random.key(spec.seed or 0), **sizes)
        context = spec.context or 1
    else:
        file = dmft.load(spec.patterns)
        patterns, context = file.patterns, spec.context or file.context
    if spec.fractions is not None:
        patterns = dmft.site_classes(
            patterns.semantic, spec.fractions, patterns.positional
        )
    net = dmft.network(patterns, context=context)
    return Model(dmft.stretched(net, spec.stretch), patterns, file)


def defaults(parameters: Mapping[str, Any], file: PatternFile | None) -> dict[str, Any]:
    """Parameters with what is missing taken from a pattern file, if it has that."""
    filled = {n: x for n, x in parameters.items() if x is not None or n != "redrawn"}
    for name, value in filled.items():
        if value is None:
            filled[name] = getattr(file, name, None)
        if filled[name] is None:
            raise ValueError(
                f"parameters.{name}: is missing (no file to take it from)."
            )
    return filled


def axes(
    spec: ParametersSpec, file: PatternFile | None, points: str | None = None
) -> diagrams.Axes:
    """Scanned and fixed parameters; a file's gamma and epsilon fill what is missing."""
    values, columns = dict(spec), columns_of(points)
    if unknown := [name for name in columns if name not in values]:
        raise ValueError(
            f"points: {unknown[0]} is no parameter; there are {', '.join(values)}."
        )
    values = {n: x for n, x in values.items() if n not in columns or x is not None}
    make = lambda table: dmft.parameters(**table)
    along = grid(defaults(values, file), make, columns)
    known = {**along.fixed, **along.scanned, **along.columns}
    ends = {name: np.array([np.min(x), np.max(x)]) for name, x in known.items()}
    make({name: ends[name] for name in along.parameters})  # refuses before any program
    return along


def columns_of(points: str | None) -> dict[str, np.ndarray]:
    """Parameters of a list of points, if there is a file with one."""
    return {} if points is None else diagrams.read_points(points)


def grid(
    parameters: Mapping[str, float | list[float] | Range],
    make: Callable[[dict[str, np.ndarray]], PyTree],
    columns: Mapping[str, np.ndarray] = {},
) -> diagrams.Axes:
    """Scanned and fixed parameters; the first one is scanned where none is.

    `make` gives the parameters of the system from arrays by name; `columns` are a list
    of points, which is scanned in place of `parameters`.
    """
    scanned, fixed = {}, {}
    for name, value in parameters.items():
        if isinstance(value, Range | list):
            scanned[name] = numbers(value)
        else:
            fixed[name] = float(value)
    if columns:
        if scanned:
            raise ValueError(
                f"parameters.{min(scanned)}: must be one number beside points."
            )
        return diagrams.listed(columns, fixed, make)
    if not scanned:
        first = next(iter(parameters))
        scanned[first] = np.array([fixed.pop(first)])
    for name, values in scanned.items():
        if len(np.unique(values)) < len(values):
            raise ValueError(f"parameters.{name}: values must be distinct.")
    if len(scanned) > 2:
        *most, last = parameters
        names = f"{', '.join(most)} and {last}"
        raise ValueError(
            f"parameters: scan at most two of {names}, or give a list as points."
        )
    size = math.prod(map(len, scanned.values()))
    if size > MAX_POINTS:
        raise ValueError(f"parameters: {size} points, more than {MAX_POINTS}.")
    return diagrams.Axes(tuple(scanned), tuple(scanned.values()), fixed, make)


def numbers(values: float | list[float] | Range) -> np.ndarray:
    """The numbers that a table gives as one, as a list, or as a range."""
    if isinstance(values, Range):
        return np.linspace(values.start, values.stop, values.num)
    return np.atleast_1d(np.asarray(values, float))


def only_beta(axes: diagrams.Axes, kind: str) -> diagrams.Axes:
    """Refuse axes that a kind of study does not have; beta becomes an axis."""
    extra = [name for name in axes.names if name != "beta"]
    if extra:
        raise ValueError(
            f"parameters.{extra[0]}: a {kind} study takes several beta only; "
            "give one number."
        )
    return axes


def start(
    run: StartSpec, model: Model, params: dmft.Parameters, repeat: int = 1
) -> dmft.State:
    """Start states of flat points; the index of the start runs fastest."""
    index = np.tile(np.arange(repeat), params.beta.size // repeat)
    return starts(run, model, params, index)


def starts(
    run: StartSpec, model: Model, params: dmft.Parameters, index: np.ndarray
) -> dmft.State:
    """Start states of flat points, each with an index of its random start."""
    how = _how(run, model)
    if how == "checkpoint":
        if model.file is None:
            raise ValueError(
                'run.start: "checkpoint" needs a pattern file that holds one.'
            )
        return dmft.from_checkpoint(model.net, params, model.file)
    if how == "token":
        return dmft.from_row(model.net, params, run.row)
    key = jax.random.key(run.seed)
    shape = (model.net.context, model.net.n_patterns)
    draw = lambda i: jax.random.uniform(
        jax.random.fold_in(key, i), shape, minval=-1, maxval=1
    )
    windows = jnp.moveaxis(jax.vmap(draw)(jnp.asarray(index)), 0, -1)
    return dmft.from_window(model.net, params, windows, 0)


def describe_start(run: StartSpec, model: Model) -> str:
    """The start in words; files with the same words start alike."""
    how = _how(run, model)
    words = {"token": f"token {run.row}", "random": f"random {run.seed}"}.get(how, how)
    moved = getattr(run, "mean_field_transient", run.transient)
    return words + (f", {moved} mean-field steps later" if moved else "")


def _how(run: StartSpec, model: Model) -> str:
    """The kind of start; a file's checkpoint where it fits, else the token W^o_row."""
    if run.start is not None and not run.start.startswith("continue"):
        return run.start
    checkpoint = model.file.checkpoint if model.file is not None else None
    fits = checkpoint is not None and len(checkpoint[0]) == model.net.context
    return "checkpoint" if fits else "token"
