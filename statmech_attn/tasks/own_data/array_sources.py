"""What a file of arrays gives: attentioned inputs, or tokens and their attention.

A set of examples is the training set, whose arrays are called x, Y, ..., or a test set,
x_test, Y_test, ... (`array_sets`).  A layer of heads is given by its products W of
query and key weights, by its attention on every example, or is a linear block.  All
names and shapes are checked by the headers of the file before an array is read.
"""

import itertools
import math
import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from statmech_attn import bpkr
from statmech_attn.bpkr import Attention, head_names, prior
from statmech_attn.tasks.own_data.array_files import ArrayFile


_OF_LAYER = re.compile(r"(heads|attention)_(\d{1,4})(_test(_.*)?)?")
_WORDS = (
    "A layer is heads_{l}, W_K^T W_Q / sqrt(G) of every head, attention_{l}, its "
    "attention, or {l} among linear_blocks"
)


class Source(NamedTuple):
    """Where the attentioned inputs of a file are from.

    `layers` has the array of every layer, None for a linear block, and is empty where
    the file has the attentioned inputs xi.  `heads` counts the heads per layer in the
    file, `kept` are those that are taken, from zero; `skip` is None for a layer
    without, and `features` is N_0.
    """

    file: ArrayFile
    layers: tuple[str | None, ...]
    heads: tuple[int, ...]
    kept: tuple[tuple[int, ...], ...]
    skip: prior.Skip
    features: int

    @property
    def counts(self) -> tuple[int, ...]:
        """Heads per layer of those that are taken."""
        return tuple(len(layer) for layer in self.kept)

    @property
    def branches(self) -> tuple[int, ...]:
        """Ways through every layer by its skip connection and the heads taken."""
        return prior.branches(self.counts, self.skip)

    @property
    def of_heads(self) -> list[str]:
        """Arrays of the layers that are given by products of weights."""
        return [name for name in self.layers if name and name.startswith("heads")]

    @property
    def of_attention(self) -> list[str]:
        """Arrays of the layers that are given by their attention."""
        return [name for name in self.layers if name and name not in self.of_heads]

    def names(self, *, numbered: bool = False) -> tuple[str, ...]:
        """Names of the heads taken, and of skip connections before those of a layer.

        Heads without names are called layer.head where `numbered`; there are none
        otherwise.
        """
        every = _head_names(self.file, self.heads)
        if not every and not numbered and self.counts == self.heads:
            return ()
        every = every or head_names(self.heads)
        first, names = np.cumsum([0, *self.heads]), []
        for layer, (chosen, b) in enumerate(zip(self.kept, self.skip, strict=True)):
            names += [f"skip {layer + 1}"] * (b is not None)
            names += [every[first[layer] + head] for head in chosen]
        return tuple(names)

    def check(self, end: str, examples: int) -> None:
        """Refuse arrays of a set that are missing, or of another shape.

        `end` is that of the names of the set's arrays, `examples` the number of its
        labels.
        """
        file, sizes = self.file, {"P": (examples, f"labels Y{end}")}
        if end:
            sizes["N_0"] = self.features, "as in the training set"
        if not self.layers:
            sizes["paths"] = math.prod(self.branches), "by heads and skip"
            file.require_shape(f"xi{end}", ("P", "N_0", "paths"), sizes)
            return
        for layer in self.of_heads:
            _, N_0, _ = file.require_shape(layer, ("H", "N_0", "N_0"), sizes)
            sizes.setdefault("N_0", (N_0, layer))
        for layer in self.of_attention:
            if len(shape := file.shape(layer + end)) == 4:
                sizes.setdefault("T", (shape[3], layer + end))
        *_, tokens = file.require_shape(f"x{end}", ("P", "N_0", "T"), sizes)
        sizes["T"] = tokens, f"x{end}"
        for layer, heads in zip(self.layers, self.heads, strict=True):
            if layer in self.of_attention:
                number = {"H": (heads, layer)} if end else {}
                axes = ("H", "P", "T", "T")
                file.require_shape(f"{layer}{end}", axes, sizes | number)
        for name in ("real", "lengths"):
            if end and name in file and f"{name}{end}" not in file:
                raise ValueError(
                    f"there is {name} and no {name}{end}; write both, also where no "
                    "token is padding."
                )
        if f"real{end}" in file:
            file.require_shape(f"real{end}", ("P", "T"), sizes)
        if f"lengths{end}" in file:
            file.require_shape(f"lengths{end}", ("P",), sizes)
            if f"real{end}" in file:
                raise ValueError(
                    f"there are real{end} and lengths{end}, which both say what is "
                    "padding; keep one of them."
                )

    def inputs(
        self,
        end: str,
        rows: Int[np.ndarray, " n"] | None,
        readout: str | int,
        queries: str,
    ) -> Float[Array | np.ndarray, "P N_0 Pi"]:
        """Attentioned inputs of a set that has been checked.

        `rows` are the examples that are taken, all for None; `readout` is as in
        `bpkr.attended`, and `queries` are "columns" or "rows" of attention.
        """
        among = slice(None) if rows is None else rows
        if not self.layers:
            return self.file.numbers(f"xi{end}")[among][:, :, self._paths()]
        x = self.file.numbers(f"x{end}")[among]
        real = self._real(end, x.shape[2])
        real = None if real is None else real[among]
        products = self._products()
        if real is None and len(self.of_heads) == len(products):
            heads = bpkr.heads_from_products(products)
            return bpkr.attentioned_inputs(x, heads, readout=readout, skip=self.skip)
        attention = self._attention_of(end, among, x, products, real, queries)
        return bpkr.attended(x, attention, readout=readout, skip=self.skip)

    def _products(self) -> list[np.ndarray | None]:
        """Products of weights of every layer that is given by them."""
        return [
            self.file.numbers(layer, chosen) if layer in self.of_heads else None
            for layer, chosen in zip(self.layers, self.kept, strict=True)
        ]

    def _attention_of(self, end, among, x, products, real, queries) -> Attention:
        """Attention of all layers, by products of weights or as it is given."""
        layers: list = [None] * len(products)
        if self.of_heads:
            layers = list(bpkr.attention_of(x, products, real=real).layers)
        for number, (layer, chosen) in enumerate(zip(self.layers, self.kept)):
            if layer in self.of_attention:
                omega = self.file.numbers(f"{layer}{end}", chosen, finite=False)
                layers[number] = _attention(
                    f"{layer}{end}",
                    number,
                    omega[:, among],
                    queries,
                    real,
                    f"real{end}",
                )
        return Attention(tuple(layers), None if real is None else jnp.asarray(real))

    def _real(self, end: str, tokens: int) -> np.ndarray | None:
        """Which tokens are no padding, None where nothing says so."""
        if f"real{end}" in self.file:
            real = self.file.truths(f"real{end}")
            if not (some := real.any(axis=1)).all():
                raise ValueError(
                    f"real{end}: example {int(np.argmin(some))} has no token that is "
                    "no padding; real is True, or 1, for tokens of the example."
                )
            return real
        if f"lengths{end}" not in self.file:
            return None
        lengths = self.file.whole(f"lengths{end}")
        if not ((1 <= lengths) & (lengths <= tokens)).all():
            example = int(np.argmax((lengths < 1) | (lengths > tokens)))
            raise ValueError(
                f"lengths{end} must be from 1 to T = {tokens}; got "
                f"{lengths[example]} for example {example}."
            )
        return np.arange(tokens) < lengths[:, None]

    def _paths(self) -> Int[np.ndarray, " Pi"]:
        """Columns of xi whose paths pass through the heads taken, or skips."""
        ways = prior.branches(self.heads, self.skip)
        taken = [
            [0, *(h + 1 for h in heads)] if b is not None else heads
            for heads, b in zip(self.kept, self.skip)
        ]
        return np.arange(math.prod(ways)).reshape(ways)[np.ix_(*taken)].ravel()


def source(
    file: ArrayFile,
    examples: Mapping[str, int],
    *,
    skip: float | Sequence[float] = 0.0,
    heads: Sequence[str] = (),
) -> Source:
    """What gives the attentioned inputs of a file, with all shapes checked.

    `examples` is the number of labels of every set, by the end of the names of its
    arrays; `heads` are those that are taken, by name or as layer.head, all of a layer
    of which none is named.
    """
    layers: tuple[str | None, ...] = ()
    if "xi" in file:
        _require_xi_alone(file)
        shape = file.require_shape("xi", ("P", "N_0", "paths"))
        counts = _counts_of_xi(file, shape[2])
    else:
        file.require_known()
        shape = file.require_shape("x", ("P", "N_0", "T"))
        layers = _layers(file)
        counts = tuple(1 if name is None else _count(file, name) for name in layers)
    every, factors = _kept(counts, (), ()), prior.skips(skip, len(counts))
    attended = Source(file, layers, counts, every, factors, shape[1])
    for end, count in examples.items():
        attended.check(end, count)
    names = _head_names(file, counts) or head_names(counts)
    return attended._replace(kept=_kept(counts, heads, names))


def _require_xi_alone(file: ArrayFile) -> None:
    """Refuse attentioned inputs beside what they are made from."""
    others = ["x"] if "x" in file else [n for n in file.stored if _OF_LAYER.match(n)]
    if others:
        raise ValueError(
            f"there are xi and {others[0]}; a file holds attentioned inputs, or tokens "
            "with their heads or attention: keep one of them."
        )


def _counts_of_xi(file: ArrayFile, paths: int) -> tuple[int, ...]:
    """Heads per layer of attentioned inputs."""
    if "heads" not in file:
        raise ValueError(
            "xi needs heads, the number of heads of every layer: with its "
            f"{paths} paths heads = [{paths}] for one layer without a skip connection."
        )
    counts = tuple(int(count) for count in file.whole("heads").ravel())
    if not counts or min(counts) < 1:
        raise ValueError(
            "heads must hold the number of heads of every layer, at least 1; got "
            f"{list(counts)}."
        )
    return counts


def _count(file: ArrayFile, name: str) -> int:
    """Heads of a layer."""
    products = name.startswith("heads")
    axes = ("H", "N_0", "N_0") if products else ("H", "P", "T", "T")
    return file.require_shape(name, axes)[0]


def _layers(file: ArrayFile) -> tuple[str | None, ...]:
    """The array of every layer, None for a linear block; each has one of the two."""
    blocks: set[int] = set()
    if "linear_blocks" in file:
        blocks = {int(number) for number in file.whole("linear_blocks").ravel()}
    numbered = {
        m.group(): int(m[2]) for m in map(_OF_LAYER.fullmatch, file.stored) if m
    }
    last = max([1, *numbered.values(), *blocks])
    if min([1, *numbered.values(), *blocks]) < 1:
        raise ValueError(
            "layers are counted from 1, heads_1 or attention_1; there are "
            f"{file.names()}."
        )
    layers: list[str | None] = []
    for number in range(1, last + 1):
        names = [n for n in (f"heads_{number}", f"attention_{number}") if n in file]
        ways = [*names, *["linear_blocks"] * (number in blocks)]
        if len(ways) > 1:
            raise ValueError(
                f"layer {number} is given by {' and by '.join(ways)}; keep one of them."
            )
        if not ways:
            raise ValueError(
                f"no heads_{number} and no attention_{number}; there are "
                f"{file.names()}. {_WORDS.format(l=number)}."
            )
        layers.append(names[0] if names else None)
    if not any(layers):
        raise ValueError(
            f"all {len(layers)} layers are linear blocks; a layer at least needs heads."
        )
    return tuple(layers)


def _head_names(file: ArrayFile, heads: Sequence[int]) -> tuple[str, ...]:
    """Names of all heads, none where the file has none."""
    if "head_names" not in file:
        return ()
    names, layers = file.texts("head_names"), ", ".join(map(str, heads))
    twice = sorted({name for name in names if names.count(name) > 1})
    empty = "" in map(str.strip, names)
    if len(names) != sum(heads) or twice or empty:
        got = "an empty one" if empty else f"{len(names)}"
        got = f"{twice[0]!r} twice" if twice else got
        raise ValueError(
            f"head_names must be {sum(heads)} different names, one for every head of "
            f"the layers with {layers} heads; got {got}."
        )
    return tuple(names)


def _kept(
    heads: Sequence[int], chosen: Sequence[str], names: Sequence[str]
) -> tuple[tuple[int, ...], ...]:
    """Heads of every layer that are taken, counted from zero."""
    numbers = head_names(heads)
    places = dict(zip(numbers, itertools.count())) | dict(zip(names, itertools.count()))
    for word in chosen:
        if word not in places:
            named = f" or names {', '.join(names)}" if list(names) != numbers else ""
            raise ValueError(
                f"there is no head {word}; the layers have "
                f"{', '.join(map(str, heads))} heads, with numbers such as 1.1 (layer "
                f"and head){named}."
            )
    taken, first = {places[word] for word in chosen}, np.cumsum([0, *heads])
    of_layers = (
        tuple(h for h in range(count) if first[layer] + h in taken)
        for layer, count in enumerate(heads)
    )
    return tuple(some or tuple(range(count)) for some, count in zip(of_layers, heads))


def _attention(name: str, layer: int, omega: np.ndarray, queries: str, real, mask: str):
    """Attention of a layer (from 0), once it is known that its weights add up to one.

    `mask` is the name of the array of real tokens, for messages.
    """
    try:
        below = [None] * layer
        attention = bpkr.attention_arrays([*below, omega], queries=queries, real=real)
        return attention.layers[layer]
    except ValueError as error:
        words = str(error).removeprefix("attention: ")
        words = re.sub(f"^in layer {layer + 1},? ", "", words)
        words = words.replace(f"layer {layer + 1}", "it")
        raise ValueError(f"{name}: {words.replace('real=', mask)}") from None
