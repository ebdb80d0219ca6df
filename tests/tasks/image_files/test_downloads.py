"""Downloads from a server in this process: nothing but the published file is kept."""

import hashlib
import http.server
import os
import pathlib
import threading

import pooch
import pytest
from typer.testing import CliRunner

from statmech_attn import studies
from statmech_attn.cli import app
from statmech_attn.tasks import downloads


CONTENT = bytes(range(256)) * 1000
NAME = "t10k-images-idx3-ubyte.gz"


class Handler(http.server.BaseHTTPRequestHandler):
    """Sends `CONTENT`, or less than it says; 404 for other names."""

    def do_GET(self):
        self.server.asked.append(self.path)
        if self.path != f"/{NAME}":
            self.send_error(404)
            return
        self.send_response(200)
        self.send_header("Content-Length", str(len(CONTENT)))
        self.end_headers()
        self.wfile.write(CONTENT[: self.server.sent])

    def log_message(self, *_):
        pass


@pytest.fixture
def server(monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    found = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    found.asked, found.sent = [], None
    thread = threading.Thread(target=found.serve_forever, args=(0.01,))
    thread.start()
    publish(monkeypatch, f"http://127.0.0.1:{found.server_port}/")
    yield found
    found.shutdown()
    thread.join()
    found.server_close()


def publish(monkeypatch, address, name=NAME, content=CONTENT):
    """Let data set mnist be one file of that content at the address."""
    digests = {name: hashlib.sha256(content).hexdigest()}
    source = downloads.Source("mnist", address, digests)
    monkeypatch.setitem(downloads.SOURCES, "mnist", source)


def call(*words, code=0) -> str:
    """Output of a command line that must end with that code."""
    result = CliRunner().invoke(app, [str(word) for word in words])
    assert result.exit_code == code, result.output
    return result.output


def left(folder):
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_file_is_fetched_once_and_found_again(server, tmp_path):
    path = tmp_path / "new" / "mnist" / NAME
    assert downloads.fetch("mnist", tmp_path / "new") == [(path, True)]
    assert path.read_bytes() == CONTENT and left(tmp_path) == [path]
    assert downloads.fetch("mnist", tmp_path / "new") == [(path, False)]
    assert server.asked == [f"/{NAME}"]


def test_a_file_that_is_not_the_published_one_is_left_as_it_is(server, tmp_path):
    path = tmp_path / "mnist" / NAME
    path.parent.mkdir()
    path.write_bytes(b"a subset")
    with pytest.raises(ValueError, match=f"{NAME} is there but is not the published"):
        downloads.fetch("mnist", tmp_path)
    assert path.read_bytes() == b"a subset" and not server.asked


def test_beside_such_a_file_nothing_is_downloaded(server, tmp_path, monkeypatch):
    source = downloads.SOURCES["mnist"]
    digests = source.digests | {"another": "0" * 64}
    monkeypatch.setitem(downloads.SOURCES, "mnist", source._replace(digests=digests))
    (tmp_path / "mnist").mkdir()
    (tmp_path / "mnist" / "another").write_bytes(b"a subset")
    with pytest.raises(ValueError, match="another is there but is not the published"):
        downloads.fetch("mnist", tmp_path)
    assert not server.asked


def test_another_digest_a_missing_file_and_a_break_leave_nothing(
    server, tmp_path, monkeypatch
):
    address = f"http://127.0.0.1:{server.server_port}/"
    publish(monkeypatch, address, content=b"something else")
    with pytest.raises(ValueError, match=f"{NAME}: what came is not the published"):
        downloads.fetch("mnist", tmp_path)
    publish(monkeypatch, address, name="none")
    with pytest.raises(OSError, match="/none: the server refuses .404") as refusal:
        downloads.fetch("mnist", tmp_path)
    assert refusal.value.__cause__.response.raw.closed
    publish(monkeypatch, address)
    server.sent = len(CONTENT) // 2
    with pytest.raises(OSError, match=f"{NAME}: no connection, or one that broke"):
        downloads.fetch("mnist", tmp_path)
    assert left(tmp_path) == []


# Some versions of urllib3 leave the socket that was refused to the collector.
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_without_a_network_one_line_says_so(tmp_path, monkeypatch):
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    publish(monkeypatch, "http://127.0.0.1:9/")  # the port of discarded data
    with pytest.raises(OSError, match="no connection") as error:
        downloads.fetch("mnist", tmp_path)
    assert "\n" not in str(error.value) and left(tmp_path) == []


def test_until_it_is_whole_a_file_has_not_its_name(server, tmp_path, monkeypatch):
    path = tmp_path / "mnist" / NAME

    def interrupted(self, url, output_file, *_):
        pathlib.Path(output_file).write_bytes(CONTENT[:3])
        assert not path.exists() and left(path.parent)
        raise KeyboardInterrupt

    monkeypatch.setattr(pooch.HTTPDownloader, "__call__", interrupted)
    with pytest.raises(KeyboardInterrupt):
        downloads.fetch("mnist", tmp_path)
    assert left(tmp_path) == []


def test_without_pooch_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pooch", None)
    with pytest.raises(ValueError, match=r"needs pooch: pip .*\[images\]'\.$"):
        downloads.fetch("mnist", tmp_path)
    with pytest.raises(ValueError, match="\"omniglot\", .*; got 'cifar'"):
        downloads.fetch("cifar", tmp_path)


def test_the_published_files_are_those_that_the_readers_look_for():
    digests = [d for s in downloads.SOURCES.values() for d in s.digests.values()]
    assert len(set(digests)) == len(digests) == 12
    assert all(len(d) == 64 and set(d) <= set("0123456789abcdef") for d in digests)
    for name in ("mnist", "fashion-mnist"):
        assert sorted(downloads.SOURCES[name].digests) == sorted(
            f"{part}-{what}-ubyte.gz"
            for part in ("train", "t10k")
            for what in ("images-idx3", "labels-idx1")
        )


def test_the_command_line_fetches_and_says_what_is_there(server, tmp_path):
    result = call("download", "mnist", "--data", tmp_path)
    assert f"wrote {tmp_path / 'mnist' / NAME}" in result
    result = call("download", "mnist", "--data", tmp_path)
    assert f"{tmp_path / 'mnist' / NAME}: already there" in result
    server.sent = 10
    (tmp_path / "mnist" / NAME).unlink()
    result = call("download", "mnist", "--data", tmp_path, code=1)
    assert "one that broke" in result


def test_a_name_that_is_none_is_told_before_anything_is_fetched(server, tmp_path):
    result = call("download", "mnist", "omniglott", "--data", tmp_path, code=1)
    assert "got 'omniglott'" in result and not server.asked and left(tmp_path) == []


def test_run_takes_the_data_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("STATMECH_ATTN_DATA", "elsewhere")  # restored after the test
    monkeypatch.chdir(tmp_path)  # where there is no study
    seen, load = [], studies.load

    def observed(*arguments, **choices):
        seen.append(os.environ["STATMECH_ATTN_DATA"])
        return load(*arguments, **choices)

    monkeypatch.setattr(studies, "load", observed)
    command = ("run", "a.toml", "-o", "a.h5")
    assert "a.toml: no such file" in call(*command, "--data", tmp_path, code=1)
    assert "a.toml: no such file" in call(*command, code=1)
    assert seen == [str(tmp_path)] * 2
    result = call(*command, "--data", tmp_path / "no", code=1)
    assert "--data: there is no folder" in result and len(seen) == 2
    assert os.environ["STATMECH_ATTN_DATA"] == str(tmp_path)
