"""Presets that come with the package: patterns of the 1-bit network, and tasks."""

from collections.abc import Iterator

import numpy as np

from statmech_attn import dmft, tasks
from statmech_attn.options import said
from statmech_attn.storage import toml
from statmech_attn.studies import ONE_SHOT_PRESETS as TRAININGS


KINDS = "ovqk"  # of patterns: output, value, query, key
WIDEST = 64  # signs of a line


def listed() -> Iterator[str]:
    """Every preset in a line, with the key that takes its name."""
    yield 'patterns, for network.patterns = "NAME":'
    for name in dmft.presets():
        yield f"  {_sizes(name)}"
    yield 'hidden-Markov tasks, for task.preset = "NAME":'
    for name in tasks.hidden_markov.PRESETS:
        yield f"  {name}"
    yield 'trainings on one-shot images, for preset = "NAME":'
    for name in TRAININGS:
        yield f"  {name}"
    yield "statmech-attn presets NAME shows one of them"


def described(name: str) -> Iterator[str]:
    """Lines that describe a preset, or a pattern file."""
    if name in tasks.hidden_markov.PRESETS:
        return _hidden_markov(name)
    if name in TRAININGS:
        return iter(toml.dumps({"preset": name} | TRAININGS[name]).splitlines())
    if name not in dmft.presets() and not name.endswith(".json"):
        names = [*dmft.presets(), *tasks.hidden_markov.PRESETS, *TRAININGS]
        raise ValueError(
            f"no preset {name!r}; presets: {', '.join(names)}; or name a .json file."
        )
    return _patterns(name)


def _sizes(name: str) -> str:
    file = dmft.load(name)
    return (
        f"{name}: M = {file.patterns.n_patterns} patterns, "
        f"{file.patterns.n_classes} site classes, context C = {file.context}, "
        f"N_p = {file.patterns.n_bits}, gamma = {file.gamma:.6g}, "
        f"epsilon = {file.epsilon:g}"
    )


def _patterns(name: str) -> Iterator[str]:
    """Sizes, signs by site class and by positional bit, overlaps, and the start."""
    file = dmft.load(name)
    patterns = file.patterns
    yield _sizes(name)
    shares = ", ".join(f"{share:.4g}" for share in patterns.fractions[:WIDEST])
    yield f"fractions of the site classes: {shares}"
    for words, signs in (
        ("semantic part: a column for each site class", patterns.semantic),
        ("positional part: a column for each bit", patterns.positional),
    ):
        yield words
        for kind, rows in zip(KINDS, signs, strict=True):
            for number, row in enumerate(rows, start=1):
                cut = "..." if row.size > WIDEST else ""
                line = "".join("+" if sign > 0 else "-" for sign in row[:WIDEST])
                yield f"  {kind}{number} {line}{cut}"
    if file.checkpoint is not None:
        window, clock = file.checkpoint
        size = " x ".join(map(str, np.shape(window)))
        yield f"initial condition: a window of {size} attention values at clock {clock}"


def _hidden_markov(name: str) -> Iterator[str]:
    """The table [task] of a preset, with a sentence for every value."""
    changes, heads = tasks.hidden_markov.PRESETS[name]
    options = tasks.options.Task(**changes)
    yield "[task]"
    yield 'name = "hidden-markov"'
    yield f'preset = "{name}"'
    yield f"heads = {toml.inline([list(layer) for layer in heads])}"
    for key, (sentence, unit) in said(type(options)).items():
        unit = f" ({unit})" if unit else ""
        yield f"{key} = {toml.inline(getattr(options, key))}  # {sentence}{unit}"
