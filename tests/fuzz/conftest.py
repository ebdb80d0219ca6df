"""Commands in processes of their own."""

import importlib.util
import sys
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def command():
    """Runs a command in a process of its own; see forked.py."""
    path = Path(__file__).with_name("forked.py")
    specification = importlib.util.spec_from_file_location("forked", path)
    assert specification is not None and specification.loader is not None
    forked = importlib.util.module_from_spec(specification)
    sys.modules["forked"] = forked
    specification.loader.exec_module(forked)
    server = forked.Server()
    yield server
    server.close()
