"""Files of arrays with several test sets: what they are, and what is refused."""

import numpy as np
import pytest

from statmech_attn.tasks import arrays


N_0 = 6  # of the made arrays
SETS = {  # examples and tokens: of two shapes alone
    "": (16, 4),
    "_test": (16, 4),
    "_test_shifted": (20, 7),
    "_test_validation": (16, 4),
}


@pytest.fixture(scope="module")
def given(made_arrays):
    return made_arrays.drawn(SETS)


@pytest.fixture(scope="module")
def write(made_arrays):
    return made_arrays.write


def renamed(given, new):
    """Arrays of the shifted set under another name."""
    return {key.replace("shifted", new): x for key, x in given.items()}


def one_line(path):
    with pytest.raises(ValueError) as error:
        arrays.load(path)
    said = str(error.value)
    assert said.startswith(f"{path.name}: ") and "\n" not in said
    return said


@pytest.mark.parametrize("name", ("mine.npz", "mine.h5"))
def test_a_set_is_that_of_a_file_with_this_set_alone(
    given, made_arrays, tmp_path, name
):
    """Bit for bit, in both formats; `test` first, then by name."""
    write, alone = made_arrays.write, made_arrays.alone
    found = arrays.load(write(tmp_path / name, given))
    assert [*found.sets] == ["test", "shifted", "validation"]
    files = {name: alone(given, name) for name in ("shifted", "validation")}
    files["test"] = made_arrays.first_alone(given)
    for of_set, content in files.items():
        only = arrays.load(write(tmp_path / f"alone_{name}", content))
        xi, Y = found.sets[of_set]
        np.testing.assert_array_equal(xi, only.xi_test)
        np.testing.assert_array_equal(Y, only.Y_test)
        np.testing.assert_array_equal(found.xi, only.xi)
        assert not only.sets
    np.testing.assert_array_equal(found.xi_test, found.sets["test"][0])
    sizes = [len(Y) for _, Y in found.sets.values()]
    assert sizes == [16, 20, 16]


@pytest.mark.parametrize(
    "name", ("a_test", "attention_1_test", "test_test_x", "of-2026", "0", "Val")
)
def test_a_name_may_hold_what_other_arrays_end_in(given, write, tmp_path, name):
    found = arrays.load(write(tmp_path / "mine.npz", renamed(given, name)))
    assert set(found.sets) == {"test", name, "validation"}
    shifted = arrays.load(write(tmp_path / "shifted.npz", given)).sets["shifted"]
    np.testing.assert_array_equal(found.sets[name][0], shifted[0])


def test_padding_classes_and_attentioned_inputs_are_those_of_each_set(
    given, made_arrays, tmp_path
):
    write, padded = made_arrays.write, dict(given)
    for end, (examples, tokens) in SETS.items():
        lengths = np.arange(examples) % tokens + 1
        real = np.arange(tokens) < lengths[:, None]
        omega = given[f"attention_2{end}"] * real[:, :, None]
        padded[f"attention_2{end}"] = omega / omega.sum(axis=2, keepdims=True)
        padded[f"lengths{end}"] = lengths
        padded[f"Y{end}"] = np.arange(examples) % 3
    path = write(tmp_path / "mine.npz", padded)
    found = arrays.load(path, classes=[2, 0], readout="mean")
    only = arrays.load(
        write(tmp_path / "alone.npz", made_arrays.alone(padded, "shifted")),
        classes=[2, 0],
        readout="mean",
    )
    for one, other in zip(found.sets["shifted"], only[2:4], strict=True):
        np.testing.assert_array_equal(one, other)
    assert len(found.sets["shifted"][1]) == 13  # of 20: none of class 1
    inputs = arrays.load(write(tmp_path / "plain.npz", given))
    attended = {"xi": inputs.xi, "Y": inputs.Y, "heads": [2, 2]}
    for name, (xi, Y) in inputs.sets.items():
        end = "_test" if name == "test" else f"_test_{name}"
        attended |= {f"xi{end}": xi, f"Y{end}": Y}
    again = arrays.load(write(tmp_path / "xi.h5", attended))
    for name, (xi, _) in inputs.sets.items():
        np.testing.assert_array_equal(again.sets[name][0], xi)


TWO = np.ones((20, 7), bool)
REFUSED = (
    # labels and inputs
    ({"Y_test_shifted": None}, "there is attention_2_test_shifted and no Y_test_shif"),
    ({"x_test_new": np.ones((5, N_0, 4))}, "no Y_test_new; write the labels of the t"),
    ({"x_test_shifted": None}, "no array x_test_shifted; there are"),
    # shapes and numbers
    ({"Y_test_shifted": np.ones(19)}, "x_test_shifted must have shape (P, N_0, T) wi"),
    ({"x_test_shifted": np.ones((20, N_0, 6))}, "T = 7 (attention_2_test_shifted); g"),
    # padding
    (
        {"real": np.ones((16, 4)), "real_test": np.ones((16, 4))},
        "there is real and no real_test_shifted; write both",
    ),
    (
        {"real_test_shifted": TWO, "lengths_test_shifted": np.full(20, 7)},
        "there are real_test_shifted and lengths_test_shifted, which both say",
    ),
    # names
    ({"Y_test_": np.ones(3)}, "'Y_test_' must end in _test_NAME, where the NAME of a"),
    ({"Y_test__a": np.ones(3)}, "begins with a letter or a digit; got '_a'."),
    ({"Y_test_test": np.ones(3)}, "Y_test_test is of a test set called test, which i"),
    ({"Y_test_Shifted": np.ones(3)}, "sets Shifted and shifted differ in capital"),
)


@pytest.mark.parametrize("change, words", REFUSED)
def test_a_set_that_cannot_be_right_is_one_line(given, write, tmp_path, change, words):
    content = {key: x for key, x in (given | change).items() if x is not None}
    path = write(tmp_path / "mine.npz", content)
    assert words in one_line(path)


def test_attentioned_inputs_without_a_set_are_one_line(given, write, tmp_path):
    inputs = arrays.load(write(tmp_path / "plain.npz", given))
    content = {"heads": [2, 2], "Y_test_new": np.ones(3)}
    content |= {name: getattr(inputs, name) for name in ("xi", "Y", "xi_test")}
    content["Y_test"] = inputs.Y_test
    assert "no array xi_test_new; there are" in one_line(
        write(tmp_path / "xi.npz", content)
    )
    content["x_test_new"] = np.ones((3, N_0, 2))
    assert "no array xi_test_new; there are" in one_line(
        write(tmp_path / "xi.npz", content)
    )
