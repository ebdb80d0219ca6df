"""Signals are heard whatever the main thread does."""

import signal
import subprocess
import sys
import threading

import pytest


# The main thread gets none of them, as if it were inside compiled code.
DEAF = """
import signal, sys, time
from statmech_attn.reporting import Silent
from statmech_attn.scan.signals import Stop
from statmech_attn.scan.signals import handled

stop = Stop()
with handled(stop, Silent()) as heard:
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    print("ready", flush=True)
    stop.finish.wait()
    print(heard.exit_code, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 75)])
def test_two_signals_leave_though_the_main_thread_is_deaf(sent, code):
    command = [sys.executable, "-c", DEAF]
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    with subprocess.Popen(command, **pipes) as run:
        patience = threading.Timer(120, run.kill)
        patience.start()
        try:
            assert run.stdout.readline() == "ready\n"
            run.send_signal(sent)
            assert run.stdout.readline() == f"{code}\n"
            run.send_signal(sent)
            assert run.wait() == code
            assert "finished chunks are kept" in run.stderr.read()
        finally:
            patience.cancel()
            run.kill()
