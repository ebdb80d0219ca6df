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

    head_names                    (H_1 + ... + H_L,)  texts, layer by layer; optional

xi has a column for every path; with skip connections these are the paths of
`bpkr.attended` with the same skip.
"""

import itertools
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import h5py
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float

from statmech_attn import bpkr
from statmech_attn.batches import available_memory
from statmech_attn.bpkr import prior
from statmech_attn.inputs import require_regular


TEST = "_test"


class Given(NamedTuple):
    """Attentioned inputs and labels of a training and a test set.

    Attributes:
        heads: heads per layer.
        names: of the heads, layer by layer, and of skip connections before those of
            their layer; none where the file has none.
    """

    xi: Float[Array, "P N_0 Pi"]
    Y: Float[Array, " P"]
    xi_test: Float[Array, "Q N_0 Pi"]
    Y_test: Float[Array, " Q"]
    heads: tuple[int, ...]
    names: tuple[str, ...]


def load(
    path: str | Path,
    *,
    readout: str | int = "last",
    queries: str = "columns",
    skip: float | Sequence[float] = 0.0,
) -> Given:
    """Read a file of arrays.

    Args:
        path: ends in .npz, .h5 or .hdf5.
        readout: token that is read; see `bpkr.attended`.
        queries: whether queries are columns or rows of `attention_l`.
        skip: factors of the skip connections, as in `bpkr.Problem`.

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
    arrays = read(path)
    try:
        return _given(arrays, readout, queries, skip)
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def write_example(folder: str | Path) -> Path:
    """Write a small file of arrays, `arrays.npz`: what the template of a study reads.

    Labels are decided by what head 2 of layer 1 and head 1 of layer 2 attend.

    Raises:
        FileExistsError: there is one already.

    Example:
        `statmech-attn new arrays --output study.toml` writes study and file.
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
    with open(file, "xb") as stream:
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


def _given(arrays: Mapping[str, Any], readout: str | int, queries: str, skip) -> Given:
    Y, Y_test = (labels_of(arrays, f"Y{end}") for end in ("", TEST))
    if "xi" in arrays:
        heads = head_counts(arrays)
        xi, xi_test = (numbers(arrays, f"xi{end}") for end in ("", TEST))
    else:
        xi, heads = attended_set(arrays, "", readout, queries, skip)
        xi_test, _ = attended_set(arrays, TEST, readout, queries, skip)
    for end, inputs, labels in (("", xi, Y), (TEST, xi_test, Y_test)):
        name = f"xi{end}" if "xi" in arrays else f"x{end}"
        if inputs.ndim != 3 or len(inputs) != len(labels):
            raise ValueError(
                f"{name} must have three axes with as many examples as Y{end}; got "
                f"{inputs.shape} and {labels.shape}."
            )
    names = with_skips(head_names(arrays, heads), heads, skip)
    xi, Y, xi_test, Y_test = (jnp.asarray(a) for a in (xi, Y, xi_test, Y_test))
    return Given(xi, Y, xi_test, Y_test, heads, names)


def head_counts(arrays: Mapping[str, Any]) -> tuple[int, ...]:
    """Heads per layer of attentioned inputs."""
    if "heads" not in arrays:
        raise ValueError("xi needs heads, the number of heads of every layer.")
    return tuple(int(count) for count in numbers(arrays, "heads").ravel())


def head_names(arrays: Mapping[str, Any], heads: tuple[int, ...]) -> tuple[str, ...]:
    """Names of the heads, none where the file has none."""
    names = tuple(str(name) for name in np.ravel(arrays.get("head_names", ())))
    if names and (len(names) != sum(heads) or len(set(names)) < len(names)):
        raise ValueError(
            f"head_names must be {sum(heads)} different names, one for every head; got "
            f"{len(names)}."
        )
    return names


def with_skips(names: tuple[str, ...], heads: tuple[int, ...], skip):
    """Names of all heads, if there are any, with those of the skip connections."""
    remaining, every = iter(names), []
    for layer, (count, b) in enumerate(zip(heads, prior.skips(skip, len(heads))), 1):
        every += [f"skip {layer}"] * (b is not None)
        every += itertools.islice(remaining, count)
    return tuple(every) if names else ()


def attended_set(arrays: Mapping[str, Any], end: str, readout, queries: str, skip):
    """Attentioned inputs of a set, and the heads per layer."""
    x = numbers(arrays, f"x{end}")
    real = arrays.get(f"real{end}")
    real = None if real is None else np.asarray(real).astype(bool)
    products, weights = layers_of(arrays, end)
    counts = layer_counts(products, weights)
    of_heads = [W for W in products if W is not None]
    if real is None and not any(omega is not None for omega in weights):
        heads = bpkr.heads_from_products(of_heads)
        xi = bpkr.attentioned_inputs(x, heads, readout=readout, skip=skip)
        return xi, counts
    layers = weights
    if any(omega is not None for omega in weights):
        layers = bpkr.attention_arrays(weights, queries=queries, real=real).layers
    if of_heads:
        made = bpkr.attention_of(x, products, real=real).layers
        layers = [a if b is None else b for a, b in zip(layers, made, strict=True)]
    attention = bpkr.Attention(
        tuple(layers), None if real is None else jnp.asarray(real)
    )
    return bpkr.attended(x, attention, readout=readout, skip=skip), counts


def layer_counts(products: list, weights: list) -> tuple[int, ...]:
    """Heads per layer, one of a linear block."""
    return tuple(
        len(W) if W is not None else 1 if omega is None else len(omega)
        for W, omega in zip(products, weights, strict=True)
    )


def layers_of(arrays: Mapping[str, Any], end: str) -> tuple[list, list]:
    """W of every layer that has heads, and the weights of every one that has those."""
    blocks = {int(number) for number in np.ravel(arrays.get("linear_blocks", ()))}
    products, weights = [], []
    number = 0
    while True:
        number += 1
        W, omega = f"heads_{number}", f"attention_{number}"
        if number not in blocks and W not in arrays and omega not in arrays:
            break
        products.append(None)
        weights.append(None)
        if number not in blocks and W in arrays:
            products[-1] = numbers(arrays, W)
        elif number not in blocks:
            weights[-1] = numbers(arrays, omega + end)
    if len(products) in (0, len(blocks)) or len(products) < max(blocks, default=0):
        raise ValueError(
            f"no heads_{number} and no attention_{number}; there are "
            f"{', '.join(sorted(arrays))}. A layer is heads_{number}, W_K^T W_Q / "
            f"sqrt(G) of every head, or attention_{number}, its attention."
        )
    return products, weights


def labels_of(
    arrays: Mapping[str, Any], name: str, *, outputs: bool = False
) -> np.ndarray:
    """Labels of a set.

    Args:
        arrays: of a file, by name.
        name: of the labels.
        outputs: whether there may be several, for the scores of heads.

    Raises:
        ValueError: more than one output, or numbers of classes, such as 0 and 1.
    """
    Y = numbers(arrays, name)
    if Y.ndim != 1 and not (outputs and Y.ndim == 2):
        raise ValueError(
            f"{name} must have one label an example, shape (P,), in a study; got "
            f"{Y.shape}: bpkr.Problem takes several outputs."
        )
    stored = np.asarray(arrays[name]).dtype
    classes = np.unique(Y)
    whole = np.issubdtype(stored, np.integer) or np.issubdtype(stored, bool)
    if whole and classes.size > 1 and classes.tolist() != [-1, 1]:
        two = classes.size == 2
        made = "-1 and 1" if two else "one-hot columns Y == c"
        advice = f"--classes makes {made} of them"
        if not outputs:
            advice = f"take {made}{'' if two else ' with bpkr.Problem, or two classes'}"
        raise ValueError(
            f"{name} holds {classes.size} whole numbers, as of classes; labels are "
            f"numbers to be predicted, such as -1 and 1: {advice}."
        )
    return Y


def numbers(arrays: Mapping[str, Any], name: str) -> np.ndarray:
    """A finite array of numbers.

    Raises:
        ValueError: there is none of this name.
    """
    if name not in arrays:
        raise ValueError(
            f"no array {name}; there are {', '.join(sorted(arrays)) or 'none'}."
        )
    values = np.asarray(arrays[name])
    if not np.issubdtype(values.dtype, np.number) and values.dtype != bool:
        raise ValueError(f"{name} must be an array of numbers; got {values.dtype}.")
    values = values.astype(float)
    if not name.startswith("attention") and not np.isfinite(values).all():
        raise ValueError(f"{name} holds numbers that are not finite.")
    return values


def read(path: Path) -> dict[str, np.ndarray]:
    """All arrays of a file, once it is known that they fit into memory."""
    require_regular(path)
    reads = {".npz": _of_npz, ".h5": _of_hdf5, ".hdf5": _of_hdf5}
    if path.suffix not in reads:
        raise ValueError(f"{path.name}: must end in .npz, .h5 or .hdf5.")
    try:
        return reads[path.suffix](path)
    except (OSError, EOFError, KeyError, RuntimeError, zipfile.BadZipFile) as error:
        words = " ".join(str(error).split())[:200]
        raise ValueError(f"{path.name}: cannot be read: {words}.") from None
    except ValueError as error:
        raise ValueError(f"{path.name}: {error}") from None


def _of_npz(path: Path) -> dict[str, np.ndarray]:
    with zipfile.ZipFile(path) as file:
        _require_memory(sum(member.file_size for member in file.infolist()))
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _of_hdf5(path: Path) -> dict[str, np.ndarray]:
    with h5py.File(path, "r") as file:
        sets = {n: x for n, x in file.items() if isinstance(x, h5py.Dataset)}
        elsewhere = [n for n, x in sets.items() if x.is_virtual or x.external]
        if elsewhere:
            raise ValueError(f"{elsewhere[0]} lies in another file.")
        _require_memory(sum(x.size * x.dtype.itemsize for x in sets.values()))
        texts = lambda x: x.asstr() if h5py.check_string_dtype(x.dtype) else x
        return {name: np.asarray(texts(x)[()]) for name, x in sets.items()}


def _require_memory(size: int) -> None:
    if size > (free := available_memory()):
        raise ValueError(
            f"its arrays take {size / 2**30:.1f} GiB; {free / 2**30:.1f} GiB are free."
        )
