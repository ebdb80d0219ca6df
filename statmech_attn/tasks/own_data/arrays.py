"""Data and attention of one's own, in a file of arrays (docs/data.md).

An npz or HDF5 file holds the labels and either attentioned inputs or what makes them:

    Y, Y_test                     (P,), (Q,)          labels
    xi, xi_test                   (P, N_0, Pi)        attentioned inputs
    heads                         (L,)                heads per layer, for xi

    x, x_test                     (P, N_0, T)         tokens
    heads_1, heads_2, ...         (H, N_0, N_0)       W of a layer: x_key^T W x_query
    attention_1, attention_1_test (H, P, T, T)        or the attention of a layer
    linear_blocks                 (B,)                or the numbers of linear blocks
    real, real_test               (P, T)              which tokens are no padding
    lengths, lengths_test         (P,)                or how many, the first ones

    head_names                    (H_1 + ... + H_L,)  texts, layer by layer; optional

Arrays of further test sets end in `_test_NAME` (`array_sets`).
xi has a column for every path; with skip connections these are the paths of
`bpkr.attended` with the same skip.
"""

from collections.abc import Sequence
from pathlib import Path

import jax
import numpy as np

from statmech_attn import bpkr, storage
from statmech_attn.tasks.own_data import array_files
from statmech_attn.tasks.own_data.array_files import ArrayFile
from statmech_attn.tasks.own_data.array_labels import labels
from statmech_attn.tasks.own_data.array_sets import FIRST, sets_of_tests
from statmech_attn.tasks.own_data.array_sources import source


def load(
    path: str | Path,
    *,
    readout: str | int = "last",
    queries: str = "columns",
    skip: float | Sequence[float] = 0.0,
    heads: Sequence[str] = (),
    classes: Sequence[int] | None = None,
) -> bpkr.LearningTask:
    """Read a file of arrays: its examples, of all test sets, with the heads taken.

    Args:
        path: of an npz or HDF5 file.
        readout: token that is read; see `bpkr.attended`.
        queries: whether queries are columns or rows of `attention_l`.
        skip: factors of the skip connections, as in `bpkr.Problem`.
        heads: those that are taken, by name or as layer.head; all of a layer of which
            none is named.
        classes: two numbers of classes that become 1 and -1; examples of others are
            left out.

    Raises:
        OSError: there is no such file.
        ValueError: it cannot be read, lacks an array, or has arrays that do not fit.

    Example:
        >>> import jax, numpy as np, tempfile
        >>> jax.config.update("jax_enable_x64", True)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     np.savez(f"{folder}/mine.npz", x=np.ones((4, 3, 2)), Y=np.ones(4),
        ...         x_test=np.ones((1, 3, 2)), Y_test=np.ones(1),
        ...         heads_1=np.zeros((2, 3, 3)))
        ...     load(f"{folder}/mine.npz").xi.shape
        (4, 3, 2)
    """
    path = Path(path)
    try:
        file = array_files.opened(path)
        return _attended_sets(file, readout, queries, skip, heads, classes)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def write_example(folder: str | Path) -> Path:
    """Write a small file of arrays, `arrays.npz`: what the template of a study reads.

    Labels are decided by what head 2 of layer 1 and head 1 of layer 2 attend.
    """
    random = np.random.default_rng(0)
    P, N_0, T = 120, 12, 6
    x = random.normal(size=(P, N_0, T))
    products = random.normal(size=(2, N_0, N_0)) / np.sqrt(N_0)
    of_heads = np.exp(np.einsum("pis,hij,pjt->hpst", x, products, x))
    of_model = np.exp(2 * random.normal(size=(2, P, T, T)))
    first, second = (a / a.sum(axis=2, keepdims=True) for a in (of_heads, of_model))
    path = np.einsum("pis,pst,pt->pi", x, first[1], second[0][:, :, -1])
    Y = np.sign(path @ random.normal(size=N_0))
    train, test = slice(0, P // 2), slice(P // 2, P)
    file = Path(folder) / "arrays.npz"
    storage.require_new(file)
    with storage.replaced(file) as part, part.open("wb") as stream:
        np.savez_compressed(
            stream,
            x=x[train],
            x_test=x[test],
            Y=Y[train],
            Y_test=Y[test],
            heads_1=products,
            attention_2=second[:, train],
            attention_2_test=second[:, test],
            head_names=["content", "decisive", "chosen", "noise"],
        )
    return file


def _attended_sets(
    file: ArrayFile, readout, queries, skip, heads, classes
) -> bpkr.LearningTask:
    ends = sets_of_tests(file)
    of_sets = {
        end: labels(file, f"Y{end}", classes=classes) for end in ("", *ends.values())
    }
    counts = {end: of_set.examples for end, of_set in of_sets.items()}
    origin = source(file, counts, skip=skip, heads=heads)
    names = origin.names()

    def attended(end: str):
        xi = origin.inputs(end, of_sets[end].rows, readout, queries)
        return jax.device_put(xi), jax.device_put(of_sets[end].Y)

    train, sets = attended(""), {name: attended(end) for name, end in ends.items()}
    first, several = sets[FIRST], sets if len(sets) > 1 else {}
    return bpkr.LearningTask(
        *train, *first, origin.counts, sets=several, names=names, skip=skip
    )
