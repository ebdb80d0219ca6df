"""What the server answers, and whom."""

import shutil
import socket
import time
from contextlib import ExitStack, suppress

import numpy as np
import pytest

from statmech_attn import storage
from statmech_attn.dynamics import diagrams, PHASES


WINDOW = {
    "low": 1.0,
    "high": 2.0,
    "bottom": -1.0,
    "top": 1.0,
    "columns": 64,
    "rows": 20,
}
MAP = {"left": 1.0, "right": 2.0, "bottom": 1.0, "top": 9.0, "columns": 9, "rows": 8}


def test_only_its_own_page_is_answered(page):
    assert page("files").status == 200
    token = page.address.split("/")[3]
    wrong = page.address.replace(token, "x" * len(token))
    assert page.send(wrong).status == 403
    assert page.send(f"{page.origin}/").status == 403
    assert page.send(f"{page.origin}/static/main.js").status == 403
    assert page.send("", Host="evil.example:80").status == 421
    assert page.send("", Host="127.0.0.1").status == 421
    assert page.send("api/files", {}, Origin="http://evil.example").status == 403
    assert page.send("api/files", {}, Origin="null").status == 403
    assert page.send("api/files", {}).status == 403  # no Origin at all
    assert page.send("", **{"Sec-Fetch-Site": "cross-site"}).status == 403
    assert page.send("api/files").status == 405


def _connected(page) -> socket.socket:
    host, port = page.origin.removeprefix("http://").split(":")
    return socket.create_connection((host, int(port)), timeout=20)


@pytest.mark.parametrize("target", ("*", "x", "/", "//", "/%ff", "http://a"))
def test_a_target_without_the_token_is_refused(page, target):
    with _connected(page) as connection:
        host = page.origin.removeprefix("http://")
        request = f"OPTIONS {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"
        connection.sendall(request.encode())
        assert connection.recv(100).startswith(b"HTTP/1.1 403 ")


@pytest.mark.parametrize(
    "begun", (b"", b"GET / HTTP/1.1\r\nHost:", b"POST / HTTP/1.1\r\nContent-Length: 9")
)
def test_a_request_that_never_comes_whole_ends(page, begun, monkeypatch):
    from statmech_attn.explore.serving import connections

    monkeypatch.setattr(connections, "SECONDS_FOR_REQUEST", 0.2)
    with _connected(page) as connection:
        connection.sendall(begun)
        with suppress(ConnectionResetError):
            assert connection.recv(100) == b""


def test_half_a_body_ends(page, monkeypatch):
    from statmech_attn.explore.serving import connections

    monkeypatch.setattr(connections, "SECONDS_FOR_REQUEST", 0.2)
    path = page.address.removeprefix(page.origin)
    head = (
        f"POST {path}api/files HTTP/1.1\r\nHost: {page.origin.removeprefix('http://')}"
        f"\r\nOrigin: {page.origin}\r\nContent-Length: 9\r\n\r\n{{"
    )
    with _connected(page) as connection:
        connection.sendall(head.encode())
        with suppress(ConnectionResetError):
            assert connection.recv(100) == b""


def test_of_many_half_open_connections_the_oldest_end(page):
    with ExitStack() as opened:
        half_open = [opened.enter_context(_connected(page)) for _ in range(200)]
        assert page("files").status == 200
        for connection in half_open[:100]:
            answer = connection.recv(200)
            assert answer.startswith(b"HTTP/1.1 503 ") and b"Retry-After: 1" in answer
        half_open[-1].setblocking(False)
        with pytest.raises(BlockingIOError):
            half_open[-1].recv(100)


def test_requests_that_come_at_once_are_all_answered(page):
    """Connections wait for a moment before the server has read what they brought."""
    path = page.address.removeprefix(page.origin)
    host = page.origin.removeprefix("http://")
    request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n"
    with ExitStack() as opened:
        burst = [opened.enter_context(_connected(page)) for _ in range(200)]
        for connection in burst:
            connection.sendall(request.encode())
        for connection in burst:
            assert connection.recv(100).startswith(b"HTTP/1.1 200 ")


def test_the_page_may_load_nothing_from_elsewhere(page):
    answer = page.send("")
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "script-src 'self';" in policy
    assert "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert page.send("static/main.js").status == 200
    for path in ("static/..%2fserver.py", "static/../server.py", "static/index.html"):
        assert page.send(path).status == 404


def test_a_notebook_may_show_the_page_in_a_frame(make_page, line):
    from statmech_attn.explore.explorer import Explorer

    with Explorer([line], framed=True, warm=False) as explorer:
        assert f'<iframe src="{explorer.address}"' in explorer._repr_html_()
        policy = make_page(explorer.address).send("").headers["Content-Security-Policy"]
    assert "frame-ancestors http://localhost:* " in policy


def test_no_file_is_opened_once_the_page_is_closed(line, monkeypatch):
    pytest.importorskip("starlette")
    from statmech_attn.explore.explorer import Explorer
    from statmech_attn.explore.serving import server

    ended = []

    def prepare(shown, *_):
        time.sleep(0.2)
        ended.append(shown.path)

    monkeypatch.setattr(server.ServedFile, "prepare", prepare)
    with Explorer([line], warm=False):
        pass
    assert ended == [line]


@pytest.mark.parametrize(
    "name, changed, said",
    (
        ("density", {"low": 1}, None),
        ("density", {"low": "1"}, "low: should be a number."),
        ("density", {"low": 3.0}, "low must be below high, and bottom below top."),
        ("density", {"rows": 0}, "rows: should be at least 1."),
        ("density", {"rows": 10**9}, "rows: should be at most 4096."),
        ("density", {"path": "/etc/passwd"}, "path: unknown key."),
        ("density", {"file": 7}, "file should be below 2."),
        ("density", {"file": 1}, "This file is no scan of one parameter."),
    ),
)
def test_what_the_page_sends_is_checked(page, name, changed, said):
    answer = page(name, **(WINDOW | changed))
    if said is None:
        assert answer.status == 200
    else:
        assert (answer.status, answer.told) == (400, {"error": said})


@pytest.mark.parametrize("number", (float("nan"), float("inf")))
def test_numbers_are_finite(page, number):
    assert page("density", **(WINDOW | {"low": number})).status == 400
    assert page("point", values={"beta": number}).status == 400
    assert page("point", values={"gamma": 1.0}).told == {
        "error": "values should be of beta."
    }


def test_a_long_message_is_refused(page):
    answer = page("point", values={"b" * 70_000: 1.0})
    assert answer.status == 413


def test_densities_are_those_of_the_file(page, line):
    _, arrays = page("density", **WINDOW).packed
    samples = storage.read(line).section.values.astype(np.float32)
    edges = np.linspace(-1, 1, 21, dtype=np.float32)
    expected = [np.histogram(row[row < 1], edges)[0] for row in samples]
    assert np.array_equal(arrays["section"], expected)
    assert len(arrays["edges"]) == 41


def test_columns_of_several_points_hold_the_most_frequent_phase(page, line):
    dataset = storage.read(line)
    asked = {"low": 1.0, "high": 2.0, "columns": 20}
    header, arrays = page("strips", **asked).packed
    assert header["width"] == 2
    pairs = dataset.lyapunov.values.astype(np.float32).reshape(20, 2, 2)
    assert np.array_equal(arrays["least"], pairs.min(axis=1))
    assert np.array_equal(arrays["largest"], pairs.max(axis=1))
    phases = dataset.phase.values.reshape(20, 2)
    same = phases[:, 0] == phases[:, 1]
    assert np.array_equal(arrays["phase"][same, 0], phases[same, 0])


def test_a_point_is_told_as_explain_tells_it(page, line):
    dataset = storage.read(line)
    told = page("point", values={"beta": 1.9}).told
    nearest = dataset.sel(beta=1.9, method="nearest")
    assert told["sentence"] == diagrams.explain(dataset, beta=float(nearest.beta))
    assert told["words"] == PHASES[int(nearest.phase)] == "chaotic"
    first = told["exponents"][0]
    assert (first["value"], first["error"]) == (float(nearest.lyapunov[0]), 1.5e-3)
    assert first["text"] == f"{float(nearest.lyapunov[0]):.3f} ± 0.002"


@pytest.mark.parametrize("variable", ("phase", "lyapunov_1", "lyapunov_2", "period"))
def test_maps_are_those_of_the_file(page, plane, variable):
    dataset = storage.read(plane).sortby("gamma")
    _, arrays = page("map", file=1, variable=variable, **MAP).packed
    stored = dataset[variable.split("_")[0]]
    if "exponent" in stored.dims:
        stored = stored.isel(exponent=int(variable[-1]) - 1)
    x = 1 + (np.arange(9) + 0.5) / 9
    y = 1 + (np.arange(8) + 0.5)
    expected = stored.sel(beta=x, gamma=y, method="nearest").transpose("gamma", "beta")
    shown = arrays["values"]
    known = ~np.isnan(shown)
    assert np.array_equal(shown[known], expected.values[known].astype(np.float32))
    if variable == "period":  # where there is none, nothing is shown
        assert np.array_equal(known, expected.values > 0)
    else:
        assert known.all()
    assert page("map", file=1, variable="section", **MAP).status == 400


def test_the_dimension_is_that_of_kaplan_and_yorke(page):
    _, arrays = page("map", file=1, variable="dimension", **MAP).packed
    header, first = page("map", file=1, variable="lyapunov_1", **MAP).packed
    _, second = page("map", file=1, variable="lyapunov_2", **MAP).packed
    positive = first["values"] > 0
    expected = 1 + first["values"] / -second["values"]
    shown = arrays["values"]
    assert positive.any() and np.allclose(shown[positive], expected[positive])
    assert (shown[first["values"] < -2e-5] == 0).all()
    assert header["range"][0] == -header["range"][1]


def test_a_part_is_a_study_that_is_checked(page):
    ranges = {"beta": {"start": 1.2, "stop": 1.3, "num": 7}}
    study = page("study", ranges=ranges).told["study"]
    assert "beta = { start = 1.2, stop = 1.3, num = 7 }" in study
    for wrong in ({"start": 1.2, "stop": "x", "num": 7}, {"start": 1}, "1.2", None):
        answer = page("study", ranges={"beta": wrong})
        assert answer.status == 400 and answer.told["error"].startswith("study: param")
    answer = page("study", ranges={"gamma": 1.0})
    assert answer.told == {"error": "ranges should be of beta."}
    many = {"beta": {"start": 1.2, "stop": 1.3, "num": 30_000}}
    assert "are more than 20000" in page("run", ranges=many).told["error"]


def test_a_file_that_is_replaced_or_removed_is_told_of(
    make_page, line, plane, tmp_path
):
    pytest.importorskip("starlette")
    from statmech_attn.explore.explorer import Explorer

    path = tmp_path / "scan.h5"
    shutil.copy(line, path)
    with Explorer([path], warm=False) as explorer:
        page = make_page(explorer.address)
        assert page.ready()[0]["view"] == "line"
        shutil.copy(plane, tmp_path / "other.h5")
        (tmp_path / "other.h5").replace(path)
        answer = page("density", **WINDOW)
        assert answer.status == 410
        assert answer.told == {"error": "scan.h5 has been replaced."}
        page("reopen")
        assert page.ready()[0]["view"] == "plane"
        path.unlink()
        assert page("files").told["files"][0]["gone"] == "scan.h5 has been removed."
        page("reopen")
        (file,) = page.ready()
        assert file["state"] == "failed" and "scan.h5" in file["error"]


def test_a_damaged_file_is_one_line(make_page, line, tmp_path):
    pytest.importorskip("starlette")
    from statmech_attn.explore.explorer import Explorer

    path = tmp_path / "scan.h5"
    content = bytearray(line.read_bytes())
    content[len(content) // 2] ^= 255
    path.write_bytes(content)
    with Explorer([path], warm=False) as explorer:
        (file,) = make_page(explorer.address).ready()
    assert file["state"] == "failed"
    assert file["error"].endswith("is damaged: its checksum does not match.")


def test_names_of_strangers_are_sent_as_text(page, line):
    answer = page("files")
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.told["files"][0]["name"] == line.name == "<b>scan<b>.h5"


def test_the_script_draws_the_picture_of_the_page(page, tmp_path, monkeypatch):
    window = {"low": 1.2, "high": 1.8, "bottom": -1.0, "top": 1.0, "form": "png"}
    monkeypatch.chdir(tmp_path)
    exec(page("script", **window).told["script"], {})
    (drawn,) = tmp_path.glob("*.png")
    picture = page("picture", **window)
    assert picture.headers["Content-Type"] == "image/png"
    assert picture.body == drawn.read_bytes()
    lost = page.send("api/picture", {"name": "lost"}, Origin=page.origin)
    assert lost.status == 400 and "name should be one of" in lost.told["error"]
