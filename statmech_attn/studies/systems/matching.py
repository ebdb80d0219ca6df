"""Attractors of a basins file matched again, with the system that its study names."""

from functools import partial
from pathlib import Path
from typing import Any, Literal

import numpy as np
import xarray as xr

from statmech_attn.dynamics import match_attractors
from statmech_attn.options import Positive
from statmech_attn.storage import toml
from statmech_attn.studies.files import user_code
from statmech_attn.studies.files.spec import dump, parse
from statmech_attn.studies.network import basins
from statmech_attn.studies.network.tables import BasinsStudy
from statmech_attn.studies.systems import basins as system_basins
from statmech_attn.studies.systems.tables import SystemBasinsStudy


def rematch(
    dataset: xr.Dataset,
    matching: Literal["distance", "flow"] = "distance",
    furthest: Positive = 0.1,
    folder: Path = Path(),
    *,
    allow_code: bool = False,
) -> xr.Dataset:
    """Match the sets of a basin file along the parameter again.

    Args:
        dataset: a file of kind `basins`.
        matching: "distance", from the stored points, or "flow", from the stored states
            and the network that the study in the file names.
        furthest: sets are one at neighbouring values up to this distance, in units of
            the extent of all points of the file.
        folder: where the files are that the study names.
        allow_code: run the code that the study names, if it names any, which matching
            by flow does.

    Returns:
        The data set with other numbers of the sets; its attribute `study` is the study
        that gives these.

    Raises:
        ValueError: another kind of file, an unknown way of matching, a distance that
            is not positive and finite, or a study that names another network than
            that of the file.

    Example:
        `rematch(storage.read("basins.h5"), "distance", furthest=0.05)`
    """
    targets = partial(_targets, folder, allow_code) if matching == "flow" else None
    tree, study = _study(dataset, folder)
    rematched = match_attractors(dataset, furthest, targets=targets)
    wanted = {"matching": matching, "furthest": furthest}
    changed = {k: v for k, v in wanted.items() if getattr(study.run, k) != v}
    if not changed:
        return rematched
    run = tree.get("run", {}) | changed
    return rematched.assign_attrs(study=dump(tree | {"run": run}))


def _study(
    dataset: xr.Dataset, folder: Path
) -> tuple[dict[str, Any], BasinsStudy | SystemBasinsStudy]:
    """The study of a file, as text and checked."""
    if not dataset.attrs.get("study"):
        raise ValueError(
            "dataset must be that of a file: only a file names its study; store the "
            "data set first."
        )
    tree = toml.loads(dataset.attrs["study"])
    if tree.keys() & {"type", "choices"}:  # of a class of the library, now and earlier
        raise ValueError(
            "dataset must be of a study; that of a BasinDiagram is matched by "
            "dynamics.match_attractors."
        )
    study = parse(tree).beside(folder)
    if not isinstance(study, BasinsStudy | SystemBasinsStudy):
        raise ValueError(
            f"dataset must be of kind 'basins', which has sets; got {study.kind!r}."
        )
    return tree, study


def _targets(folder: Path, allow_code: bool, dataset: xr.Dataset) -> list[np.ndarray]:
    """Where attractors flow, by the system that the study names."""
    _, study = _study(dataset, folder)
    if study.code() and not allow_code:
        raise ValueError(
            f"matching by flow runs {user_code.brief(study.code()[0])}; pass "
            "--allow-code to run it, or match by distance."
        )
    of_system = isinstance(study, SystemBasinsStudy)
    diagram = system_basins.work(study) if of_system else basins.work(study)
    if diagram.about.get("network") != dataset.attrs.get("network"):
        raise ValueError(
            "network: the study names a network that is not the file's; its patterns "
            "may have changed."
        )
    return diagram.targets(dataset)
