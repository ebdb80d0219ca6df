"""Every worker of the tests keeps below a limit of memory."""

import sys

import numpy as np
import pytest


pytestmark = pytest.mark.skipif(
    sys.platform != "linux", reason="peaks are read from /proc"
)
MEGABYTE = 2**20


def run_a_test(limit, body) -> None:
    """What the hooks of a limit do around a test."""
    setup, teardown = limit.pytest_runtest_setup(), limit.pytest_runtest_teardown()
    for hook, between in ((setup, body), (teardown, lambda: None)):
        next(hook)
        between()
        with pytest.raises(StopIteration):
            next(hook)


@pytest.mark.slow
def test_a_test_that_holds_too_much_fails_and_the_next_one_does_not(memory):
    memory.give_back()  # as the limit does before a test, if much is held
    limit = memory.Limit(memory.held() + 100 * MEGABYTE)
    run_a_test(limit, lambda: np.ones(50 * MEGABYTE, np.uint8))
    with pytest.raises(pytest.fail.Exception, match="the worker held"):
        # Given back at once: the peak remembers it.
        run_a_test(limit, lambda: np.ones(200 * MEGABYTE, np.uint8))
    run_a_test(limit, lambda: None)


def test_every_test_of_this_run_has_the_limit(request):
    assert request.config.pluginmanager.has_plugin("memory-limit")
