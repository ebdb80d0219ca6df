"""Studies as the work of an engine, and run in memory."""

import xarray as xr

from statmech_attn import kinds
from statmech_attn.options import Count
from statmech_attn.reporting import Reporter, Silent
from statmech_attn.scan import in_memory, Work
from statmech_attn.studies.tables import StudyTable


def work(study: StudyTable, batch: Count | None = None) -> Work:
    """A study as an engine sees it; double precision must be on.

    Args:
        study: a checked study.
        batch: see `Work`; chosen for this device when omitted.

    Returns:
        What `scan` computes, a `Work`.

    Example:
        >>> from statmech_attn.studies import parse
        >>> study = parse({"kind": "bifurcation", "parameters": {"beta": [1.0, 1.4]}})
        >>> work(study).total
        2
    """
    row = kinds.of_study(study.kind, study.variant)
    assert row is not None, f"no kind {study.kind!r}"
    build = kinds.KINDS.part(row, "work")
    return build(study, batch=batch) if row.batched else build(study)


def run(study: StudyTable, report: Reporter = Silent()) -> xr.Dataset:
    """Compute a study in memory; double precision must be on.

    Args:
        study: a checked study, as `load` or `parse` gives it.
        report: told how far the computation is.

    Returns:
        The result, as its file would hold it.

    Example:
        >>> from statmech_attn.studies import parse
        >>> study = parse({"kind": "trajectory", "parameters": {"beta": 1.4}})
        >>> run(study).A.dims
        ('beta', 'time', 'pattern')
    """
    return in_memory(work(study), report)
