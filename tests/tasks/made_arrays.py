"""Arrays of a training set and of test sets of any sizes, for files of tests."""

import h5py
import numpy as np


N_0 = 6
SETS = {  # examples and tokens, by the end of the names of arrays
    "": (16, 4),
    "_test": (12, 4),
    "_test_shifted": (20, 7),
    "_test_validation": (9, 5),
}


def drawn(sets=SETS):
    """Two layers of heads, of which the second is given by its attention.

    Labels are what the second head of either layer reads, with noise, so that accuracy
    is neither chance nor one.
    """
    products = np.random.default_rng(0).normal(size=(2, N_0, N_0)) / np.sqrt(N_0)
    arrays = {"heads_1": products}
    for end, (examples, tokens) in sets.items():
        random = np.random.default_rng([ord(letter) for letter in end])
        x = random.normal(size=(examples, N_0, tokens))
        first = np.exp(np.einsum("pis,ij,pjt->pst", x, products[1], x))
        first /= first.sum(axis=1, keepdims=True)
        second = random.dirichlet(np.ones(tokens), (2, examples, tokens))
        second = second.swapaxes(2, 3)  # queries are columns
        read = np.einsum("pis,pst,pt->pi", x, first, second[1, :, :, -1])[:, 0]
        Y = np.sign(read + 0.1 * random.normal(size=examples))
        arrays |= {f"x{end}": x, f"Y{end}": Y, f"attention_2{end}": second}
    return arrays


def alone(arrays, name):
    """The same training set with one of the further sets as the only test set."""
    end = f"_test_{name}"
    ends = [key for key in arrays if "_test" in key and not key.endswith(end)]
    kept = {key: x for key, x in arrays.items() if key not in ends}
    return {key.replace(end, "_test"): x for key, x in kept.items()}


def first_alone(arrays):
    """The same without further sets."""
    return {key: x for key, x in arrays.items() if "_test_" not in key}


def write(path, arrays):
    """As npz or HDF5, by the ending of the name."""
    if path.suffix == ".npz":
        np.savez(path, **arrays)
        return path
    with h5py.File(path, "w") as file:
        for name, values in arrays.items():
            file[name] = values
    return path
