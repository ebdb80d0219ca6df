"""Studies of basins: what a file holds; matching it anew changes one thing only."""

import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from statmech_attn import dmft, storage, studies
from statmech_attn.cli import app
from statmech_attn.dmft import network_digest
from statmech_attn.dynamics import BasinDiagram, PHASES, Search
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


@pytest.mark.slow
def test_every_start_is_counted_once(found):
    total = found["count"].sum("slot") + found.count_unsettled + found.count_diverged
    np.testing.assert_array_equal(total, 24)
    for k in found.slot.values:
        of_k = (found.label == k - 1).sum("start")
        np.testing.assert_array_equal(of_k, found["count"].sel(slot=k))
    np.testing.assert_allclose(found.fraction, found["count"] / 24)
    present = found["count"] > 0
    assert (found.fraction_low <= found.fraction).values[present].all()
    assert (found.fraction <= found.fraction_high).values[present].all()
    assert (found.attractor.values >= 0).sum() == present.values.sum()


@pytest.mark.slow
def test_stored_points_lie_on_the_cycles(found):
    here = found.sel(beta=1.27).isel(slot=0)
    q = int(here.n_points)
    assert q == int(here.period) // 4
    points = here.points.transpose("point", "pattern").values
    np.testing.assert_array_equal(points[q : 2 * q], points[:q])
    newest = here.states.transpose("turn", "age", "pattern").values[:, 0]
    gap = np.abs(newest[:, None] - points[None, :q]).max(-1).min(1)
    assert gap.max() < 1e-8


@pytest.mark.slow
def test_a_study_does_not_depend_on_which_values_are_beside(found):
    alone = STUDY | {"parameters": {"beta": [1.27]}}
    again = studies.run(studies.parse(alone)).isel(beta=0)
    here = found.sel(beta=1.27)
    np.testing.assert_array_equal(again.lifetime, here.lifetime)
    np.testing.assert_array_equal(again.label, here.label)
    assert float(again.escape_rate) == float(here.escape_rate)


@pytest.mark.slow
def test_matching_anew_changes_numbers_only(found, stored, monkeypatch):
    by_distance = studies.rematch(found, "distance", 0.1)
    by_flow = studies.rematch(found, "flow")
    for again in (by_distance, by_flow):
        kept = [name for name in found.variables if name != "attractor"]
        assert all(again[name].equals(found[name]) for name in kept)
    np.testing.assert_array_equal(by_flow.attractor, found.attractor)
    far = studies.rematch(found, "distance", 1e-9).attractor.values
    numbers = far[far >= 0]
    assert len(set(numbers)) == len(numbers)  # nothing is that near


@pytest.mark.slow
def test_the_command_line_matches_a_stored_file_anew(stored, tmp_path):
    output = tmp_path / "again.h5"
    result = CliRunner().invoke(app, ["rematch", str(stored), "--output", str(output)])
    assert result.exit_code == 0, result.output
    again = storage.read(output)
    assert again.attrs["matching"] == "distance" and again.attrs["kind"] == "basins"
    assert "share with Wilson's interval" in result.output
    # It is the result of the study that asks for these numbers, not of the first one.
    text = storage.read(stored).attrs["study"]
    run = STUDY["run"] | {"matching": "distance"}
    assert results.holds(output, spec.dump(STUDY | {"run": run}))
    assert not results.holds(output, text)
    for by in ("distance", "flow"):
        onto = ["rematch", str(stored), "-o", str(stored), "--matching", by]
        refused = CliRunner().invoke(app, onto)
        assert refused.exit_code and results.holds(stored, text)


@pytest.mark.slow
def test_a_file_is_matched_with_its_own_network_as_it_was_computed(
    found, tmp_path, monkeypatch, published
):
    with pytest.raises(ValueError, match="a network that is not the file's"):
        studies.rematch(found.assign_attrs(network="another"), "flow")
    used, context = [], int(found.context)

    def none_flow(diagram, dataset):
        used.append(diagram.search)
        counts = (dataset.sortby("beta")["count"] > 0).sum("slot").values
        return [np.full(n, -1) for n in counts[:-1]]

    monkeypatch.setattr(BasinDiagram, "targets", none_flow)
    study = spec.dump(STUDY | {"network": {"patterns": "x.json"}})
    patterns = (published / "poclopez_patterns.json").read_bytes()
    (tmp_path / "x.json").write_bytes(patterns)
    net = dmft.network(dmft.load(tmp_path / "x.json").patterns, context=context)
    moved = found.assign_attrs(study=study, network=network_digest(net))
    studies.rematch(moved, "flow", 0.1, tmp_path)
    assert used == [Search(60_000, transient=50_000, capture=1e-3)]


@pytest.mark.slow
def test_the_forecast_says_what_a_run_may_cost():
    class Told(studies.Silent):
        work = done = 0.0

        def begin(self, description, points, work):
            self.work = work

        def advance(self, work):
            self.done += work

    report = Told()
    small = {"kind": "basins", "parameters": {"beta": 1.0}, "run": {"starts": 4}}
    study = studies.parse(small)
    said = forecast(studies.work(study), local.engine(1), None).assumptions()
    assert "not included: starts that settle later" in said
    studies.run(study, report)
    assert report.done == pytest.approx(report.work)


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
def test_only_basin_files_are_matched(found):
    with pytest.raises(ValueError, match="must be of kind 'basins'"):
        studies.rematch(found.assign_attrs(kind="bifurcation"))
    with pytest.raises(ValueError, match="matching must be 'distance' or 'flow'"):
        studies.rematch(found, "name")
    for furthest in (-1.0, 0.0, np.inf, np.nan):
        with pytest.raises(ValueError, match="furthest must be"):
            studies.rematch(found, "distance", furthest)
    with pytest.raises(ValueError, match="only a file names its study"):
        studies.rematch(found.assign_attrs(study=""))
    with pytest.raises(ValueError, match="of kind 'basins'.*got 'trajectory'"):
        study = 'kind = "trajectory"\n[parameters]\nbeta = 1.4\n'
        studies.rematch(found.assign_attrs(study=study))


def test_a_diagram_of_python_has_no_study_that_could_be_matched():
    diagram = BasinDiagram(lambda x, p: p["a"] * x, np.ones(2), {"a": [0.5]})
    stored = xr.Dataset(attrs={"study": spec.dump(diagram.identity())})
    with pytest.raises(ValueError, match="matched by dynamics.match_attractors"):
        studies.rematch(stored)


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
