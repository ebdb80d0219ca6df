"""What a command costs before it computes: nothing imports JAX until then."""

import json
import re
import subprocess
import sys

import pytest

from statmech_attn import cli, kinds


SLOW = {"h5py", "jax", "matplotlib", "numpy", "scipy", "xarray"}  # to import
# Forks for each command, so that what all of them import is imported once.
PROGRAM = f"""
import json, os, sys
from statmech_attn.cli import app

for line in sys.stdin:
    read, write = os.pipe()
    if not os.fork():
        os.dup2(write, 1), os.dup2(write, 2), os.close(write)
        code = 0
        try:
            app(json.loads(line))
        except SystemExit as ended:
            code = ended.code or 0
        print("", sorted({SLOW} & set(sys.modules)), sep=chr(10), flush=True)
        os._exit(code)
    os.close(write)
    with os.fdopen(read) as said:
        text = said.read()
    code = os.waitstatus_to_exitcode(os.wait()[1])
    print(json.dumps([code, text]), flush=True)
"""
ONE_SHOT = 'kind = "training"\n[task]\nname = "one-shot"\n[run]\nblock = 11\n'
BAD = [
    "kind = trajectory",
    'kind = "trajectroy"',
    ONE_SHOT,
    *(f'kind = "{kind}"\n[run]\nno_such_key = 1\n' for kind in kinds.studied()),
]


@pytest.fixture(scope="module")
def ended():
    """Runs a command: exit code, what was said, which slow packages were imported."""
    command, pipe = [sys.executable, "-c", PROGRAM], subprocess.PIPE
    streams = {"stdin": pipe, "stdout": pipe, "stderr": subprocess.STDOUT}
    with subprocess.Popen(command, text=True, **streams) as process:
        assert process.stdin is not None and process.stdout is not None
        orders, answers = process.stdin, process.stdout

        def ended(*words) -> tuple[int, str, str]:
            print(json.dumps([str(word) for word in words]), file=orders, flush=True)
            code, text = json.loads(answers.readline())
            *said, imported = text.splitlines()
            return code, "\n".join(said), imported

        yield ended


@pytest.mark.parametrize(
    "words", (["--help"], ["run", "--help"], ["--version"], ["new"], ["new", "basins"])
)
def test_what_computes_nothing_imports_nothing_slow(ended, words):
    code, said, imported = ended(*words)
    assert code == 0 and said
    assert imported == "[]"


@pytest.mark.parametrize("command", ("run", "slurm"))
@pytest.mark.parametrize("text", BAD)
def test_a_bad_study_is_refused_before_anything_slow_is_imported(
    ended, command, text, tmp_path
):
    study = tmp_path / "study.toml"
    study.write_text(text)
    code, said, imported = ended(command, study, "--output", tmp_path / "out.h5")
    assert code == 1 and said.startswith(f"statmech-attn: {study}: ")
    assert imported == "[]"


def test_importing_packages_imports_nothing_slow():
    program = (
        "import sys, statmech_attn\n"
        "from statmech_attn import bpkr, dmft, dynamics\n"
        f"assert not {SLOW} & set(sys.modules)\n"
        "assert statmech_attn.bpkr.Problem.__module__ == 'statmech_attn.bpkr.problem'\n"
        "statmech_attn.dmft.network, statmech_attn.dynamics.classify\n"
        "assert 'jax' in sys.modules\n"
        "assert not {'matplotlib', 'xarray'} & set(sys.modules)\n"
    )
    words = [sys.executable, "-c", program]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_paragraphs_of_help_are_wrapped_by_the_terminal_alone():
    helps = [command.help or "" for command in cli.app.registered_commands]
    assert len(helps) > 15 and all(helps)
    assert not [text for text in helps if re.search(r"[^\n]\n[^\n]", text)]
