"""How a session in Python begins, and studies run in it."""

import json
import time
from pathlib import Path
from typing import Any, TYPE_CHECKING

from statmech_attn import batches, cli, storage, studies
from statmech_attn.interactive.registration import register, show_figures


if TYPE_CHECKING:
    import xarray as xr


def setup() -> None:
    """Switch on double precision, and keep compiled programs on the disk.

    Call it before anything is computed.  Programs are kept in
    `~/.cache/statmech_attn/jax`, or in JAX_COMPILATION_CACHE_DIR, results get the
    methods `.statmech` (`interactive.Accessor`), and a notebook shows figures.

    Raises:
        ValueError: JAX cannot use the device that JAX_PLATFORMS names, or the limit of
            virtual memory is too low to compile.

    Example:
        >>> import jax, statmech_attn
        >>> statmech_attn.setup()
        >>> jax.config.jax_enable_x64
        True
    """
    batches.runtime.prepare()
    register()
    show_figures()


def run(
    study: "str | Path | dict[str, Any] | studies.StudyTable", *, progress: bool = True
) -> "xr.Dataset":
    """Compute a study and return its result, as its file would hold it.

    Everything stays in memory.  A long computation that is to survive a kill belongs to
    `studies.produce`, or to the command line.

    Args:
        study: path of a study file, its content as a dictionary, in which arrays may
            stand for lists, or a checked study.
        progress: draw a bar, in a terminal or a notebook.

    Returns:
        A data set that draws itself (`.statmech.plot()`), says what it is
        (`.statmech.describe()`) and can be saved (`.statmech.save("file.h5")`).

    Raises:
        ValueError: a bad study, in one line.

    Example:
        >>> import statmech_attn
        >>> statmech_attn.setup()
        >>> study = {"kind": "trajectory", "parameters": {"beta": 1.4}}
        >>> statmech_attn.run(study, progress=False).A.dims
        ('beta', 'time', 'pattern')
    """
    register()
    checked, text = _checked(study)
    batches.require_double()
    started, clock = storage.now(), time.monotonic()
    if progress:
        bar = cli.Bar(cli.Terminal(stderr=True))
        try:
            dataset = studies.run(checked, bar)
        finally:
            bar.close()
    else:
        dataset = studies.run(checked)
    if inputs := checked.inputs():
        dataset = dataset.assign_attrs(inputs=json.dumps(inputs))
    return storage.with_provenance(
        dataset,
        text,
        keys=checked.seeds,
        started=started,
        elapsed=time.monotonic() - clock,
    )


def _plain(tree: Any) -> Any:
    """A study with lists and numbers in place of arrays of NumPy and JAX."""
    if isinstance(tree, dict):
        return {key: _plain(value) for key, value in tree.items()}
    return tree.tolist() if hasattr(tree, "tolist") else tree


def _checked(study: Any) -> "tuple[studies.StudyTable, str]":
    """A study with its text."""
    if isinstance(study, (str, Path)):
        return studies.load(study)
    if isinstance(study, studies.StudyTable):
        return study, studies.dump(study.model_dump(exclude_none=True))
    if isinstance(study, dict):
        tree = _plain(study)
        return studies.parse(tree), studies.dump(tree)
    raise ValueError(
        "study must be the path of a study file, a dictionary or a checked study; got "
        f"{type(study).__name__}."
    )
