"""The command that installs an extra names where the package came from."""

import importlib.metadata
import json

import pytest

from statmech_attn import extras


PLAIN = "pip install 'statmech-attn[dask]'"


@pytest.mark.parametrize(
    ("origin", "command"),
    [
        (None, PLAIN),
        (
            {"url": "file:///a/my%20clone", "dir_info": {"editable": True}},
            "pip install --editable '/a/my clone[dask]'",
        ),
        ({"url": "file:///clone", "dir_info": {}}, "pip install '/clone[dask]'"),
        (
            {"url": "file:///x.whl", "archive_info": {}},
            PLAIN,
        ),
        (
            {"url": "https://x/y.git", "vcs_info": {}},
            PLAIN,
        ),
    ],
)
def test_an_extra_comes_from_where_the_package_came(monkeypatch, origin, command):
    class Installed:
        def read_text(self, name):
            return json.dumps(origin) if origin and name == "direct_url.json" else None

    monkeypatch.setattr(importlib.metadata, "distribution", lambda _: Installed())
    assert extras.command("dask") == command


def test_a_copy_that_was_not_installed_has_a_command_too(monkeypatch):
    def missing(name):
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "distribution", missing)
    assert extras.command("dask") == PLAIN
    words = extras.needed("training", "optax", "dask")
    assert words == f"training needs optax: {PLAIN}."
