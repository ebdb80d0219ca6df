"""Studies of basins: what a file holds; matching it anew changes one thing only."""

import numpy as np
import pytest

from statmech_attn import storage, studies
from statmech_attn.dynamics import PHASES
from statmech_attn.scan.engines import local
from statmech_attn.scan.forecast import forecast
from statmech_attn.studies.files import results, spec


STUDY = {
    "kind": "basins",
    "parameters": {"beta": [1.27, 1.0, 1.2645]},
    "run": {"starts": 24, "seed": 1, "horizon": 60_000, "steps": 4000},
}


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The file of a small study, through TOML and HDF5."""
    folder = tmp_path_factory.mktemp("basins")
    (folder / "study.toml").write_text(spec.dump(STUDY))
    study, text = studies.load(folder / "study.toml")
    results.compute(study, text, folder / "basins.h5")
    return folder / "basins.h5"


@pytest.fixture(scope="module")
def found(stored):
    return storage.read(stored)


def names(found, beta):
    here = found.sel(beta=beta)
    present = here["count"].values > 0
    return [PHASES[int(p)] for p in here.phase.values[present]]


@pytest.mark.slow
def test_the_published_attractors_with_their_periods(found):
    assert names(found, 1.0) == ["fixed"]
    assert set(names(found, 1.27)) == {"periodic"}
    assert 28 in found.period.sel(beta=1.27).values
    assert found.period.sel(beta=1.2645).values[0] == 44
    assert set(names(found, 1.2645)) <= {"periodic", "quasiperiodic"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"beta": [1, 2.0], "gamma": [1, 2.0]}}, "scans one parameter"),
        ({"run": {"starts": 1}}, "run.starts: should be at least 2"),
        ({"run": {"start": "token"}}, "run.start: should be 'random'; got 'token'"),
        ({"run": {"matching": "name"}}, "run.matching: should be 'flow' or 'distance'"),
        ({"run": {"capture": 0.0}}, "run.capture: should be above 0"),
        pytest.param(
            {"run": {"exponents": 13}},
            "exponents must lie in 0..12",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_impossible_studies_are_one_clear_line(changes, message):
    small = {"kind": "basins", "parameters": {"beta": 1.0}, "run": {"starts": 2}}
    with pytest.raises(ValueError, match=message) as caught:
        studies.run(studies.parse(small | changes))
    assert "\n" not in str(caught.value)


@pytest.mark.slow
def test_the_forecast_says_what_a_run_may_cost():
    class Told(studies.Silent):
        work = done = 0.0

        def begin(self, description, points, work):
            self.work = work

        def advance(self, work):
            self.done += work

    small = {"kind": "basins", "parameters": {"beta": 1.0}, "run": {"starts": 4}}
    study, report = studies.parse(small), Told()
    said = forecast(studies.work(study), local.engine(1), None).assumptions()
    assert "not included: starts that settle later" in said
    studies.run(study, report)
    assert report.done == pytest.approx(report.work)


@pytest.mark.slow
def test_the_published_shares_of_88_random_starts():
    """Torus and period 44 at 1.2645, periods 28 and 32 at 1.2738; 3 and 85, 77 and 11.

    The shares are those of a set of starts of its own, compared in binomial errors of
    both counts.
    """
    run = {"starts": 400, "seed": 7, "horizon": 1_000_000, "steps": 4000}
    tree = {"kind": "basins", "parameters": {"beta": [1.2645, 1.2738]}, "run": run}
    found = studies.run(studies.parse(tree))
    for beta, period, count in ((1.2645, 44, 85), (1.2738, 28, 77)):
        here = found.sel(beta=beta)
        # A set that 88 starts did not see is one that they would miss now and then.
        assert (1 - here.fraction.values[2:].sum()) ** 88 > 1e-3
        share = float(here.fraction.values[here.period.values == period][0])
        both = (share * 400 + count) / 488
        error = np.sqrt(both * (1 - both) * (1 / 400 + 1 / 88))
        assert abs(share - count / 88) < 3.5 * error
