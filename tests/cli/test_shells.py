"""Completion in bash, zsh and fish, and the version."""

import os
import shutil
import subprocess
import sys

import pytest

import statmech_attn


PROGRAM = (
    "import sys; from statmech_attn.cli import app; app(prog_name='statmech-attn')"
)
ASKED = {  # how each shell asks for what `statmech-attn rep` may go on to
    "bash": {"COMP_WORDS": "statmech-attn\nrep", "COMP_CWORD": "1"},
    "zsh": {"_TYPER_COMPLETE_ARGS": "statmech-attn rep"},
    "fish": {
        "_TYPER_COMPLETE_ARGS": "statmech-attn rep",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    },
}
IN_SHELL = {  # the same, asked by the shell itself
    "bash": (
        "source {script}; COMP_WORDS=(statmech-attn rep); COMP_CWORD=1; "
        "_statmech_attn_completion statmech-attn; echo ${{COMPREPLY[@]}}"
    ),
    "fish": 'source {script}; complete -C "statmech-attn rep"',
}


def answer(**variables) -> str:
    """What the command prints under variables of the environment."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


@pytest.mark.parametrize("shell", ASKED)
def test_commands_are_completed(shell):
    said = answer(_STATMECH_ATTN_COMPLETE=f"complete_{shell}", **ASKED[shell])
    assert "repair" in said and "merge" not in said


@pytest.mark.parametrize("shell", IN_SHELL)
def test_a_shell_takes_the_script(shell, tmp_path):
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"no {shell} here")
    command = tmp_path / "statmech-attn"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -c "{PROGRAM}" "$@"\n')
    command.chmod(0o755)
    script = tmp_path / "script"
    script.write_text(answer(_STATMECH_ATTN_COMPLETE=f"source_{shell}"))
    done = subprocess.run(
        [program, "-c", IN_SHELL[shell].format(script=script)],
        env=os.environ | {"PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split()[0] == "repair", done.stderr


def test_the_version_is_printed(call):
    assert call("--version").output == f"statmech-attn {statmech_attn.__version__}\n"
