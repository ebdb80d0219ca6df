"""Arrays of a trained network, for the scores of its heads (docs/data.md).

A file of `tasks.arrays` without a test set, and optionally with value weights:

    V_1, V_2, ...                 (H, N, N)           trained values, as they act
    a                             (N,) or (K, N)      and readout

A hidden state is a sum over the heads of V_h x Omega_h, without factors; what stands
between values and readout, such as an output projection, is multiplied into them.
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn import bpkr
from statmech_attn.bpkr import prior
from statmech_attn.tasks import arrays as files


class Scored(NamedTuple):
    """Attentioned inputs and labels of one set, for the scores of its heads.

    Attributes:
        xi: attentioned inputs.
        Y: labels.
        heads: heads per layer, of those that were chosen.
        names: of the heads, each skip connection before those of its layer.
        weights: trained value weights, None where the file has none.
        skip: factors of the skip connections, as in `bpkr.Problem`.
    """

    xi: Float[Array, "P N_0 Pi"]
    Y: Float[Array, "P *K"]
    heads: tuple[int, ...]
    names: tuple[str, ...]
    weights: bpkr.Weights | None
    skip: prior.Skip

    def problem(
        self,
        *,
        temperature: float,
        width: float | None = None,
        memory_limit: int = bpkr.MEMORY_LIMIT,
    ) -> bpkr.Problem:
        """The learning problem, with such a sigma_0^2 that f has mean variance 1.

        That is its variance under the prior of large widths, as labels -1 and 1 have.

        Args:
            temperature: variance of the labels.
            width: of the network of the theory; N_0 when omitted.
            memory_limit: bytes that kernels and a Newton step may take.

        Raises:
            ValueError: as `bpkr.Problem`, or inputs that are all zero.
        """
        ones = np.ones(len(self.heads) + 2)
        (U, *_), _ = bpkr.gaussian_process_limit(self.heads, ones, skip=self.skip)
        weight = np.diagonal(U) / prior.path_shares(self.heads, self.skip)
        variance = float((self.xi**2).sum(axis=1).mean(axis=0) @ weight)
        N_0 = self.xi.shape[1]
        if not variance > 0:
            raise ValueError("the attentioned inputs are all zero.")
        return bpkr.Problem(
            self.xi,
            self.Y,
            heads=self.heads,
            width=N_0 if width is None else width,
            temperature=temperature,
            variances=[N_0 / variance, *ones[1:]],
            skip=self.skip,
            memory_limit=memory_limit,
        )


def load_scored(
    path: str | Path,
    *,
    readout: str | int = "last",
    queries: str = "columns",
    skip: float | Sequence[float] = 0.0,
    heads: Sequence[tuple[int, int]] = (),
    classes: bool = False,
    memory_limit: int = bpkr.MEMORY_LIMIT,
) -> Scored:
    """Read one set of a file of arrays, and its trained value weights if it has them.

    Args:
        path, readout, queries, skip: as in `load`; the file needs no test set.
        heads: pairs (layer, head), counted from one, of those that are taken; all of a
            layer of which none is named.
        classes: whether Y holds numbers of classes: two become -1 and 1, more become
            one-hot columns.
        memory_limit: bytes that kernels and a Newton step may take.

    Raises:
        OSError: there is no such file.
        ValueError: as `load`, or more paths than fit in memory.

    Example:
        >>> import jax, tempfile
        >>> from statmech_attn.tasks import arrays as files
        >>> jax.config.update("jax_enable_x64", True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     given = load_scored(files.write_example(folder), heads=[(1, 2)])
        >>> given.heads, given.names
        ((1, 2), ('decisive', 'chosen', 'noise'))
    """
    path = Path(path)
    arrays = files.read(path)
    try:
        return _scored(arrays, readout, queries, skip, heads, classes, memory_limit)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def _scored(
    arrays: dict[str, Any], readout, queries, skip, chosen, classes, memory_limit
) -> Scored:
    Y = _classes(arrays) if classes else files.labels_of(arrays, "Y", outputs=True)
    counts, N_0 = _sizes(arrays)
    names = files.head_names(arrays, counts) or tuple(
        f"{layer}.{head}"
        for layer, count in enumerate(counts, 1)
        for head in range(1, count + 1)
    )
    kept = _kept(counts, chosen)
    first = np.cumsum([0, *counts])
    names = tuple(names[first[l] + h] for l, layer in enumerate(kept) for h in layer)
    given = prior.skips(skip, len(counts))
    branches = prior.branches([len(layer) for layer in kept], given)
    outputs = 1 if Y.ndim == 1 else Y.shape[1]
    most = bpkr.most_paths(len(Y), N_0, outputs, memory_limit)
    if (n_paths := math.prod(branches)) > most:
        words = f" of {outputs} outputs" if outputs > 1 else ""
        raise ValueError(
            f"{n_paths} attention paths{words} with {len(Y)} examples of {N_0} "
            f"features do not fit into {memory_limit / 2**30:.3g} GiB; {most} do: "
            "choose some of the heads, or take fewer examples."
        )
    arrays = _with_heads(arrays, kept, counts, given)
    if "xi" in arrays:
        xi = files.numbers(arrays, "xi")
    else:
        xi, _ = files.attended_set(arrays, "", readout, queries, skip)
    if len(xi) != len(Y):
        raise ValueError(f"there are {len(xi)} examples and {len(Y)} labels Y.")
    heads = tuple(len(layer) for layer in kept)
    return Scored(
        jnp.asarray(xi),
        jnp.asarray(Y),
        heads,
        files.with_skips(names, heads, skip),
        _value_weights(arrays, heads, given),
        given,
    )


def _sizes(arrays: Mapping[str, Any]) -> tuple[tuple[int, ...], int]:
    """Heads per layer and the number of features, before anything is computed."""
    name = "xi" if "xi" in arrays else "x"
    inputs = files.numbers(arrays, name)
    if inputs.ndim != 3:
        raise ValueError(f"{name} must have three axes; got shape {inputs.shape}.")
    if name == "xi":
        return files.head_counts(arrays), inputs.shape[1]
    return files.layer_counts(*files.layers_of(arrays, "")), inputs.shape[1]


def _kept(counts: Sequence[int], chosen) -> list[list[int]]:
    """Heads of every layer that are taken, counted from zero.

    Raises:
        ValueError: a head that there is not.
    """
    for layer, head in chosen:
        if not (1 <= layer <= len(counts) and 1 <= head <= counts[layer - 1]):
            raise ValueError(
                f"there is no head {layer}.{head}; the layers have "
                f"{', '.join(map(str, counts))} heads."
            )
    named = [
        sorted({h - 1 for l, h in chosen if l == n + 1}) for n in range(len(counts))
    ]
    return [heads or list(range(count)) for heads, count in zip(named, counts)]


def _with_heads(arrays: dict[str, Any], kept, counts, skip) -> dict[str, Any]:
    """The arrays of some of the heads alone."""
    if all(len(heads) == count for heads, count in zip(kept, counts)):
        return arrays
    arrays = dict(arrays)
    for layer, heads in enumerate(kept, 1):
        for name in (f"heads_{layer}", f"attention_{layer}", f"V_{layer}"):
            if name in arrays:
                arrays[name] = np.asarray(arrays[name])[heads]
    if "xi" in arrays:
        ways = prior.branches(counts, skip)
        taken = [
            [0, *(h + 1 for h in heads)] if b is not None else heads
            for heads, b in zip(kept, skip)
        ]
        paths = np.arange(math.prod(ways)).reshape(ways)[np.ix_(*taken)].ravel()
        xi = np.asarray(arrays["xi"])
        if xi.ndim == 3 and xi.shape[2] == math.prod(ways):
            arrays["xi"] = xi[:, :, paths]
    return arrays


def _value_weights(arrays: Mapping[str, Any], heads, skip) -> bpkr.Weights | None:
    """Trained values and readout as they act, in the normalisation of the theory.

    Raises:
        ValueError: some of the arrays are missing or do not fit each other.
    """
    names = [f"V_{layer}" for layer in range(1, len(heads) + 1)]
    if not {"a", *names} & arrays.keys():
        return None
    V, a = [files.numbers(arrays, name) for name in names], files.numbers(arrays, "a")
    N = a.shape[-1] if a.ndim in (1, 2) else 0
    for name, values, count in zip(names, V, heads, strict=True):
        if values.shape != (count, N, N):
            raise ValueError(
                f"{name} must have shape (H, N, N) = {(count, N, N)} as the heads and "
                f"the readout a of shape (N,) or (K, N) say; got {values.shape}."
            )
    scaled = tuple(
        jnp.asarray(v * math.sqrt(N * count)) for v, count in zip(V, heads, strict=True)
    )
    return bpkr.Weights(jnp.eye(N), scaled, jnp.asarray(a * math.sqrt(N)), skip)


def _classes(arrays: Mapping[str, Any]) -> np.ndarray:
    """Labels of classes: -1 and 1 of two, one-hot columns of more.

    Raises:
        ValueError: no whole numbers of two classes or more.
    """
    Y = files.numbers(arrays, "Y")
    numbers, codes = np.unique(Y, return_inverse=True)
    if Y.ndim != 1 or (Y != np.round(Y)).any() or not 2 <= len(numbers) <= len(Y) / 2:
        raise ValueError(
            "Y must hold the numbers of two classes or more, with two examples of each "
            f"on average; got shape {Y.shape} with {len(numbers)} values."
        )
    return 2.0 * codes - 1 if len(numbers) == 2 else np.eye(len(numbers))[codes]
