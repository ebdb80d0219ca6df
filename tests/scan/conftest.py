"""A study that costs nothing, in this process and in others.

See toy_study.py and toy_runs.py.
"""

import importlib.util
import sys
from functools import partial
from pathlib import Path

import pytest

from statmech_attn import kinds, studies
from statmech_attn.scan import jobs
from statmech_attn.scan.engines.local import in_memory
from statmech_attn.storage import StorageError


def load(name: str):
    """A module of this folder, which tests can import from then on."""
    path = Path(__file__).with_name(f"{name}.py")
    specification = importlib.util.spec_from_file_location(name, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[name] = module
    specification.loader.exec_module(module)
    return module


toy_runs = load("toy_runs")


@pytest.fixture(scope="session")
def toy_module():
    return load("toy_study")


@pytest.fixture
def toy(toy_module, monkeypatch):
    """The module, its study known to this process while the test runs."""
    monkeypatch.setattr(kinds.KINDS, "places", dict(kinds.KINDS.places))
    toy_module.install()
    return toy_module


@pytest.fixture(scope="module")
def server(toy_module, tmp_path_factory):
    """Starts `statmech-attn` in other processes."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TOY_LOGS", str(tmp_path_factory.mktemp("logs")))
        started = toy_module.Server()
        yield started
        started.close()


@pytest.fixture
def study(tmp_path):
    """Writes a study file; keys may be given."""
    return partial(toy_runs.write, tmp_path)


@pytest.fixture
def begun(toy, study, tmp_path, monkeypatch):
    """Computes the chunks of a study and does not merge them."""

    def begin(output=tmp_path / "out.h5", **keys):
        path = study(points=20, **keys)
        with monkeypatch.context() as patch:
            patch.setattr(jobs, "merge", toy_runs.stop_before_merging)
            with pytest.raises(StorageError, match="not now"):
                toy_runs.compute(path, output)
        return path, output

    return begin


@pytest.fixture
def expected(toy):
    """What a study gives that is computed at once in memory."""
    return lambda path: in_memory(studies.work(studies.load(path)[0]))
