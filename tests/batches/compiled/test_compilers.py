"""Which compiler makes the programs of a run, and what is said of it."""

import sys

import pytest

from statmech_attn.batches import resolve_compiler, stored_compiler
from statmech_attn.batches.compiled import compilers, programs


@pytest.fixture
def made():
    """Whether programs were to be native, in the order in which they were made."""
    return []


@pytest.fixture
def without_llvmlite(monkeypatch):
    monkeypatch.setitem(sys.modules, "statmech_attn.native", None)


def test_native_programs_are_made_where_they_can_be(made):
    pytest.importorskip("llvmlite", exc_type=ImportError)
    assert resolve_compiler("auto", made.append).name == "llvm"
    assert made == [True]


def test_without_llvmlite_a_line_says_what_it_would_bring(made, without_llvmlite):
    found = resolve_compiler("auto", made.append)
    assert found.text.startswith("compiler: xla (llvmlite is not installed); ")
    assert "about 5 times faster, needs llvmlite: pip install " in found.text
    assert "\n" not in found.text
    assert found.stored() == {
        "compiler": "xla",
        "compiler_reason": "llvmlite is not installed",
    }
    assert made == [False]


def test_devices_without_native_programs_have_those_of_xla(made, monkeypatch):
    def refused():
        raise ValueError("programs are for one CPU.")

    monkeypatch.setattr(compilers, "require_native", refused)
    found = resolve_compiler("auto", made.append)
    assert found.text == "compiler: xla (programs are for one CPU)"
    assert made == [False]


def test_a_system_without_a_native_program_has_one_of_xla(made, monkeypatch):
    def make(native):
        made.append(native)
        if native:
            raise programs.Unsuited("it uses sort")

    monkeypatch.setattr(compilers, "require_native", lambda: None)
    found = resolve_compiler("auto", make)
    assert found.stored() == {
        "compiler": "xla",
        "compiler_reason": "no native program of this system: it uses sort",
    }
    assert made == [True, False]
    with pytest.raises(ValueError, match="it uses sort; use"):
        resolve_compiler("llvm", make)


def test_other_errors_are_no_reason_for_another_compiler(made, monkeypatch):
    def make(native):
        made.append(native)
        raise ValueError("8 points take more memory than there is.")

    monkeypatch.setattr(compilers, "require_native", lambda: None)
    with pytest.raises(ValueError, match="memory"):
        resolve_compiler("auto", make)
    assert made == [True]


def test_a_run_keeps_its_compiler_and_a_name_is_stronger(without_llvmlite):
    kept = {"compiler": "llvm", "compiler_reason": "as it was"}
    assert stored_compiler("auto", kept) == ("llvm", "as it was", "")
    assert stored_compiler("xla", kept) == ("xla", "named", "")
    # Runs and files of the time when xla was the default name none.
    assert stored_compiler("auto", {}).name == "xla"
