"""Files keep the conventions CF-1.11, by which programs of others read them.

Every kind is written as its table of variables says, two places along each dimension.
"""

import re
import subprocess
import sys
from importlib.util import find_spec

import numpy as np
import pytest
import xarray as xr

from statmech_attn import kinds, storage
from statmech_attn.labels import UDUNITS


ROWS = [row for row in kinds.KINDS if row.variables]
NAMES = [f"{row.name}{row.task and '-'}{row.task}" for row in ROWS]
# The checker takes coordinates of these names for those of the Earth; CF does not.
EARTHLY = "'time' should have standard_name='time'"


def like(row):
    """A data set with every variable of a kind."""
    table = kinds.KINDS.part(row, "variables")
    known = {"free": "beta", "second": "gamma"}
    fill = lambda text: text.format(l=1, **known)
    axes = {dim for variable in table for dim in fill(variable.dims).split()}
    data, coordinates = {}, {}
    for variable in table:
        for ending in variable.endings:
            name = fill(variable.name) + ending
            dims = fill(variable.dims).split()
            dims = [name] if name in axes and not dims else dims
            try:
                attributes = table.attributes(name)
            except KeyError:  # of a parameter that files of this table do not have
                continue
            values = np.arange(2.0 ** len(dims)).reshape((2,) * len(dims))
            for flags in {"flag_values", "flag_masks"} & attributes.keys():
                values = values.astype(attributes[flags].dtype)
            place = coordinates if dims == [name] else data
            place[name] = (dims, values, attributes)
    return xr.Dataset(data, coordinates)


@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_units_and_meanings_of_every_kind_are_legal(row):
    for name, variable in like(row).variables.items():
        attributes = variable.attrs
        words = re.findall(r"[^\W\d]+", attributes["units"])
        assert set(words) <= set(UDUNITS), name
        meanings = attributes.get("flag_meanings", "").split()
        assert all(re.fullmatch(r"[\w.+@-]+", word, re.ASCII) for word in meanings)
        codes = attributes.get("flag_values", attributes.get("flag_masks", ()))
        assert len(codes) == len(meanings) == len(set(meanings)), name
        if "flag_values" in attributes:
            assert list(codes) == list(range(len(codes))), name


def written(row, folder):
    path = folder / f"{row.name}.nc"
    storage.write(path, like(row), study="", kind=row.name)
    return path


def test_codes_and_their_values_have_one_type(tmp_path):
    bifurcation = next(row for row in ROWS if row.name == "bifurcation")
    stored = storage.read(written(bifurcation, tmp_path))
    assert stored.attrs["Conventions"] == "CF-1.11"
    for name in ("phase", "lyapunov_source"):
        assert stored[name].attrs["flag_values"].dtype == stored[name].dtype
    assert stored.reasons.attrs["flag_masks"].dtype == stored.reasons.dtype
    assert stored.lyapunov.attrs["units"] == "1"
    assert stored.lyapunov.attrs["unit_name"] == "nat / token"


def complaints(path) -> list[str]:
    """What compliance-checker says of a file, in a process of its own."""
    command = [sys.executable, "-W", "ignore", "-c", CHECK, str(path)]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if EARTHLY not in line]


CHECK = """
import sys
from compliance_checker.runner import CheckSuite
suite = CheckSuite()
suite.load_all_available_checkers()
results, errors = suite.run_all(suite.load_dataset(sys.argv[1]), ["cf:1.11"])["cf:1.11"]
assert not errors, errors
for result in results:
    print(*result.msgs, sep="\\n", end="\\n" if result.msgs else "")
"""


@pytest.mark.skipif(not find_spec("compliance_checker"), reason="is not installed")
@pytest.mark.slow
@pytest.mark.parametrize("row", ROWS, ids=NAMES)
def test_the_compliance_checker_agrees(row, tmp_path):
    assert complaints(written(row, tmp_path)) == []
