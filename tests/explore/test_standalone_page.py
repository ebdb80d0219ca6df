"""A page in one document holds what the scan holds, and asks nobody."""

import base64
import gzip
import json
import pathlib
import re
import sys

import numpy as np
import pytest
from typer.testing import CliRunner

from statmech_attn import cli, extras, storage
from statmech_attn.dynamics import PHASES
from statmech_attn.dynamics.diagrams import explain
from statmech_attn.explore import export, standalone_page
from statmech_attn.explore.serving import page
from statmech_attn.explore.views.points import verdict
from statmech_attn.presentation import quantity


RESULTS = pathlib.Path(__file__).resolve().parents[2] / "paper_figs" / "results"


def held(text: str) -> tuple[dict, dict[str, np.ndarray]]:
    """Header and arrays of an exported page."""
    (data,) = re.findall(r'id="data">([A-Za-z0-9+/=]+)</script>', text)
    body = gzip.decompress(base64.b64decode(data))
    length = int.from_bytes(body[:4], "little")
    header = json.loads(body[4 : 4 + length])
    arrays = {}
    for name, array in header["arrays"].items():
        first = 4 + length + array["place"]
        values = np.frombuffer(body, array["type"], array["size"], first)
        arrays[name] = values.reshape(array["shape"])
    return header, arrays


def test_modules_have_no_name_in_common():
    declared = r"^(?:export )?(?:async )?(?:const|let|function|class) (\w+)"
    names = [
        name
        for module in page.MODULES
        for name in re.findall(declared, page.static(module)[0], re.MULTILINE)
    ]
    assert len(names) > 40 and len(names) == len(set(names))


def test_modules_import_from_those_before():
    for number, module in enumerate(page.MODULES):
        text = page.static(module)[0]
        taken = re.findall(r'from "\./([\w.]+)"', text)
        assert set(taken) <= set(page.MODULES[:number])
        assert "http://" not in text and "https://" not in text


def test_a_line_is_held_whole(line, tmp_path):
    export(line, tmp_path / "page.html")
    text = (tmp_path / "page.html").read_text()
    header, arrays = held(text)
    dataset = storage.read(line)
    centres = (arrays["edges"][1:] + arrays["edges"][:-1]) / 2
    assert np.allclose(centres, dataset.beta.values, rtol=1e-12)
    assert np.array_equal(arrays["phase"][:, 0], dataset.phase.values)
    steps = arrays["samples_section"]
    low, high = header["ranges"]["section"]
    samples = np.sort(dataset.section.values, axis=1)
    assert np.array_equal(steps == 65535, np.isnan(samples))
    error = low + steps / 65534 * (high - low) - samples
    assert np.nanmax(abs(error)) <= 0.51 * (high - low) / 65534
    assert len(header["points"]) == 40
    assert "<b>" not in text.split("<body>")[1].split("<script")[0]
    assert "default-src 'none'" in text and 'src="static' not in text


def test_large_scans_hold_counts(line, tmp_path, monkeypatch):
    monkeypatch.setattr(standalone_page, "SAMPLES", 10)
    monkeypatch.setattr(standalone_page, "COLUMNS", 16)
    export(line, tmp_path / "page.html")
    _, arrays = held((tmp_path / "page.html").read_text())
    assert arrays["counts_section"].shape == (10, 1024)
    dataset = storage.read(line)
    samples = int(np.isfinite(dataset.section.values).sum())
    stored = arrays["counts_section"].astype(int)
    assert stored[stored < 255].sum() <= samples
    assert (stored.max(axis=1)[-3:] < 255).all()
    assert stored[-3:].sum() == np.isfinite(dataset.section.values[28:]).sum()


def test_many_points_hold_columns_of_them(line, tmp_path, monkeypatch):
    monkeypatch.setattr(standalone_page, "POINTS", 16)
    monkeypatch.setattr(standalone_page, "COLUMNS", 8)
    export(line, tmp_path / "page.html")
    header, arrays = held((tmp_path / "page.html").read_text())
    assert header["width"] == 4
    dataset = storage.read(line)
    fours = lambda name: dataset[name].values.reshape(10, 4, -1)
    exponents = fours("lyapunov").astype(np.float32)
    assert np.array_equal(arrays["least"], exponents.min(axis=1))
    assert np.array_equal(arrays["largest"], exponents.max(axis=1))
    assert arrays["edges"].size == 11 and arrays["counts_section"].shape == (5, 1024)
    whole = (fours("phase") == fours("phase")[:, :1]).all(axis=1)
    assert np.array_equal(arrays["phase"][whole], fours("phase")[:, 0][whole])


def test_every_start_has_its_exponents_and_samples(tmp_path):
    path = RESULTS / "pe5_torus-laptop.h5"
    export(path, tmp_path / "page.html")
    header, arrays = held((tmp_path / "page.html").read_text())
    file, dataset = header["file"], storage.read(path)
    assert file["starts"] == ["up", "down"] and file["exponents"] == 4
    assert [row["words"] for row in file["variables"]] == ["all starts", "up", "down"]
    for i in range(2):
        of_start = dataset.isel(start=i)
        np.testing.assert_array_equal(
            arrays["least"][:, 4 * i : 4 * (i + 1)], of_start.lyapunov.astype("f4")
        )
        np.testing.assert_array_equal(arrays["period"][:, i], of_start.period)
        counted = (arrays[f"samples_section_{i}"] < 65535).sum()
        assert counted == np.isfinite(of_start.section.values).sum()
    largest = dataset.lyapunov.sel(beta=slice(1.34, 1.53)).isel(start=1, exponent=0)
    assert float(largest.median()) > 0.01  # chaos of the sweep down alone


def test_a_plane_is_held(plane, tmp_path):
    export(plane, tmp_path / "page.html")
    header, arrays = held((tmp_path / "page.html").read_text())
    dataset = storage.read(plane).sortby("gamma").transpose("gamma", "beta", ...)
    stored = dataset.lyapunov.values[..., 1]
    low, high = header["spans"]["lyapunov_2"]
    shown = low + arrays["map_lyapunov_2"] / 65534 * (high - low)
    assert abs(shown - stored).max() <= 0.51 * (high - low) / 65534
    assert [row["name"] for row in header["file"]["variables"]][:2] == [
        "phase",
        "lyapunov_1",
    ]
    told = {
        tuple(row["value"] for row in point["values"]): point["sentence"]
        for point in header["points"]
    }
    assert len(told) == 35
    for beta, gamma in ((1.0, 1.0), (2.0, 9.0)):
        assert told[beta, gamma] == explain(dataset, beta=beta, gamma=gamma)


def test_of_a_scan_without_reasons_the_phases_are_told(plane):
    stored = storage.read(plane)[["phase", "lyapunov", "period"]]
    stored.phase[:] = PHASES.index("chaotic")
    part = stored.isel(beta=[2], gamma=[0])
    told = verdict(part, ("beta", "gamma"))
    assert told["sentence"] == "Chaotic. The file does not say why."


def test_a_large_plane_holds_every_so_many_of_its_rows(plane, tmp_path, monkeypatch):
    monkeypatch.setattr(standalone_page, "NUMBERS", 30)  # of 4 maps of 7 by 5 points
    export(plane, tmp_path / "page.html")
    _, arrays = held((tmp_path / "page.html").read_text())
    assert arrays["map_phase"].shape == (2, 3)
    assert (arrays["x_edges"].size, arrays["y_edges"].size) == (4, 3)


def test_the_command_writes_a_page(line, plane, tmp_path):
    run = lambda *words: CliRunner().invoke(cli.app, ["explore", *map(str, words)])
    done = run(line, "--export", tmp_path / "page.html")
    assert done.exit_code == 0 and "wrote" in done.output
    assert (tmp_path / "page.html").stat().st_size < 2e5
    assert run(line, plane, "--export", tmp_path / "two.html").exit_code == 2


def test_a_file_that_is_no_scan_is_held_with_all_choices(tmp_path):
    export(RESULTS / "one_shot_exact-0-laptop.h5", tmp_path / "page.html")
    header, _ = held((tmp_path / "page.html").read_text())
    drawings = {row["name"]: row for row in header["file"]["drawings"]}
    names = [choice["name"] for choice in drawings["order_parameters"]["choices"]]
    assert names == ["temperature", "widths", "layer"]
    stored = storage.read(RESULTS / "one_shot_exact-0-laptop.h5").squeeze()
    (panel,) = header["contents"]["order_parameters/0/0/1"]["panels"]
    values, errors = stored.U_2.values.ravel(), stored.U_2_stderr.values.ravel()
    expected = [quantity(*x).replace("-", "−") for x in zip(values, errors)]
    assert [x[-1] for x in panel["marks"][0]["numbers"]] == expected


def test_of_many_pictures_the_keywords_are_left_out(tmp_path, monkeypatch):
    path, page = RESULTS / "one_shot_exact-0-laptop.h5", tmp_path / "page.html"
    export(path, page)
    contents = held(page.read_text())[0]["contents"]
    compressed = lambda content: len(gzip.compress(json.dumps(content).encode()))
    sizes = {name: compressed(content) for name, content in contents.items()}
    fewer = sum(
        size for name, size in sizes.items() if name != "order_parameters/0/0/1"
    )
    monkeypatch.setattr(standalone_page, "CONTENT", fewer)
    export(path, page, overwrite=True)
    header, _ = held(page.read_text())
    assert header["file"]["drawings"][1]["choices"][-1]["name"] == "temperature"
    assert "order_parameters/0" in header["contents"]


@pytest.mark.parametrize(
    ("name", "room", "said"),
    [
        ("pe5_continuation", 100, "draw them with statmech-attn figure."),
    ],
)
def test_what_a_page_cannot_hold_is_refused_in_one_line(
    name, room, said, tmp_path, monkeypatch
):
    monkeypatch.setattr(standalone_page, "CONTENT", room)
    target, path = tmp_path / "page.html", RESULTS / f"{name}-laptop.h5"
    words = ["explore", str(path), "--export", str(target)]
    done = CliRunner().invoke(cli.app, words)
    assert done.exit_code == 1 and not target.exists()
    (line,) = done.output.splitlines()
    assert said in line


def test_what_is_no_result_is_one_line(tmp_path, monkeypatch):
    pytest.importorskip("starlette")
    (tmp_path / "empty[1].h5").write_bytes(b"")
    for name, said in (
        ("no.h5", "cannot be read: No such file or directory."),
        ("empty[1].h5", "is not an HDF5 file."),
    ):
        done = CliRunner().invoke(cli.app, ["explore", str(tmp_path / name)])
        assert done.exit_code == 1
        assert done.output == f"statmech-attn: {tmp_path / name}: {said}\n"
    package = sys.modules["statmech_attn.explore"]
    for name in ("explore", "Explorer"):
        monkeypatch.delitem(vars(package), name, raising=False)
    monkeypatch.delitem(sys.modules, f"{package.__name__}.explorer", raising=False)
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    done = CliRunner().invoke(cli.app, ["explore", str(tmp_path / "no.h5")])
    needed = extras.needed("explore", "uvicorn", "explore")
    assert done.output == f"statmech-attn: {needed}\n"


def test_without_a_browser_the_address_is_told(line, tmp_path, monkeypatch):
    pytest.importorskip("uvicorn")
    from statmech_attn.explore import Explorer
    from statmech_attn.explore.views.live import Live

    path = tmp_path / "scan[1].h5"
    path.write_bytes(line.read_bytes())
    monkeypatch.setattr("webbrowser.open", lambda address: False)
    monkeypatch.setattr(Explorer, "wait", lambda self: None)
    monkeypatch.setattr(Live, "warm", lambda self: None)  # compiled for a click
    done = CliRunner().invoke(cli.app, ["explore", str(path)])
    assert done.exit_code == 0 and "the page is at http://127.0.0.1:" in done.output
    assert "no browser could be started: open this address in one" in done.output


def test_nothing_is_replaced_unasked(line, tmp_path):
    target = tmp_path / "page.html"
    target.write_text("mine")
    with pytest.raises(storage.StorageError, match="already exists"):
        export(line, target)
    assert target.read_text() == "mine"
