"""Studies of a system of one's own: code in a file, named by a study."""

import pathlib

import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import plotting, storage, studies
from statmech_attn.dynamics import (
    diagram,
    diagrams,
    rotation_number,
)
from statmech_attn.explore.views import overlays
from statmech_attn.scan.jobs import chunks_of
from statmech_attn.storage import StorageError
from statmech_attn.studies.files import results, spec
from statmech_attn.studies.systems import studied_system


MAPS = """
import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn.dynamics import System

NUMBER = 3


def henon(x, p):
    return jnp.stack([1 - p["a"] * x[0] ** 2 + x[1], p["b"] * x[0]])


def wells(x, p):
    return x + 0.1 * (p["a"] + x - x**3)


def tilted(x, p):
    return jnp.stack([1.5 * jnp.tanh(x[0]) + p["a"], p["b"] * x[1]])


def norm(x):
    return jnp.sqrt(jnp.sum(x**2))


def short(x, p):
    return x[:1]


def single(x, p):
    return x.astype(jnp.float32)


def lost(x, p):
    return x * jnp.nan + p["a"]


def numpy_inside(x, p):
    return np.sin(x) + p["a"]


def branches(x, p):
    return x if x[0] > 0 else -x


def asks(x, p):
    return p["c"] * x


def wrong(x, p):
    return x.nothing


def alone(x):
    return x


DRIVEN = System(henon, drive_period=3, clock=lambda x: 0)
"""
HENON = {
    "kind": "bifurcation",
    "system": {
        "function": "maps.py:henon",
        "initial": [0.1, 0.1],
        "observables": ["x", "y"],
    },
    "parameters": {"a": [0.3, 1.0, 1.4], "b": 0.3},
    "labels": {
        "a": {"words": "nonlinearity"},
        "x": {"words": "position", "unit": "m"},
    },
    "run": {"transient": 500, "steps": 500, "exponents": 2, "max_doublings": 0},
}


def changed(tree=HENON, **tables):
    """The study with other keys in its tables; None leaves a key out."""
    found = {key: dict(x) if isinstance(x, dict) else x for key, x in tree.items()}
    for name, keys in tables.items():
        if not isinstance(keys, dict):
            found[name] = keys
            continue
        table = found.setdefault(name, {})
        for key, value in keys.items():
            table.pop(key, None)
            if value is not None:
                table[key] = value
    return found


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> pathlib.Path:
    path = tmp_path_factory.mktemp("own")
    (path / "maps.py").write_text(MAPS)
    (path / "exits.py").write_text("import sys\nsys.exit(3)\n")
    return path


@pytest.fixture(scope="module")
def write(folder):
    """Write a study beside the code; returns its path."""

    def write(tree, name="study.toml"):
        path = folder / name
        path.write_text(spec.dump(tree))
        return path

    return write


@pytest.fixture(scope="module")
def computed(folder, write):
    """The file of `HENON`, computed in chunks."""
    study, text = studies.load(write(HENON, "henon.toml"))
    output = folder / "henon.h5"
    studies.compute(study, text, output, points_per_chunk=2)
    return output


@pytest.mark.slow
def test_a_study_file_gives_the_numbers_of_the_call_in_python(computed):
    found = storage.read(computed)
    henon = lambda x, p: jnp.stack([1 - p["a"] * x[0] ** 2 + x[1], p["b"] * x[0]])
    plan = diagrams.Plan(transient=500, steps=500, exponents=2, max_doublings=0)
    expected = diagram(henon, HENON["parameters"], jnp.array([0.1, 0.1]), plan)
    for name in ("lyapunov", "strobe", "phase", "period"):
        np.testing.assert_array_equal(found[name], expected[name], err_msg=name)
    assert found.period.values.tolist() == [1, 4, 0]


def test_its_file_has_the_words_of_the_study(computed, call_cli):
    found = storage.read(computed)
    assert found.a.attrs["long_name"] == "nonlinearity"
    assert found.strobe.attrs["units"] == "m" and found.strobe.attrs["symbol"] == "x"
    assert found.attrs["system"] == "maps.py:henon"
    figures = dict(plotting.pictures(found))
    assert [*figures] == ["bifurcation"]
    _, samples, spectrum = figures["bifurcation"].axes
    assert samples.get_ylabel() == "position $x$ (m)"
    assert spectrum.get_xlabel() == "nonlinearity $a$"
    assert "chaotic" in call_cli("info", computed)


def test_the_content_of_the_code_is_part_of_the_study(computed, folder, write):
    study, text = studies.load(write(HENON, "henon.toml"))
    assert results.holds(computed, text, study.inputs())
    (folder / "other").mkdir()
    (folder / "other" / "maps.py").write_text(MAPS + "# changed\n")
    path = folder / "other" / "henon.toml"
    path.write_text(text)
    other, _ = studies.load(path)
    assert not results.holds(computed, text, other.inputs())
    assert not (folder / "__pycache__").exists()
    with pytest.raises(StorageError, match="computed with another maps.py"):
        studies.compute(other, text, computed)


@pytest.fixture
def call_cli():
    from typer.testing import CliRunner

    from statmech_attn.cli import app

    def call(*words, code=0):
        result = CliRunner().invoke(app, [str(word) for word in words])
        assert result.exit_code == code, result.output
        return result.output

    return call


def test_code_outside_the_folder_of_the_study_is_refused(folder, call_cli):
    (folder / "inner").mkdir()
    path = folder / "inner" / "study.toml"
    path.write_text(spec.dump(changed(system={"function": "../maps.py:henon"})))
    output = folder / "inner" / "out.h5"
    said = call_cli("run", path, "-o", output, code=1)
    assert "maps.py:henon: is code of " in said and "pass --allow-code" in said
    assert studies.load(path, allow_code=True)[0].code()
    (folder / "inner" / "maps.py").symlink_to(folder / "maps.py")
    path.write_text(spec.dump(HENON))
    with pytest.raises(ValueError, match="outside the study's folder"):
        studies.load(path)


def test_chunks_of_an_own_system_run_no_code_unasked(folder, write, monkeypatch):
    study, text = studies.load(write(HENON, "stopped.toml"))
    output = folder / "stopped.h5"

    def stop(*args, **kwargs):
        raise StorageError("stopped")

    with monkeypatch.context() as patch:
        patch.setattr("statmech_attn.scan.jobs._compute_chunks", stop)
        with pytest.raises(StorageError, match="stopped"):
            studies.compute(study, text, output, points_per_chunk=2)
    with pytest.raises(StorageError, match="names the code maps.py:henon"):
        results.opened(chunks_of(output))
    assert results.opened(chunks_of(output), allow_code=True)[1].kind == "bifurcation"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"function": "maps.py"}, 'function: should be "my_model.py:name" or'),
        ({"function": "maps.py:nothing"}, "maps.py:nothing: maps.py has no 'nothing'"),
        ({"function": "maps.py:NUMBER"}, "maps.py:NUMBER: is no function but .* int"),
        ({"function": "maps.py:short"}, r"maps.py:short: step must return a state"),
        ({"function": "maps.py:single"}, "maps.py:single: step must .* float32"),
        ({"function": "maps.py:lost"}, "maps.py:lost: returns NaN .* a = 0.3, b = 0.3"),
        ({"function": "maps.py:numpy_inside"}, "numpy_inside: line .* use jax.numpy"),
        ({"function": "maps.py:branches"}, "branches: line .* jnp.where, not if"),
        ({"function": "maps.py:asks"}, r"asks: asks for 'c', which is not .*: a, b"),
        ({"function": "maps.py:wrong"}, "maps.py:wrong: line .* AttributeError"),
        ({"function": "maps.py:alone"}, "maps.py:alone: it ends in TypeError: .*1 pos"),
        ({"function": "exits.py:f"}, "exits.py:f: line 2 of .*SystemExit: 3"),
        ({"function": "no.such.module:f"}, "no module 'no.such.module' on the path"),
        ({"observe": "nothing"}, "maps.py:nothing: maps.py has no 'nothing'"),
        ({"observe": "norm"}, "maps.py:henon has 1 observables"),
        ({"observables": ["x", "x"]}, "each with a name of its own"),
        ({"shown": "z"}, "system.shown: there is no observable 'z'; there are x, y"),
        ({"section": {"observable": "z", "value": 0.0}}, "section.observable: there"),
    ],
)
def test_a_function_that_is_no_system_is_named_in_one_line(write, changes, message):
    path = write(changed(system=changes), "wrong.toml")
    with pytest.raises(ValueError, match=message) as caught:
        studied_system.of_system(studies.load(path)[0])
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("kind", ["bifurcation", "trajectory"])
def test_a_system_that_diverges_everywhere_is_named(write, kind):
    run = {"exponents": 0} if kind == "bifurcation" else {}
    given = {key: None for key in HENON["run"]} | {"steps": 50, "transient": 50} | run
    path = write(
        changed(kind=kind, parameters={"a": [5.0, 6.0]}, run=given), "far.toml"
    )
    words = r"no point could be computed: maps.py:henon diverges \(2 points\)"
    with pytest.raises(ValueError, match=words):
        studies.run(studies.load(path)[0])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"phase": 1.0}}, "parameters.phase: files have a variable"),
        ({"parameters": {"a b": 1.0}}, "parameters.a b: should be a name of letters"),
        ({"labels": {"z": {}}}, "labels.z: is no parameter and no observable"),
        ({"labels": {"a": {"unti": "m"}}}, "labels.a.unti: unknown key .*'unit'"),
        ({"run": {"starts": 2}}, "run.starts > 1 needs random states"),
        ({"system": {"initial": []}}, "system.initial: should hold at least 1 value"),
        ({"system": {"flow": {"time": 1.0}}}, "system.flow.substeps: is missing"),
        ({"network": {}}, "network: unknown key"),
        (
            {"kind": "monte-carlo"},
            "a monte-carlo study takes none .*: trajectory, bifurcation",
        ),
    ],
)
def test_wrong_tables_are_named_in_one_line(write, changes, message):
    path = write(changed(**changes), "wrong.toml")
    with pytest.raises(ValueError, match=message) as caught:
        studied_system.of_system(studies.load(path)[0])
    assert "\n" not in str(caught.value)


def test_random_states_are_those_of_the_seed_whatever_is_computed_beside_them(write):
    box = {"low": [-1.0, 0.0], "high": [0.0, 2.0]}
    tree = changed(system={"initial": box}, run={"starts": 3, "seed": 5})
    problem = studied_system.of_system(studies.load(write(tree, "box.toml"))[0])
    params = problem.axes.at(np.zeros((3, 1), int))
    every = np.asarray(problem.starts(params, np.arange(3)))
    assert every.shape == (2, 3) and len(np.unique(every)) == 6
    assert (every[0] < 0).all() and (every[1] > 0).all() and (every[1] < 2).all()
    one = np.asarray(problem.starts(params, np.array([2])))
    np.testing.assert_array_equal(one[:, 0], every[:, 2])
    assert problem.attributes["start"] == "random 5"


CYCLES = changed(
    kind="continuation",
    parameters={"a": {"start": 0.0, "stop": 0.5}},
    run={key: None for key in HENON["run"]} | {"at": 0.1, "largest_step": 0.2},
)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"parameters": {"b": {"start": 0.1, "stop": 0.2}}}, "exactly one of them"),
        ({"parameters": {"a": 1.0}}, "exactly one of them as { start, stop }"),
        ({"run": {"at": 2.0}}, "run.at must lie in the interval of a, 0 to 0.5"),
        (
            {"curves": {"parameter": "c", "start": 0.0, "stop": 1.0}},
            "curves.parameter must be one of ",
        ),
    ],
)
def test_wrong_continuations_are_named_in_one_line(changes, message):
    with pytest.raises(ValueError, match=message) as caught:
        studies.parse(changed(CYCLES, **changes))
    assert "\n" not in str(caught.value)


def test_trajectories_begin_with_the_state_after_the_transient(folder, write, call_cli):
    run = {key: None for key in HENON["run"]} | {"steps": 5}
    path = write(changed(kind="trajectory", run=run), "orbit.toml")
    call_cli("run", path, "-o", folder / "orbit.h5", "--chunk", 8)
    found = storage.read(folder / "orbit.h5")
    assert found.observed.dims == ("a", "time", "observable")
    assert found.observable_unit.values.tolist() == ["m", "1"]
    x, y = 0.1, 0.1
    for t in range(5):
        here = found.observed.sel(a=1.4, time=t).values
        np.testing.assert_allclose(here, [x, y], rtol=1e-12)
        x, y = 1 - 1.4 * x**2 + y, 0.3 * x
    assert [*dict(plotting.pictures(found))] == ["trajectories"]
    assert "observable 2" in call_cli("info", folder / "orbit.h5")


def test_basins_need_a_box(write):
    run = {key: None for key in HENON["run"]}
    with pytest.raises(ValueError, match="system.initial must be a box, { low, high }"):
        studies.load(write(changed(kind="basins", run=run), "basins.toml"))


def test_a_module_is_found_without_running_it(folder, write, monkeypatch):
    package = folder / "path" / "my_models"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise RuntimeError('run')")
    (package / "maps.py").write_text(MAPS)
    monkeypatch.syspath_prepend(folder / "path")
    inside = write(changed(system={"function": "my_models.maps:henon"}), "module.toml")
    study, _ = studies.load(inside)  # below the folder of the study
    assert [*study.inputs()] == ["my_models.maps"]
    assert study.files() == [package / "maps.py"]
    with pytest.raises(ValueError, match="my_models.maps:henon: .* RuntimeError: run"):
        studied_system.of_system(study)
    (package / "__init__.py").write_text("")
    assert (
        studied_system.of_system(study).attributes["system"] == "my_models.maps:henon"
    )
    (folder / "below").mkdir()
    path = folder / "below" / "module.toml"
    path.write_text(inside.read_text())
    with pytest.raises(ValueError, match="my_models.maps:henon: is code of .*maps.py"):
        studies.load(path)


def test_a_system_keeps_its_drive_and_takes_the_observables_of_the_study(write):
    observables = {"function": "maps.py:DRIVEN", "observe": "norm", "observables": None}
    problem = studied_system.of_system(
        studies.load(write(changed(system=observables, labels={"x": {"unit": "m"}})))[0]
    )
    assert problem.system.drive_period == problem.turn == 3
    assert [(row.name, row.units) for row in problem.observables] == [("x", "m")]


@pytest.mark.slow
def test_the_rotation_number_of_a_torus_has_an_error_in_basins(folder, write, call_cli):
    """Seen as a plane it is that of the lift; as one coordinate it may be 1 - ρ."""
    (folder / "circle.py").write_text(
        "import jax.numpy as jnp\n"
        "from statmech_attn.dynamics import System\n"
        "def step(z, p):\n"
        "    turn = jnp.arctan2(z[1], z[0]) + 2 * jnp.pi * p['omega'] - 0.8 * z[1]\n"
        "    r = jnp.sqrt(jnp.hypot(z[0], z[1]))\n"
        "    return r * jnp.stack([jnp.cos(turn), jnp.sin(turn)])\n"
        "line = System(step, observe=lambda z: z[:1])\n"
    )
    lift = lambda x, p: x + p["omega"] - 0.8 / (2 * np.pi) * jnp.sin(2 * np.pi * x)
    exact = float(rotation_number(lift, 0.1, {"omega": 0.62}, steps=50_000).number)
    for name, oriented, value in (("step", 1, exact), ("line", 0, 1 - exact)):
        tree = {
            "kind": "basins",
            "system": {
                "function": f"circle.py:{name}",
                "initial": {"low": [0.5, 0.5], "high": [1.0, 1.0]},
            },
            "parameters": {"omega": 0.62},
            "run": {"starts": 4, "horizon": 20_000, "steps": 4000, "exponents": 1},
        }
        call_cli("run", write(tree, f"{name}.toml"), "-o", folder / f"{name}.h5")
        found = storage.read(folder / f"{name}.h5")
        row = found.isel(omega=0, slot=0)
        error = float(row.rotation_error)
        assert int(row.rotation_oriented) == oriented and 0 < error < 1e-5
        off = abs(float(row.rotation_number) - value)
        assert off < error + 1e-12  # rounding of 3072 angles and their weights
        told = diagrams.rotation_text(row)
        shown = call_cli("info", folder / f"{name}.h5")
        assert all(word in shown for word in told.split())  # the table wraps lines
        [layer] = overlays.basins(found, ("omega",))
        words = layer["cells"][0]["parts"][0]["words"]
        assert words == f"quasiperiodic, rotation number {told}"
        assert told.endswith("or 1 - ρ") == (not oriented)
