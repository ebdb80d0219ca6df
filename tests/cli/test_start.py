"""What a command costs before it computes: nothing imports JAX until then."""

import re
import subprocess
import sys

import pytest

from statmech_attn import cli, kinds


SLOW = {"h5py", "jax", "matplotlib", "numpy", "scipy", "xarray"}  # to import
PROGRAM = f"""
import sys
from statmech_attn.cli import app
try:
    app(sys.argv[1:])
finally:
    print(sorted({SLOW} & set(sys.modules)))
"""
ONE_SHOT = 'kind = "training"\n[task]\nname = "one-shot"\n[run]\nblock = 11\n'
BAD = [
    "kind = trajectory",
    'kind = "trajectroy"',
    ONE_SHOT,
    *(f'kind = "{kind}"\n[run]\nno_such_key = 1\n' for kind in kinds.studied()),
]


def ended(*words) -> tuple[int, str, str]:
    """Exit code, what was said, and which slow packages were imported."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *map(str, words)],
        capture_output=True,
        text=True,
    )
    *said, imported = done.stdout.splitlines()
    return done.returncode, "\n".join(said) + done.stderr, imported


@pytest.mark.parametrize(
    "words", (["--help"], ["run", "--help"], ["--version"], ["new"], ["new", "basins"])
)
def test_what_computes_nothing_imports_nothing_slow(words):
    code, said, imported = ended(*words)
    assert code == 0 and said
    assert imported == "[]"


@pytest.mark.parametrize("command", ("run", "slurm"))
@pytest.mark.parametrize("text", BAD)
def test_a_bad_study_is_refused_before_anything_slow_is_imported(
    command, text, tmp_path
):
    study = tmp_path / "study.toml"
    study.write_text(text)
    code, said, imported = ended(command, study, "--output", tmp_path / "out.h5")
    assert code == 1 and said.startswith(f"statmech-attn: {study}: ")
    assert imported == "[]"


def test_importing_packages_imports_nothing_slow():
    program = (
        "import sys, statmech_attn, statmech_attn.bpkr, statmech_attn.dynamics\n"
        f"assert not {SLOW} & set(sys.modules)\n"
        "assert statmech_attn.bpkr.Problem.__module__ == 'statmech_attn.bpkr.problem'\n"
        "assert 'jax' in sys.modules and 'matplotlib' not in sys.modules\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_paragraphs_of_help_are_wrapped_by_the_terminal_alone():
    helps = [command.help or "" for command in cli.app.registered_commands]
    assert len(helps) > 15 and all(helps)
    assert not [text for text in helps if re.search(r"[^\n]\n[^\n]", text)]
