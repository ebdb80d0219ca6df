"""Arrays of a trained network, for the scores of its heads (docs/data.md).

A file of `tasks.arrays` without a test set, and optionally with value weights:

    V_1, V_2, ...                 (H, N, N)           trained values, as they act
    a                             (N,) or (K, N)      and readout

A hidden state is a sum over the heads of V_h x Omega_h, without factors; what stands
between values and readout, such as an output projection, is multiplied into them.
"""

import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn import bpkr
from statmech_attn.bpkr import MEMORY_LIMIT, most_paths, prior
from statmech_attn.tasks.own_data import array_files
from statmech_attn.tasks.own_data.array_files import ArrayFile
from statmech_attn.tasks.own_data.array_labels import labels
from statmech_attn.tasks.own_data.array_sources import Source, source


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
        memory_limit: int = MEMORY_LIMIT,
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
            raise ValueError(
                "the attentioned inputs are all zero, or so small that their squares "
                "are."
            )
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
    heads: Sequence[str] = (),
    classes: bool = False,
    memory_limit: int = MEMORY_LIMIT,
) -> Scored:
    """Read one set of a file of arrays, and its trained value weights if it has them.

    Args:
        path, readout, queries, skip: as in `load`; the file needs no test set.
        heads: those that are taken, by name or as layer.head; all of a layer of which
            none is named.
        classes: whether Y holds numbers of classes: two become -1 and 1, more become
            one-hot columns.
        memory_limit: bytes that kernels and a Newton step may take.

    Raises:
        OSError: there is no such file.
        ValueError: as `load`, or more paths than fit in memory.

    Example:
        >>> import jax, tempfile
        >>> from statmech_attn.tasks import arrays
        >>> jax.config.update("jax_enable_x64", True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     scored = load_scored(arrays.write_example(folder), heads=["1.2"])
        >>> scored.heads, scored.names
        ((1, 2), ('decisive', 'chosen', 'noise'))
    """
    path = Path(path)
    try:
        file = array_files.opened(path)
        return _scored(file, readout, queries, skip, heads, classes, memory_limit)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def _scored(
    file: ArrayFile, readout, queries, skip, chosen, classes, memory_limit
) -> Scored:
    Y = _classes(file) if classes else labels(file, "Y", outputs=True).Y
    attended = source(file, {"": len(Y)}, skip=skip, heads=chosen)
    outputs = 1 if Y.ndim == 1 else Y.shape[1]
    most = most_paths(len(Y), attended.features, outputs, memory_limit)
    if (n_paths := math.prod(attended.branches)) > most:
        words = f" of {outputs} outputs" if outputs > 1 else ""
        raise ValueError(
            f"{n_paths} attention paths{words} with {len(Y)} examples of "
            f"{attended.features} features do not fit into {memory_limit / 2**30:.3g} "
            f"GiB; {most} do: choose some of the heads, or take fewer examples."
        )
    return Scored(
        jnp.asarray(attended.inputs("", None, readout, queries)),
        jnp.asarray(Y),
        attended.counts,
        attended.names(numbered=True),
        _value_weights(file, attended),
        attended.skip,
    )


def _value_weights(file: ArrayFile, attended: Source) -> bpkr.Weights | None:
    """Trained values and readout as they act, in the normalisation of the theory."""
    names = [f"V_{layer}" for layer in range(1, len(attended.heads) + 1)]
    if not any(name in file for name in ("a", *names)):
        return None
    if len(file.shape("a")) not in (1, 2):
        raise ValueError(
            f"a must have shape (N,) or (K, N), the readout; got {file.shape('a')}."
        )
    N = file.shape("a")[-1]
    for name, count in zip(names, attended.heads, strict=True):
        sizes = {"H": (count, "heads of the layer"), "N": (N, "the readout a")}
        file.require_shape(name, ("H", "N", "N"), sizes)
    V = [
        file.numbers(n, chosen) for n, chosen in zip(names, attended.kept, strict=True)
    ]
    scaled = tuple(jnp.asarray(v * math.sqrt(N * len(v))) for v in V)
    a = jnp.asarray(file.numbers("a") * math.sqrt(N))
    return bpkr.Weights(jnp.eye(N), scaled, a, attended.skip)


def _classes(file: ArrayFile) -> np.ndarray:
    """Labels of classes: -1 and 1 of two, one-hot columns of more."""
    Y = file.numbers("Y")
    if Y.ndim != 1:
        raise ValueError(
            f"Y must have shape (P,), numbers of classes, for --classes; got {Y.shape}"
            ": one-hot columns are learned as they are, without it."
        )
    numbers, codes = np.unique(Y, return_inverse=True)
    if (Y != np.round(Y)).any() or not 2 <= len(numbers) <= len(Y) / 2:
        raise ValueError(
            "Y must hold the numbers of two classes or more, with two examples of each "
            f"on average; got shape {Y.shape} with {len(numbers)} values."
        )
    return 2.0 * codes - 1 if len(numbers) == 2 else np.eye(len(numbers))[codes]
