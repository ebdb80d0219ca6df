"""Arrays of a trained network, for the scores of its heads (docs/data.md).

A file of `tasks.arrays` without a test set, and optionally with value weights:

    V_1, V_2, ...                 (H, N, N)           trained values, as they act
    a                             (N,) or (K, N)      and readout
    hidden_2, hidden_3, ...       (P, N_l, T)         what a layer sees, for its scores
                                                      alone; hidden_1 is x where omitted

and, of examples that may be others, losses of the network as it is and without a head,

    loss                          (E,)                loss of every example
    loss_1, loss_2, ...           (H, E)              without each head of the layer
    slope_1, slope_2, ...         (H, E)              derivatives in gates of the heads

A hidden state is a sum over the heads of V_h x Omega_h, without factors; what stands
between values and readout, such as an output projection, is multiplied into them.
"""

import math
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn import bpkr
from statmech_attn.bpkr import prior
from statmech_attn.tasks.own_data import array_files
from statmech_attn.tasks.own_data.array_files import ArrayFile
from statmech_attn.tasks.own_data.array_labels import labels
from statmech_attn.tasks.own_data.array_sources import Source, source


FIRST_PASS = 0.1  # temperature of the theory that chooses heads


class Scored(NamedTuple):
    """Attentioned inputs and labels of one set, for the scores of its heads.

    Attributes:
        xi: attentioned inputs.
        Y: labels.
        heads: heads per layer, of those that were chosen.
        names: of the heads, each skip connection before those of its layer.
        weights: trained value weights, None where the file has none.
        ablation: of these heads, None where the file has no losses.
        skip: factors of the skip connections, as in `bpkr.Problem`.
        alone: every layer as a network of its own, on the hidden state that it sees;
            none where the file has no hidden states.
    """

    xi: Float[Array, "P N_0 Pi"]
    Y: Float[Array, "P *K"]
    heads: tuple[int, ...]
    names: tuple[str, ...]
    weights: bpkr.Weights | None
    ablation: bpkr.Ablation | None
    skip: prior.Skip
    alone: tuple["Scored", ...] = ()

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
    memory_limit: int = bpkr.MEMORY_LIMIT,
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
        ValueError: as `load`, or more paths of one head a layer than fit in memory.

    Warns:
        UserWarning: paths do not fit in memory, and those of some heads are taken, by a
            first pass of the theory over single layers.

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
    most = bpkr.most_paths(len(Y), attended.features, outputs, memory_limit)
    labelled = jnp.asarray(Y)
    if (n_paths := math.prod(attended.branches)) > most:
        words = f" of {outputs} outputs" if outputs > 1 else ""
        words = (
            f"{n_paths} attention paths{words} with {len(Y)} examples of "
            f"{attended.features} features do not fit into {memory_limit / 2**30:.3g} "
            f"GiB; {most} do"
        )
        fewest = math.prod(prior.branches([1] * len(attended.heads), attended.skip))
        if not attended.layers or most < fewest:
            raise ValueError(
                f"{words}: choose some of the heads, or take fewer examples."
            )
        attended = _fewer(attended, labelled, readout, queries, most, memory_limit)
        warnings.warn(
            f"{words}: {', '.join(attended.names(numbered=True))} are scored, the "
            "heads highest above their floors in the theory of their layers alone; "
            "choose others by heads.",
            stacklevel=3,
        )
    weights, ablation = _value_weights(file, attended), _ablation(file, attended)
    return Scored(
        jnp.asarray(attended.inputs("", None, readout, queries)),
        labelled,
        attended.counts,
        attended.names(numbered=True),
        weights,
        ablation,
        attended.skip,
        _alone(attended, attended.inputs_by_layer(readout, queries), labelled),
    )


def _alone(attended: Source, inputs: Sequence, Y) -> tuple[Scored, ...]:
    """Every layer as a network of its own."""
    return tuple(
        Scored(xi, Y, (count,), (), None, None, (b,))
        for xi, count, b in zip(inputs, attended.counts, attended.skip)
    )


def _fewer(
    attended: Source, Y, readout, queries, most: int, memory_limit: int
) -> Source:
    """So many heads that their paths fit in memory, by the theory of single layers.

    Those of hidden states where the file has them; otherwise the other layers have one
    head, the mean of theirs.  The head least above its floor goes first, and the last
    one of a layer stays.
    """
    inputs = attended.inputs_by_layer(readout, queries)
    inputs = inputs or attended.inputs_beside_means(readout, queries)
    above = []
    for layer in _alone(attended, inputs, Y):
        problem = layer.problem(temperature=FIRST_PASS, memory_limit=memory_limit)
        solution = problem.solve()
        ratio = np.concatenate(solution.head_scores()) / np.concatenate(
            solution.head_floors()
        )
        above.append(ratio[-layer.heads[0] :])  # without the skip connection
    order = sorted(
        (ratio, layer, head)
        for layer, of_layer in enumerate(above)
        for head, ratio in zip(attended.kept[layer], of_layer, strict=True)
    )
    for _, layer, head in order:
        heads_kept = [set(of_layer) for of_layer in attended.kept]
        if math.prod(attended.branches) > most and len(heads_kept[layer]) > 1:
            heads_kept[layer].remove(head)
            attended = attended._replace(
                kept=tuple(tuple(sorted(heads)) for heads in heads_kept)
            )
    return attended


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


def _ablation(file: ArrayFile, attended: Source) -> bpkr.Ablation | None:
    """Losses of the network without its heads; None where the file has none."""
    layers = range(1, len(attended.heads) + 1)
    slopes = any(f"slope_{layer}" in file for layer in layers)
    if "loss" not in file and not slopes:
        return None
    whole = file.numbers("loss")
    if whole.ndim != 1:
        raise ValueError(
            f"loss must have shape (E,), losses of examples; got {whole.shape}."
        )

    def of_heads(name):
        arrays = []
        for layer, count, chosen in zip(
            layers, attended.heads, attended.kept, strict=True
        ):
            sizes = {"H": (count, "heads of the layer"), "E": (len(whole), "loss")}
            file.require_shape(f"{name}_{layer}", ("H", "E"), sizes)
            arrays.append(file.numbers(f"{name}_{layer}", chosen))
        return np.concatenate(arrays)

    return bpkr.ablation_of(
        whole,
        of_heads("loss") - whole,
        attended.counts,
        [
            f"{layer}.{head + 1}"
            for layer, of_layer in zip(layers, attended.kept)
            for head in of_layer
        ],
        of_heads("slope") if slopes else None,
    )


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
