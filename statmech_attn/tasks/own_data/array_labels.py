"""Labels of a file of arrays: numbers to be predicted, and classes that become such."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from jaxtyping import Float, Int

from statmech_attn.tasks.own_data.array_files import ArrayFile


class Labels(NamedTuple):
    """Labels of the examples of a set: one number an example, or K.

    `rows` are the examples of the file that they are of, None for all of its
    `examples`.
    """

    Y: Float[np.ndarray, "P *K"]
    rows: Int[np.ndarray, " P"] | None
    examples: int


def labels(
    file: ArrayFile,
    name: str,
    *,
    classes: Sequence[int] | None = None,
    outputs: bool = False,
) -> Labels:
    """Labels that are numbers to be predicted, or those of two classes.

    Two numbers of `classes`, or of one-hot columns counted from 0, become 1 and -1, and
    other examples are left out; numbers of classes that nobody chose are refused.  With
    `outputs` there may be several labels an example.
    """
    Y = _numbers(file, name)
    if Y.ndim == 2 and Y.shape[1] == 1:
        Y = Y[:, 0]
    if classes is not None:
        return _of_two(Y, name, classes)
    if Y.ndim == 2 and len(Y) == 1 and (outputs or Y.shape[1] > 2):
        raise ValueError(
            f"{name} has one example with {Y.shape[1]} labels, shape {Y.shape}; "
            f"{name}[0] has one label an example."
        )
    if Y.ndim == 2 and not outputs:
        raise ValueError(
            f"{name} must have one label an example, shape (P,), in a study; got "
            f"{Y.shape}: classes = [0, 1] in [task] takes two columns of one-hot "
            "labels, counted from 0; statmech-attn score and bpkr.Problem take several "
            "outputs."
        )
    if Y.ndim == 1:
        _require_no_classes(file, name, Y, outputs)
    return Labels(Y, None, len(Y))


def _numbers(file: ArrayFile, name: str) -> np.ndarray:
    shape = file.shape(name)
    if file.stored[name].dtype.kind in "SU":
        raise ValueError(
            f"{name} holds texts; labels are numbers: those of classes are "
            f"numpy.unique({name}, return_inverse=True)[1]."
        )
    if len(shape) not in (1, 2) or 0 in shape:
        raise ValueError(
            f"{name} must have shape (P,), one label an example, or (P, K); got "
            f"{shape}{', without entries' if 0 in shape else ''}."
        )
    return file.numbers(name)


def _of_two(Y: np.ndarray, name: str, classes: Sequence[int]) -> Labels:
    """Labels 1 and -1 of the examples of two classes."""
    examples = len(Y)
    if Y.ndim == 2:
        if not (np.isin(Y, (0, 1)).all() and (Y.sum(axis=1) == 1).all()):
            raise ValueError(
                f"{name} must hold one number of a class an example, or one-hot "
                f"columns, for classes = {list(classes)}; got {Y.shape} with other "
                "numbers."
            )
        Y = np.argmax(Y, axis=1)
    counts = [int((Y == label).sum()) for label in classes]
    if 0 in counts:
        missing = classes[counts.index(0)]
        raise ValueError(
            f"{name} has no example of class {missing}, of classes = {list(classes)}; "
            f"it holds {_some(np.unique(Y))}."
        )
    rows = np.flatnonzero(np.isin(Y, classes))
    return Labels(np.where(Y[rows] == classes[0], 1.0, -1.0), rows, examples)


def _require_no_classes(
    file: ArrayFile, name: str, Y: np.ndarray, outputs: bool
) -> None:
    """Refuse numbers that name classes: whole ones, or 0 and 1 of any type."""
    values = np.unique(Y)
    whole = file.stored[name].dtype.kind in "biu"
    if values.size < 2 or values.tolist() == [-1, 1]:
        return
    if not whole and values.tolist() != [0, 1]:
        return
    if outputs:
        labels = "-1 and 1" if values.size == 2 else "one-hot columns"
        advice = f"--classes makes {labels} of them"
    else:
        two = [int(values[-1]), int(values[0])]
        others = ", and leaves out the others" if values.size > 2 else ""
        advice = (
            f"classes = {two} in [task] makes 1 of {two[0]} and -1 of {two[1]}{others}"
        )
    raise ValueError(
        f"{name} holds whole numbers as of {values.size} classes, {_some(values)}; "
        f"labels are numbers to be predicted, such as -1 and 1: {advice}."
    )


def _some(values: np.ndarray) -> str:
    shown = ", ".join(f"{value:g}" for value in values[:6])
    return f"{shown}, ..." if values.size > 6 else shown
