"""Which generator of loops makes the programs of a process."""

import importlib.metadata
import os

import pytest

from statmech_attn.batches import runtime


@pytest.fixture
def jaxlib(monkeypatch):
    """A function that pretends another version of jaxlib."""
    return lambda version: monkeypatch.setattr(
        importlib.metadata, "version", lambda package: version
    )


@pytest.mark.parametrize(
    ("version", "both"),
    [("0.7.0", True), ("0.11.0", True), ("0.11.1rc1", False), ("0.12.0.1", False)],
)
def test_both_generators_are_there_up_to_a_version(jaxlib, version, both):
    jaxlib(version)
    assert runtime.has_fused() == both


@pytest.mark.parametrize(
    ("version", "flags", "after"),
    [
        ("0.10.2", "", f"--{runtime.FUSED}=false"),
        ("0.10.2", "--xla_dump_to=x", f"--xla_dump_to=x --{runtime.FUSED}=false"),
        ("0.10.2", f"--{runtime.FUSED}=true", f"--{runtime.FUSED}=true"),
        ("0.12.0", "--xla_dump_to=x", "--xla_dump_to=x"),  # it would end the process
    ],
)
def test_flags_of_the_user_stay_and_no_unknown_one_is_added(
    jaxlib, monkeypatch, version, flags, after
):
    jaxlib(version)
    monkeypatch.setenv("XLA_FLAGS", flags)
    runtime.compile_quickly()
    assert os.environ["XLA_FLAGS"] == after
