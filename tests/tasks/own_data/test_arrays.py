"""Files of arrays: inputs, labels, and heads or attention of one's own."""

import h5py
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.tasks import arrays


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    """What `write_example` writes, as arrays by name."""
    path = arrays.write_example(tmp_path_factory.mktemp("example"))
    with np.load(path) as file:
        return dict(file)


def written(folder, given):
    np.savez(folder / "mine.npz", **given)
    return folder / "mine.npz"


def test_heads_and_attention_by_hand(example, tmp_path):
    given = arrays.load(written(tmp_path, example))
    x, W, omega = (example[n] for n in ("x_test", "heads_1", "attention_2_test"))
    first = np.exp(np.einsum("pis,hij,pjt->hpst", x, W, x))
    first /= first.sum(axis=2, keepdims=True)
    paths = [
        np.einsum("pis,pst,pt->pi", x, a, b[:, :, -1]) for a in first for b in omega
    ]
    np.testing.assert_allclose(given.xi_test, np.stack(paths, axis=-1), rtol=1e-12)
    assert given.heads == (2, 2)
    assert given.names == ("content", "decisive", "chosen", "noise")


def test_paths_may_skip_a_layer(example, tmp_path):
    given = arrays.load(written(tmp_path, example), skip=(0, 0.5))
    plain = arrays.load(written(tmp_path, example))
    assert given.names == ("content", "decisive", "skip 2", "chosen", "noise")
    assert given.heads == plain.heads
    np.testing.assert_allclose(given.xi[:, :, [1, 2, 4, 5]], plain.xi, rtol=1e-12)
    x, W = example["x"], example["heads_1"]
    omega = np.exp(np.einsum("pis,hij,pj->hps", x, W, x[:, :, -1]))
    omega /= omega.sum(axis=2, keepdims=True)
    read = np.einsum("pis,hps->pih", x, omega)
    np.testing.assert_allclose(given.xi[:, :, [0, 3]], read, rtol=1e-12)
    with pytest.raises(ValueError, match="mine.npz: skip: need one finite number"):
        arrays.load(written(tmp_path, example), skip=(0.5, 0.5, 0.5))


def test_attentioned_inputs_themselves_and_hdf5(example, tmp_path):
    given = arrays.load(written(tmp_path, example))
    with h5py.File(tmp_path / "mine.h5", "w") as file:
        for name in ("xi", "Y", "xi_test", "Y_test", "heads"):
            file[name] = getattr(given, name)
        file["head_names"] = list(given.names)
    again = arrays.load(tmp_path / "mine.h5")
    for one, other in zip(given, again, strict=True):
        np.testing.assert_array_equal(one, other)


def test_linear_blocks_rows_and_padding(example, tmp_path):
    """A block changes no input, rows are columns turned, padding is no token."""
    turn = lambda omega: omega.swapaxes(2, 3)
    changed = {k: x for k, x in example.items() if not k.startswith("attention")}
    changed |= {
        "attention_3": turn(example["attention_2"]),
        "attention_3_test": turn(example["attention_2_test"]),
        "linear_blocks": [2],
        "head_names": [*example["head_names"][:2], "block", *example["head_names"][2:]],
    }
    plain = arrays.load(written(tmp_path, example), readout="mean")
    turned = arrays.load(written(tmp_path, changed), readout="mean", queries="rows")
    assert turned.heads == (2, 1, 2)
    np.testing.assert_allclose(turned.xi, plain.xi, rtol=1e-12, atol=1e-15)
    pad = lambda x, axes: np.pad(x, [(0, int(a in axes)) for a in range(x.ndim)])
    padded = example | {
        name: pad(example[name], axes)
        for name, axes in {
            "x": {2},
            "x_test": {2},
            "attention_2": {2, 3},
            "attention_2_test": {2, 3},
        }.items()
    }
    for end in ("", "_test"):
        padded[f"real{end}"] = np.arange(7) < np.full((60, 1), 6)
    both = arrays.load(written(tmp_path, padded), readout="mean")
    np.testing.assert_allclose(both.xi, plain.xi, rtol=1e-12, atol=1e-15)


def test_the_last_layer_alone_may_be_of_heads(example, tmp_path):
    only = {k: x for k, x in example.items() if "attention" not in k}
    del only["head_names"]
    given = arrays.load(written(tmp_path, only | {"heads_2": example["heads_1"]}))
    heads = bpkr.heads_from_products([example["heads_1"]] * 2)
    np.testing.assert_array_equal(
        given.xi, bpkr.attentioned_inputs(example["x"], heads)
    )
