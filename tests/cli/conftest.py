"""The command line, called in this process."""

import pytest
from typer.testing import CliRunner

from statmech_attn.cli import app


@pytest.fixture(scope="session")
def call():
    """Run a command; its exit code is checked, its output returned."""

    def call(*words, code=0):
        result = CliRunner().invoke(app, [str(word) for word in words])
        stopped = isinstance(result.exception, SystemExit)
        if result.exception is not None and not stopped:
            raise result.exception
        assert result.exit_code == code, result.output
        return result

    return call
