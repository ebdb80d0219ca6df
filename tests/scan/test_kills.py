"""Processes that are killed, stopped, or many at once lose nothing that was done."""

import random
import shutil
import signal
import time

import pytest
import toy_runs

from statmech_attn import storage


def same_bits(one, other) -> bool:
    one, other = storage.read(one), storage.read(other)
    return one.drop_attrs().equals(other.drop_attrs()) and all(
        one[name].values.tobytes() == other[name].values.tobytes() for name in one
    )


@pytest.fixture(scope="module")
def whole(server, tmp_path_factory):
    """The result of a run that nothing happened to."""
    folder = tmp_path_factory.mktemp("whole")
    server.start("run", toy_runs.write(folder, **KEYS), "-o", folder / "a.h5").wait(0)
    return folder / "a.h5"


def left_over(folder):
    """Everything but results, studies and whole chunk folders."""
    return [
        p for p in folder.rglob("*") if p.suffix in (".part", ".claim", ".removed")
    ] + list(folder.rglob("workers/*"))


KEYS = {"points": 60, "seconds": 0.01}


def kill_often(server, words, output, kills: int, seed: int):
    """Kill a run again and again, at moments of a whole run; returns the last one."""
    moments = random.Random(seed)
    begun = time.monotonic()
    server.start(*words).wait()
    length = time.monotonic() - begun
    output.unlink()
    killed = 0
    while killed < kills:
        run = server.start(*words)
        time.sleep(moments.uniform(0, length))
        run.kill().wait()
        killed += run.code == -signal.SIGKILL
        output.unlink(missing_ok=True)
    return server.start(*words).wait()


@pytest.mark.slow
def test_kills_of_a_scan_and_its_merge_change_no_bit(server, study, tmp_path, whole):
    output = tmp_path / "folder with blanks" / "out [1].h5"
    words = ["run", study(**KEYS), "-o", output, "--chunk", "3"]
    last = kill_often(server, words, output, kills=20, seed=1)
    assert last.code == 0, last.said
    assert same_bits(output, whole)
    assert left_over(tmp_path) == []
    assert [p.name for p in output.parent.iterdir()] == [output.name]


def part_of(output):
    return lambda: list(output.parent.glob(f".{output.name}.*.part"))


@pytest.mark.slow
@pytest.mark.parametrize("after", (False, True))
def test_killed_while_merging(server, study, tmp_path, whole, after):
    """Before the result is in its place; and after, with the chunks still there."""
    output = tmp_path / "out.h5"
    words = ["run", study(**KEYS), "-o", output]
    run = server.start(*words, pause_before="chunks" if after else "out.h5")
    run.until(output.exists if after else part_of(output)).kill().wait()
    assert (tmp_path / "out.h5.chunks").is_dir()
    assert output.exists() == after
    said = server.start(*words).wait(0).said
    assert ("already holds the result of this study" in said) == after
    assert same_bits(output, whole)
    assert left_over(tmp_path) == []
    assert not (tmp_path / "out.h5.chunks").exists()


@pytest.mark.slow
def test_killed_while_chunks_are_removed(server, study, tmp_path, whole):
    output = tmp_path / "out.h5"
    words = ["run", study(**KEYS), "-o", output]
    away = tmp_path / ".out.h5.chunks.0123.part"
    server.start(*words, pause_before="chunks").until(output.exists).kill().wait()
    (tmp_path / "out.h5.chunks").rename(away)
    (away / "chunk-0000000.h5").unlink()
    server.start(*words).wait(0)
    assert same_bits(output, whole)
    assert not away.exists()


@pytest.mark.slow
def test_runs_that_start_together_share_the_work(server, study, tmp_path, whole):
    output = tmp_path / "out.h5"
    words = ["run", study(**KEYS), "-o", output, "--chunk", "2"]
    runs = [server.start(*words) for _ in range(3)]
    for run in runs:
        run.wait(0)
    assert same_bits(output, whole)
    assert left_over(tmp_path) == []


@pytest.mark.slow
def test_a_run_that_comes_while_another_merges_waits_for_it(
    server, study, tmp_path, whole
):
    output = tmp_path / "out.h5"
    words = ["run", study(**KEYS), "-o", output]
    first = server.start(*words, pause_before="out.h5", pause=2.0)
    first.until(part_of(output))
    second = server.start(*words)
    first.wait(0)
    assert "merging" not in second.wait(0).said
    assert same_bits(output, whole)
    assert left_over(tmp_path) == []


def claimed(folder):
    return lambda: len(list(folder.glob("chunk-*.claim"))) == 2


SLOW = {"points": 8, "seconds": 0.25}


def test_claims_of_a_killed_process_are_taken_over_at_once(server, study, tmp_path):
    output = tmp_path / "out.h5"
    words = ["run", study(**SLOW), "-o", output, "--chunk", "2"]
    first = server.start(*words).until(claimed(tmp_path / "out.h5.chunks"))
    second = server.start(*words)  # waits for no claim of the first
    first.kill().wait()
    begun = time.monotonic()
    second.wait(0)
    assert time.monotonic() - begun < 15  # far below `claims.SILENCE`
    assert storage.read(output).sizes["point"] == 8
    assert left_over(tmp_path) == []


@pytest.mark.slow
def test_claims_of_another_machine_are_taken_over_after_its_silence(
    server, study, tmp_path
):
    output = tmp_path / "out.h5"
    words = ["run", study(**SLOW), "-o", output, "--chunk", "2"]
    elsewhere = server.start(*words, machine="elsewhere")
    elsewhere.until(claimed(tmp_path / "out.h5.chunks")).kill().wait()
    begun = time.monotonic()
    server.start(*words, silence=3.0).wait(0)
    assert time.monotonic() - begun > 3.0
    assert storage.read(output).sizes["point"] == 8
    assert left_over(tmp_path) == []


@pytest.mark.slow
def test_a_living_process_of_another_machine_keeps_its_claims(server, study, tmp_path):
    output = tmp_path / "out.h5"
    words = ["run", study(points=2, seconds=1.5), "-o", output, "--chunk", "1"]
    elsewhere = server.start(*words, machine="elsewhere", beat=0.1)
    elsewhere.until(claimed(tmp_path / "out.h5.chunks"))
    here = server.start(*words, silence=1.0)
    taken = {p: p.read_text() for p in (tmp_path / "out.h5.chunks").glob("chunk*claim")}
    while elsewhere.alive() and (now := [p for p in taken if p.exists()]):
        assert all(p.read_text() in ("", taken[p]) for p in now)
        time.sleep(0.05)
    elsewhere.wait(0)
    here.wait(0)
    assert left_over(tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 75)])
def test_a_signal_finishes_the_current_chunks_and_the_same_command_goes_on(
    server, study, tmp_path, sent, code
):
    output, folder = tmp_path / "out.h5", tmp_path / "out.h5.chunks"
    # Enough points that a slow machine is not done before the signal is there.
    words = ["run", study(points=30, seconds=0.25), "-o", output, "--chunk", "2"]
    run = server.start(*words).until(claimed(folder)).kill(sent).wait(code)
    assert "press Ctrl-C again to abort now" in run.said
    assert f"{folder}: the same command goes on." in run.said
    kept = {p: p.read_bytes() for p in folder.glob("chunk-*.h5")}
    assert len(kept) == 2  # those that were being computed
    assert left_over(tmp_path) == []
    server.start(*words).until(claimed(folder)).kill(sent).wait(code)
    assert all(path.read_bytes() == content for path, content in kept.items())
    server.start(*words).wait(0)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 75)])
def test_a_second_signal_leaves_at_once(server, study, tmp_path, sent, code):
    output, folder = tmp_path / "out.h5", tmp_path / "out.h5.chunks"
    words = ["run", study(points=6, seconds=20.0), "-o", output, "--chunk", "2"]
    run = server.start(*words).until(claimed(folder)).kill(sent)
    run.until(lambda: "press Ctrl-C again" in run.log())
    begun = time.monotonic()
    assert "finished chunks are kept" in run.kill(sent).wait(code).said
    assert time.monotonic() - begun < 10
    assert left_over(tmp_path)  # for the next start


@pytest.mark.slow
def test_a_signal_while_merging_lets_the_merge_finish(server, study, tmp_path, whole):
    output = tmp_path / "out.h5"
    run = server.start("run", study(**KEYS), "-o", output, pause_before="out.h5")
    run.until(part_of(output)).kill(signal.SIGTERM).wait(0)
    assert same_bits(output, whole)
    assert left_over(tmp_path) == []


@pytest.mark.slow
def test_a_signal_while_another_process_merges(server, study, tmp_path):
    output = tmp_path / "out.h5"
    words = ["run", study(**KEYS), "-o", output]
    first = server.start(*words, pause_before="out.h5", pause=3.0)
    first.until(part_of(output))
    second = server.start(*words)
    second.until(lambda: len(list((tmp_path / "out.h5.chunks/workers").iterdir())) > 1)
    time.sleep(0.5)
    assert "the same command goes on" in second.kill(signal.SIGTERM).wait(75).said
    first.wait(0)


@pytest.mark.slow
def test_the_folder_is_removed_while_a_run_is_on(server, study, tmp_path):
    output, folder = tmp_path / "out.h5", tmp_path / "out.h5.chunks"
    words = ["run", study(**SLOW), "-o", output, "--chunk", "2"]
    run = server.start(*words).until(claimed(folder))
    shutil.rmtree(folder)
    said = run.wait(1).said
    assert "Traceback" not in said
    assert str(folder) in said.splitlines()[-1]
    server.start(*words).wait(0)
