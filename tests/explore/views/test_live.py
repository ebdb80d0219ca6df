"""What is computed on the spot is what a run of the study has computed."""

import re
import signal
import subprocess
import sys
import threading
import time
import webbrowser
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from typer.testing import CliRunner

from statmech_attn import storage, studies
from statmech_attn.cli import app
from statmech_attn.dynamics import diagrams
from statmech_attn.explore.explorer import Explorer
from statmech_attn.explore.result_files.cancellation import Cancelled
from statmech_attn.explore.result_files.files import File
from statmech_attn.explore.result_files.stored_study import Uncomputable
from statmech_attn.explore.serving import jobs
from statmech_attn.explore.views import points
from statmech_attn.explore.views.line import Scan1D
from statmech_attn.explore.views.live import Live
from statmech_attn.explore.views.plane import Scan2D
from statmech_attn.explore.views.served_file import ServedFile


INTERRUPTIBLE = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)  # also below nohup
from statmech_attn.cli import app
app()
"""


@pytest.fixture(scope="module")
def logistic(logistic_study, tmp_path_factory):
    """A scan of the logistic map, opened."""
    folder = tmp_path_factory.mktemp("logistic")
    studies.produce(logistic_study.write(folder), folder / "logistic.h5")
    file = File(folder / "logistic.h5")
    yield file
    file.close()


@pytest.fixture(scope="module")
def live(logistic):
    return Live(logistic, allow_code=True)


def test_code_runs_only_where_it_is_allowed(logistic):
    with pytest.raises(Uncomputable, match="--allow-code"):
        Live(logistic)


def test_code_that_is_missing_or_has_changed_is_refused(logistic):
    program = logistic.path.with_name("logistic.py")
    text = program.read_text()
    program.unlink()
    with pytest.raises(Uncomputable, match="because .*logistic.py is missing: put"):
        Live(logistic, allow_code=True)
    program.write_text(f"{text}# changed\n")
    with pytest.raises(Uncomputable, match="another logistic.py"):
        Live(logistic, allow_code=True)
    program.write_text(text)


def test_points_of_a_list_are_told_by_their_parameters_and_not_computed(logistic):
    values = logistic.dataset.a.values
    listed = logistic.dataset.rename(a="index")
    listed = listed.assign_coords(a=("index", values, logistic.dataset.a.attrs))
    seen = SimpleNamespace(axes=("index",), dataset=listed, path=logistic.path)
    with pytest.raises(Uncomputable, match="of a list are not computed"):
        Live(seen, allow_code=True)
    told = points.verdict(listed.isel(index=[1]), ("index",))
    assert told["sentence"].startswith(f"a = {values[1]:g}, ")


@pytest.mark.parametrize("compiler", ("xla", "llvm"))
def test_points_are_computed_by_the_compiler_of_the_file(logistic, compiler):
    attributes = logistic.dataset.attrs | {"compiler": compiler}
    dataset = logistic.dataset.assign_attrs(attributes)
    seen = SimpleNamespace(axes=logistic.axes, dataset=dataset, path=logistic.path)
    assert Live(seen, allow_code=True).study.run.compiler == compiler
    del dataset.attrs["compiler"]  # of the time when xla was the default
    assert Live(seen, allow_code=True).study.run.compiler == "xla"


@pytest.mark.parametrize("a", (3.2, 3.8, 4.0))
def test_a_point_has_the_verdict_of_the_file(live, logistic, a):
    stored = Scan1D(logistic, lambda share: None).point({"a": a})
    computed = live.verdict({"a": stored["values"][0]["value"]})
    window, _, _ = computed["sentence"].partition("; the phase has lasted")
    assert stored["sentence"].startswith(window)  # a longer look is of the whole scan
    assert computed["exponents"] == stored["exponents"]


def test_orbit_and_running_exponents_are_those_of_the_map(live):
    orbit = np.array(live.orbit({"a": 3.2})["first"])
    assert np.allclose(orbit[1:], 3.2 * orbit[:-1] * (1 - orbit[:-1]), atol=1e-6)
    assert live.orbit({"a": 3.2})["first"] == orbit.tolist()  # its transient is kept
    (running,) = live.running({"a": 4.0})["running"]
    assert abs(running[-1] - np.log(2)) < 0.01


@pytest.mark.slow
def test_a_point_of_two_parameters_has_the_verdict_of_the_file(
    logistic_study, tmp_path
):
    (tmp_path / "tent.py").write_text(
        "import jax.numpy as jnp\n\n"
        "def step(x, p):\n"
        "    return p['b'] + p['a'] * jnp.minimum(x, 1 - x)\n"
    )
    text = logistic_study.STUDY.replace("logistic.py", "tent.py")
    parameters = "a = [0.5, 0.9]\nb = { start = 0.1, stop = 0.2, num = 3 }\n"
    text = re.sub("a = {.*}\n", parameters, text.replace("512", "128"))
    (tmp_path / "tent.toml").write_text(text)
    studies.produce(tmp_path / "tent.toml", tmp_path / "tent.h5")
    file = File(tmp_path / "tent.h5")
    values = {"a": 0.9, "b": 0.15}
    stored = Scan2D(file, lambda share: None).point(values)
    computed = Live(file, allow_code=True).verdict(values)
    file.close()
    assert computed["exponents"] == stored["exponents"]
    assert computed["words"] == stored["words"] == "fixed"


@pytest.mark.parametrize("a", (float("nan"), float("inf"), "3.2"))
def test_values_are_checked_as_those_of_a_study(live, a):
    with pytest.raises(ValueError, match="parameters.a"):
        live.verdict({"a": a})


def test_a_part_is_computed_coarse_to_fine(live):
    ranges = {"a": {"start": 3.2, "stop": 3.6, "num": 11}}
    job = jobs.Job(live, ranges)
    job.wait(60)
    told = job.progress(0)
    assert (told["state"], told["done"], told["total"]) == ("finished", 11, 11)
    rows = {row["values"]["a"]: row for row in told["rows"]}
    assert sorted(rows) == np.linspace(3.2, 3.6, 11).tolist()
    assert max(list(rows)[:8]) == 3.6  # of the first eight, which cover the whole part
    assert rows[3.2]["period"] == 2 and rows[3.6]["exponents"][0] > 0.1
    assert job.progress(11)["rows"] == []


def test_a_later_question_of_a_page_ends_the_one_before(live, monkeypatch):
    begun = threading.Event()

    def endless(values, report):
        begun.set()
        while True:
            report.advance(1)
            time.sleep(0.001)

    monkeypatch.setattr(live, "computed", endless)
    with ThreadPoolExecutor() as pool:
        for end in (lambda: live.running({"a": 3.2}, page=1), live.close):
            begun.clear()
            waiting = pool.submit(live.verdict, {"a": 3.8}, 1)
            assert begun.wait(10)
            live.questions.begin(2)  # of another page
            assert not waiting.done()
            end()
            assert isinstance(waiting.exception(10), Cancelled)


def test_a_part_is_cancelled(live):
    job = jobs.Job(live, {"a": {"start": 3.2, "stop": 3.6, "num": 60}})
    job.cancel()
    job.wait(60)
    assert job.progress(0)["state"] == "cancelled" and len(job.rows) < 60


def test_a_part_is_cancelled_at_once_while_it_compiles(live, monkeypatch):
    """A compilation cannot be ended; what comes of it later is not taken."""
    begun, go_on = threading.Event(), threading.Event()

    def compiling(work, report):
        begun.set()
        go_on.wait(10)
        raise RuntimeError("too late to be told")

    monkeypatch.setattr(jobs.scan, "in_memory", compiling)
    job = jobs.Job(live, {"a": {"start": 3.2, "stop": 3.6, "num": 60}})
    assert begun.wait(10)
    job.cancel()
    assert job.progress(0)["state"] == "cancelled"
    go_on.set()
    job.wait(10)
    assert (job.state, job.error) == ("cancelled", "")


@pytest.mark.parametrize(
    "end", (SystemExit("gone"), AttributeError("lost"), KeyError())
)
def test_whatever_ends_a_thread_the_page_is_told(logistic, live, monkeypatch, end):
    def ends(*arguments):
        raise end

    shown = ServedFile(logistic.path)
    with monkeypatch.context() as patched:
        patched.setattr(File, "open", ends)
        shown.prepare(allow_code=True, warm=False)
    said = str(end) or type(end).__name__
    assert (shown.state, shown.error) == ("failed", said)
    monkeypatch.setattr(jobs.scan, "in_memory", ends)
    job = jobs.Job(live, {"a": {"start": 3.2, "stop": 3.6, "num": 5}})
    job.wait(10)
    assert (job.state, job.error) == ("failed", said)


def test_the_command_line_of_the_browser_does_not_hold_the_token(logistic, monkeypatch):
    opened = []
    monkeypatch.setattr(webbrowser, "open", lambda address: opened.append(address))
    monkeypatch.setattr(Explorer, "wait", lambda explorer: None)
    answer = CliRunner().invoke(app, ["explore", str(logistic.path)])
    address = re.search(r"http://\S+", answer.output)
    (given,) = opened
    assert address is not None and given.startswith("file://")
    assert address[0] in Path(given.removeprefix("file://")).read_text()
    assert address[0].split("/")[3] not in given


def test_a_part_ends_with_the_server(logistic, monkeypatch):
    pytest.importorskip("starlette")
    from statmech_attn.explore.serving.server import Server

    server, begun = Server([logistic.path], allow_code=True), threading.Event()
    (shown,) = server.served
    shown.prepare(allow_code=True, warm=False)
    work = SimpleNamespace(batch=8, at=lambda values: None)
    monkeypatch.setattr(shown.live, "work", lambda study: work)

    def endless(work, report):
        begun.set()
        while True:
            report.advance(0.01)
            time.sleep(0.001)

    monkeypatch.setattr(jobs.scan, "in_memory", endless)
    job = jobs.Job(shown.live, {"a": {"start": 3.2, "stop": 3.6, "num": 100}})
    server.jobs[job.number] = job
    assert begun.wait(10) and job.progress(0)["state"] == "running"
    server.close()
    assert job.progress(0)["state"] == "cancelled"


@pytest.mark.slow
def test_ctrl_c_ends_the_server_and_what_it_computes(logistic):
    command = [sys.executable, "-c", INTERRUPTIBLE, "explore", logistic.path]
    command += ["--no-browser", "--allow-code"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            address = process.stdout.readline().split()[-1]
            assert address.startswith("http://127.0.0.1:")
            process.send_signal(signal.SIGINT)
            assert process.wait(60) == 0
        finally:
            process.kill()


@pytest.mark.slow
def test_the_published_network_has_period_44(tmp_path):
    (tmp_path / "scan.toml").write_text(
        'kind = "bifurcation"\n[network]\npatterns = "poclopez-pe2"\n[parameters]\n'
        'beta = [1.26, 1.2645, 1.27, 1.4]\n[run]\nstart = "checkpoint"\n'
    )
    dataset = studies.produce(tmp_path / "scan.toml", tmp_path / "scan.h5")
    file = File(tmp_path / "scan.h5")
    live = Live(file)
    for beta in dataset.beta.values:
        told = live.verdict({"beta": float(beta)})
        sentence = diagrams.explain(dataset, beta=float(beta))
        assert isinstance(sentence, str)
        # The file has seen chaos for longer, from other starts.
        verdict, _, _ = told["sentence"][:-1].partition("; the phase has lasted")
        assert sentence.startswith(verdict)
    assert live.verdict({"beta": 1.2645})["period"] == 44
    file.close()
    assert storage.read(tmp_path / "scan.h5").sel(beta=1.2645).period == 44


def test_values_come_coarse_to_fine():
    assert jobs.coarse_to_fine(np.arange(5)).tolist() == [0, 4, 2, 1, 3]
    batches = [x.tolist() for (x,) in jobs.parts([np.arange(5)], 3)]
    assert batches == [[0, 2, 4], [1, 3]]
