"""A study that costs nothing, in this process and in others; see toy_study.py."""

import importlib.util
import sys
from pathlib import Path

import pytest


PATH = Path(__file__).with_name("toy_study.py")


@pytest.fixture(scope="session")
def toy_module():
    specification = importlib.util.spec_from_file_location("toy_study", PATH)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules["toy_study"] = module
    specification.loader.exec_module(module)
    return module


@pytest.fixture
def toy(toy_module, monkeypatch):
    """The module, its study known to this process while the test runs."""
    toy_module.install(monkeypatch.setattr)
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

    def write(**keys) -> Path:
        path = tmp_path / "toy.toml"
        lines = [f"{name} = {value}" for name, value in keys.items()]
        path.write_text("\n".join(['kind = "toy"', *lines]) + "\n")
        return path

    return write
