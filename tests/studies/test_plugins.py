"""Kinds, tasks and samplers of other distributions: the examples of docs/plugins.md."""

import json
import os
import pathlib
import re
import signal
import subprocess
import sys
import time
import types
import zipfile

import jsonschema
import numpy as np
import pytest

from statmech_attn import kinds, storage, studies
from statmech_attn.studies.files import reference, spec
from statmech_attn.studies.learning import tasks
from statmech_attn.studies.network import models


ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "plugins.md").read_text("utf-8")
PROJECT, PACKAGE, WORK, TASK, SAMPLER, GENERATOR = (
    text for _, text in re.findall(r"```(toml|python)\n(.*?)```", PAGE, re.DOTALL)
)
STUDY = 'kind = "walk"\n[run]\nwalkers = 40\nsteps = 1000000\n'
ROWS = """
[project.entry-points."statmech_attn.tasks"]
sum = "walks.sums:TASK"

[project.entry-points."statmech_attn.samplers"]
prior = "walks.priors:SAMPLER"
"""
SAMPLED = {
    "kind": "posterior",
    "task": {"name": "sum"},
    "network": {"width": 5, "temperature": 1e12},
    "run": {
        "method": "prior",
        "draws": 200,
        "warmup": 10,
        "block": 100,
        "chains": 2,
        "stored": 0,
    },
}
COMMANDS = """
import json
import sys
from statmech_attn.cli import app
for words in {words!r}:
    app(words, standalone_mode=False)
from statmech_attn.studies import reference
print(json.dumps(reference.schema()))
"""


TRAJECTORY = {"kind": "trajectory", "parameters": {"beta": 1.0}}


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> pathlib.Path:
    """A folder in which the example is installed."""
    project = tmp_path_factory.mktemp("walks")
    (project / "walks").mkdir()
    (project / "pyproject.toml").write_text(PROJECT + ROWS)
    (project / "walks" / "__init__.py").write_text(PACKAGE)
    for name, text in (("work", WORK), ("sums", TASK), ("priors", SAMPLER)):
        (project / "walks" / f"{name}.py").write_text(text)
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel"]
    subprocess.run(command, cwd=project, check=True, capture_output=True)
    (wheel,) = (project / "dist").glob("*.whl")
    zipfile.ZipFile(wheel).extractall(project / "site")
    return project / "site"


def started(site: pathlib.Path, code: str) -> subprocess.Popen:
    """A Python that finds the distribution in `site`."""
    paths = [str(site), str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(paths)},
    )


def done(site: pathlib.Path, *words: list[str]) -> str:
    """What commands wrote on stdout, one after another in one process."""
    process = started(site, COMMANDS.format(words=[[*map(str, w)] for w in words]))
    said, errors = process.communicate()
    assert process.returncode == 0, errors
    return said


@pytest.mark.slow
def test_a_kind_of_another_distribution_runs_resumes_is_drawn_and_described(
    site, tmp_path
):
    study, output = tmp_path / "walk.toml", tmp_path / "walk.h5"
    study.write_text(STUDY)
    words = ["run", study, "--output", output, "--chunk", "1", "--workers", "1"]
    process = started(site, COMMANDS.format(words=[[*map(str, words)]]))
    chunks = tmp_path / "walk.h5.chunks"
    while process.poll() is None and len([*chunks.glob("chunk-*.h5")]) < 2:
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    _, errors = process.communicate()
    assert process.returncode == -signal.SIGKILL, errors
    assert chunks.exists() and not output.exists()

    schema = tmp_path / "study.schema.json"
    said = done(
        site,
        words,
        ["info", output],
        ["figure", output, "--output", tmp_path],
        ["schema", "--output", schema],
    )
    *_, schema_of_all = said.splitlines()
    walkers = json.loads(schema_of_all)["$defs"]["walk.WalkRun"]["properties"][
        "walkers"
    ]
    assert "rms position" in said and walkers["default"] == 100
    assert (tmp_path / "positions.png").stat().st_size > 1000
    found = storage.read(output)
    assert found.farthest.attrs["long_name"] == "largest distance on the way"
    generators = (np.random.default_rng([0, number]) for number in range(40))
    ends = [g.choice([-1.0, 1.0], 1_000_000).sum() for g in generators]
    np.testing.assert_array_equal(found.position, ends)

    known = jsonschema.Draft202012Validator(json.loads(schema.read_text()))
    assert known.is_valid({"kind": "walk", "run": {"steps": 5}})
    assert not known.is_valid({"kind": "walk", "run": {"steps": 0}})


def require_prior(found) -> None:
    """At high temperature the posterior is the prior, whose U_1 is the unit matrix."""
    z = (found.U_1 - np.eye(2)) / found.U_1_stderr
    assert abs(z).max() < 5 and "bfmi" not in found
    assert json.loads(found.attrs["task"])["name"] == "sum"


@pytest.mark.slow
def test_a_task_and_a_sampler_of_another_distribution_make_a_posterior(site, tmp_path):
    study, output = tmp_path / "prior.toml", tmp_path / "prior.h5"
    study.write_text(studies.dump(SAMPLED))
    said = done(site, ["run", study, "--output", output], ["info", output])
    require_prior(storage.read(output).isel(width=0))
    assert '"title": "posterior, sum"' in said
    assert '["order-parameter", "weights", "langevin", "prior"]' in said


def module_of(text: str) -> types.ModuleType:
    """The module of an example."""
    module = types.ModuleType("example")
    exec(text, module.__dict__)
    return module


@pytest.fixture
def tables(monkeypatch):
    """The tables of this process, changed while the test runs only."""
    for rows in (kinds.KINDS, kinds.TASKS, kinds.SAMPLERS, kinds.GENERATORS):
        monkeypatch.setattr(rows, "places", dict(rows.places))
    return kinds


def test_a_row_each_makes_a_task_and_a_sampler_known(tables):
    tables.TASKS.add(module_of(TASK).TASK)
    tables.SAMPLERS.add(module_of(SAMPLER).SAMPLER)
    assert studies.parse(SAMPLED).run.method == "prior"
    saddle = studies.parse(SAMPLED | {"kind": "order-parameter", "run": {}})
    assert tasks.learning(saddle.task).xi.shape == (20, 6, 2)
    models = {(kind, task) for kind, task, _ in spec.models()}
    assert {("order-parameter", "sum"), ("posterior", "sum"), ("training", "sum")} < (
        models
    )
    check = jsonschema.Draft202012Validator(reference.schema())
    assert check.is_valid(SAMPLED)
    tree = SAMPLED | {"run": SAMPLED["run"] | {"method": "priors"}}
    assert not check.is_valid(tree)
    with pytest.raises(ValueError, match="'langevin' or 'prior'; got 'priors'"):
        studies.parse(tree)


def test_a_row_makes_a_generator_of_patterns_known(tables):
    tables.GENERATORS.add(module_of(GENERATOR).GENERATOR)
    network = {"patterns": "autoassociative", "seed": 1, "context": 2}
    study = TRAJECTORY | {"network": network | {"n_patterns": 2, "n_segments": 3}}
    parameters = {"beta": 1.0, "gamma": 1.0, "epsilon": 0.0}
    table = studies.parse(study | {"parameters": parameters}).network
    o, v, q, k = models.model(table).patterns.semantic
    assert o.shape == (2, 3)
    for other in (v, q, k):
        np.testing.assert_array_equal(o, other)
    with pytest.raises(ValueError, match="'autoassociative' needs n_segments"):
        studies.parse(study | {"network": network | {"n_patterns": 2}})
    with pytest.raises(ValueError, match="n_bits has no use with patterns = 'auto"):
        studies.parse(study | {"network": study["network"] | {"n_bits": 2}})


@pytest.fixture
def claiming(tmp_path, monkeypatch):
    """Writes a distribution with one entry point, on the path of this process."""

    def write(distribution: str, name: str, value: str, group: str = "kinds"):
        info = tmp_path / f"{distribution}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Name: {distribution}\nVersion: 1.0\n")
        lines = f"[statmech_attn.{group}]\n{name} = {value}\n"
        (info / "entry_points.txt").write_text(lines)
        kinds.installed.cache_clear()

    monkeypatch.syspath_prepend(tmp_path)
    yield write
    kinds.installed.cache_clear()


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("walk", "no_such_module:KIND", "ModuleNotFoundError: No module named"),
        ("walk", "json:KIND", "AttributeError: module 'json' has no attribute"),
        ("walk", "json:dumps", "json:dumps is no Kind of the name 'walk'"),
        ("trajectory", "json:dumps", "name that is taken by statmech_attn itself"),
    ],
)
def test_a_row_that_cannot_be_used_is_refused_when_it_is_needed(
    claiming, name, value, why
):
    claiming("strange", name, value)
    assert studies.parse(TRAJECTORY | {"kind": "bifurcation"}).kind == "bifurcation"
    with pytest.raises(ValueError, match=f"kind '{name}' of strange 1.0 .*{why}") as e:
        studies.parse(TRAJECTORY | {"kind": name})
    assert "\n" not in str(e.value)


def test_two_distributions_cannot_claim_one_name(claiming):
    claiming("one", "walk", "json:dumps")
    claiming("other", "walk", "json:dumps")
    with pytest.raises(ValueError, match="of o.* 1.0 has a name .* taken by o.* 1.0"):
        studies.parse({"kind": "walk"})


def test_what_a_row_leads_to_is_refused_with_its_distribution(claiming, tmp_path):
    row = 'KIND = Kind("walk", table="no_such_module:Study")\n'
    text = f"from statmech_attn.kinds import Kind\n{row}"
    (tmp_path / "strange_rows.py").write_text(text)
    claiming("strange", "walk", "strange_rows:KIND")
    with pytest.raises(ValueError, match="kind 'walk' of strange 1.0 .*no_such_module"):
        studies.parse({"kind": "walk"})


def test_a_task_that_cannot_be_loaded_is_refused_when_it_is_needed(claiming):
    claiming("strange", "sum", "no_such_module:TASK", "tasks")
    network = {"width": 5, "temperature": 0.1}
    tree = {"kind": "order-parameter", "network": network}
    assert studies.parse(tree).task.name == "hidden-markov"
    with pytest.raises(ValueError, match="task 'sum' of strange 1.0 cannot be loaded"):
        studies.parse(tree | {"task": {"name": "sum"}})
