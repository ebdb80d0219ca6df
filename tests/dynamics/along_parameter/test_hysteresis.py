"""Sweeps up and down are compared: of scans of any map, of the network, by hand."""

import jax.numpy as jnp
import numpy as np
import pytest
import xarray as xr
from typer.testing import CliRunner

from statmech_attn import plotting, storage, studies
from statmech_attn.cli import app
from statmech_attn.dynamics import diagram, PHASES
from statmech_attn.dynamics.diagrams import compare_sweeps, Plan


FOLD = 2 / np.sqrt(27)  # where a stable fixed point of r + x - x^3 = 0 ends
FORCES = np.linspace(-0.6, 0.6, 13)
CUBIC = Plan(transient=500, steps=500, exponents=1)


def cubic(x, p):
    return x + 0.1 * (p["force"] + p["slope"] * x - x**3)


@pytest.fixture(scope="module")
def wells():
    """A map of one's own, swept up and down through its two folds."""
    grid, start = {"force": FORCES[::-1], "slope": 1.0}, jnp.array(-1.0)
    return [diagram(cubic, grid, start, CUBIC, sweep=way) for way in ("up", "down")]


@pytest.mark.slow
def test_sweeps_of_a_map_of_ones_own_differ_between_its_folds(wells):
    """By as much as its lower and upper fixed points are apart."""
    compared = compare_sweeps(*wells)
    inside = np.abs(FORCES) < FOLD
    np.testing.assert_array_equal(compared.force, FORCES)
    np.testing.assert_array_equal(compared.differ, inside)
    expected = [FORCES[2], FORCES[3], FORCES[9], FORCES[10]]
    np.testing.assert_array_equal(compared.interval, [expected])
    roots = [np.sort(np.roots([-1, 0, 1, r]).real) for r in FORCES[inside]]
    lower, upper = np.array(roots)[:, [0, 2]].T
    for way, points in (("up", lower), ("down", upper)):
        samples = compared[f"strobe_{way}"][inside]
        assert np.abs(samples - points[:, None]).max() < 1e-9
    assert np.abs(compared.distance[inside] - (upper - lower)).max() < 1e-9
    words = "displayed coordinate at the clock's phase 0, swept up"
    assert compared.strobe_up.attrs["long_name"] == words
    assert compared.slope == 1.0 and compared.force.attrs == wells[0].force.attrs


@pytest.mark.slow
def test_files_of_scans_from_python_are_compared(wells, tmp_path):
    """As the scans in memory are; by Python and by the command."""
    paths = [tmp_path / f"{way}.h5" for way in ("up", "down", "both")]
    grid, start = {"force": FORCES[::-1], "slope": 1.0}, jnp.array(-1.0)
    for way, path in zip(("up", "down"), paths, strict=False):
        diagram(cubic, grid, start, CUBIC, sweep=way, file=path)
    expected = compare_sweeps(*wells)
    xr.testing.assert_identical(compare_sweeps(*map(storage.read, paths[:2])), expected)
    words = ["hysteresis", *map(str, paths[:2]), "--output", str(paths[2])]
    result = CliRunner().invoke(app, words)
    assert result.exit_code == 0, result.output
    assert "force: up and down differ from -0.3 to 0.3" in result.output
    xr.testing.assert_equal(storage.read(paths[2]), expected)


@pytest.fixture(scope="module")
def sweeps():
    """Up and down through a stretch where periods 28 and 32 coexist."""
    run = {"exponents": 2, "transient": 30_000, "steps": 4000, "max_doublings": 2}
    beta = {"start": 1.268, "stop": 1.275, "num": 15}
    tree = {"kind": "bifurcation", "parameters": {"beta": beta}}
    ways = ("continue-up", "continue-down")
    return [
        studies.run(studies.parse(tree | {"run": run | {"start": way}})) for way in ways
    ]


@pytest.mark.slow
def test_sweeps_of_the_network_show_hysteresis(sweeps):
    found = compare_sweeps(*sweeps)
    up, down = sweeps
    inside = (up.period > 0) & (down.period > 0)
    inside &= (up.period % 28 == 0) & (down.period % 16 == 0)
    assert inside.values.sum() > 3 and found.differ.values[inside].all()
    same = (up.period == down.period) & (up.period > 0)
    gap = np.abs(np.sort(up.strobe) - np.sort(down.strobe)).max(-1)
    assert not found.differ.values[same & (gap < 1e-9)].any()
    low, first, last, high = found.interval.values[0]
    assert first <= float(up.beta[np.argmax(inside.values)]) <= last
    with pytest.raises(ValueError, match="different values of beta"):
        compare_sweeps(up, down.isel(beta=slice(1, None)))
    with pytest.raises(ValueError, match="of different networks"):
        compare_sweeps(up, down.assign_attrs(network="another"))
    with pytest.raises(ValueError, match="needs two scans with samples"):
        compare_sweeps(up, found)


def swept(direction, strobe, period, **parameters):
    """A scan over three beta with these samples at each."""
    sample = np.arange(1, 1 + strobe.size)
    return xr.Dataset(
        {
            "strobe": (("beta", "strobe_sample"), np.tile(strobe, (3, 1))),
            "phase": ("beta", np.full(3, PHASES.index("periodic"))),
            "period": ("beta", np.full(3, period)),
        },
        {"beta": [1.0, 1.1, 1.2], "strobe_sample": sample} | parameters,
        {"kind": "bifurcation", "network": "a", "clock_period": 4}
        | {"direction": direction},
    )


@pytest.mark.parametrize(("q", "samples"), [(82, 64), (82, 128), (16, 64)])
def test_one_cycle_sampled_at_two_phases_is_no_hysteresis(q, samples):
    """Of 82 points 64 samples see different parts; 10 per cent away is another."""
    cycle = np.random.default_rng(0).normal(size=q)
    seen = [cycle[(np.arange(samples) + lag) % q] for lag in (0, q // 2)]
    up, down = swept("up", seen[0], 4 * q), swept("down", seen[1], 4 * q)
    assert not compare_sweeps(up, down).differ.any()
    other = swept("down", 10 + 1.1 * seen[1], 4 * q)
    assert compare_sweeps(up, other).differ.all()


def test_samples_are_labelled_as_those_of_their_scan():
    """Not as those of the network, whatever the scan shows."""
    of_own = {"kind": "diagram", "unit": "step", "clock_period": 1}
    sweeps = [
        swept(way, np.zeros(4), 4)
        .rename(beta="force")
        .drop_attrs(deep=False)
        .assign_attrs(of_own, direction=way)
        for way in ("up", "down")
    ]
    for words, symbol in (
        ("displayed coordinate at the clock's phase 0", "x"),
        ("position, stroboscopic", "X"),
    ):
        shown = {"long_name": words, "units": "m", "symbol": symbol}
        scans = [scan.assign(strobe=scan.strobe.assign_attrs(shown)) for scan in sweeps]
        compared = compare_sweeps(*scans)
        for way in ("up", "down"):
            attributes = compared[f"strobe_{way}"].attrs
            assert attributes["long_name"] == f"{words}, swept {way}"
            assert attributes["symbol"] == symbol
    samples, _, distance = dict(plotting.pictures(compared))["hysteresis"].axes
    assert (samples.get_ylabel(), distance.get_xlabel()) == ("$X$", "force")


def test_only_the_two_directions_of_one_sweep_are_compared():
    samples = np.zeros(64)
    up, down = (swept(way, samples, 4, gamma=90.0) for way in ("up", "down"))
    assert float(compare_sweeps(up, down).gamma) == 90
    for one, other, message in (
        (up, swept("down", samples, 4, gamma=120.0), "different values of gamma"),
        (up, swept("down", samples, 4), "different values of gamma"),
        (up, up, "got the directions 'up' and 'up'"),
        (down, up, "got the directions 'down' and 'up'"),
        (swept("", samples, 4, gamma=90.0), down, "got the directions '' and 'down'"),
    ):
        with pytest.raises(ValueError, match=message):
            compare_sweeps(one, other)

    def own(way, system):
        scan = swept(way, samples, 4).assign_attrs(system=system)
        del scan.attrs["network"]
        return scan

    up, down = own("up", "maps.py:wells"), own("down", "maps.py:wells")
    assert compare_sweeps(up, down).attrs["system"] == "maps.py:wells"
    with pytest.raises(ValueError, match="different networks or systems"):
        compare_sweeps(up, own("down", "maps.py:other"))
