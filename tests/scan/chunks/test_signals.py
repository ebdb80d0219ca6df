"""Signals are heard whatever the main thread does."""

import signal
import subprocess
import sys
import threading
import time

import psutil
import pytest


# The main thread gets none of them, as if it were inside compiled code.
DEAF = """
import signal, sys, time
from statmech_attn.reporting import Silent
from statmech_attn.scan.chunks.signals import Stop
from statmech_attn.scan.chunks.signals import handled

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


# What a handler raises in a callback of the collector, Python drops.
DROPPED = """
import gc, signal, sys, time
from statmech_attn.scan.chunks.signals import ending

def callback(phase, facts, sent=[]):
    if not sent:
        sent.append(1)
        signal.raise_signal(int(sys.argv[1]))

with ending():
    gc.callbacks.append(callback)
    try:
        gc.collect()
        time.sleep(600)
    finally:
        time.sleep(0.5)
        print("put in order", flush=True)
"""
# The same inside compiled code, for a long time.
BUSY = """
import hashlib
from statmech_attn.scan.chunks.signals import ending
with ending():
    print("ready", flush=True)
    hashlib.pbkdf2_hmac("sha256", b"", b"", 10**9)
"""


def begun(code, number):
    pipes = dict(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    return subprocess.Popen([sys.executable, "-c", code, str(int(number))], **pipes)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 75)])
def test_a_signal_ends_a_command_though_python_drops_it(sent, code):
    with begun(DROPPED, sent) as run:
        said, complained = run.communicate(timeout=120)
    assert run.returncode == code and said == "put in order\n"
    assert "Exception ignored" in complained  # it was dropped


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 75)])
def test_two_signals_leave_a_command_that_is_inside_compiled_code(sent, code):
    with begun(BUSY, sent) as run:
        assert run.stdout.readline() == "ready\n"
        process = psutil.Process(run.pid)
        inside = process.cpu_times().user + 0.3  # it computes by then
        while process.cpu_times().user < inside:
            time.sleep(0.05)
        run.send_signal(sent)
        with pytest.raises(subprocess.TimeoutExpired):
            run.wait(0.5)
        run.send_signal(sent)
        assert run.wait(120) == code
