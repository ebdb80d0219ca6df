"""The page in a real browser: Debian's Chromium, by playwright.

They are slow, and skipped where playwright or the browser, Debian's package chromium,
is not installed; with STATMECH_ATTN_BROWSER set they fail there.
"""

import importlib
import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from statmech_attn import storage, studies
from statmech_attn.dynamics import diagrams


pytestmark = pytest.mark.slow


def needed(name: str):
    """A package that is needed: without it tests are skipped, or fail in CI."""
    if os.environ.get("STATMECH_ATTN_BROWSER"):
        return importlib.import_module(name)
    return pytest.importorskip(name)


playwright = needed("playwright.sync_api")
needed("uvicorn")
RESULTS = Path(__file__).resolve().parents[2] / "paper_figs" / "results"
CHROMIUM = "/usr/bin/chromium"
OPTIONS = (
    "--no-sandbox --disable-gpu --disable-quic --no-first-run "
    "--disable-background-networking --disable-component-update --disable-sync"
).split()
SIZE = {"width": 1300, "height": 850}
MAP = """
import jax.numpy as jnp

def step(state, p):
    x, y = state
    return jnp.stack([1 - p["a"] * x**2 + y, 0.3 * x])
"""
HENON = """
kind = "bifurcation"
[system]
function = "henon.py:step"
initial = [0.1, 0.1]
observables = ["x", "y"]
[parameters]
a = { start = 1.0, stop = 1.4, num = 81 }
[run]
transient = 1000
steps = 2000
exponents = 2
"""


@pytest.fixture(scope="module")
def browser():
    if not Path(CHROMIUM).exists():
        end = pytest.fail if os.environ.get("STATMECH_ATTN_BROWSER") else pytest.skip
        end(f"{CHROMIUM} is not installed")
    with playwright.sync_playwright() as started:
        opened = started.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield opened
        opened.close()


@pytest.fixture
def tab(browser):
    """An empty page; an error in its programs fails the test."""
    context = browser.new_context(viewport=SIZE, accept_downloads=True)
    opened, errors = context.new_page(), []
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert not errors


@pytest.fixture(scope="module")
def henon(tmp_path_factory) -> Path:
    """A scan of the map of Hénon."""
    folder = tmp_path_factory.mktemp("henon")
    (folder / "henon.py").write_text(MAP)
    (folder / "henon.toml").write_text(HENON)
    studies.produce(folder / "henon.toml", folder / "henon.h5")
    return folder / "henon.h5"


@pytest.fixture(scope="module")
def swept(line, tmp_path_factory) -> Path:
    """The hysteresis of the scan `line` and of its mirror image."""
    scan = storage.read(line)
    up = scan.assign_attrs(direction="up", start="continue-up")
    down = scan.assign(strobe=-scan.strobe)
    down.attrs |= {"direction": "down", "start": "continue-down"}
    path = tmp_path_factory.mktemp("swept") / "up+down & more.h5"
    compared = diagrams.compare_sweeps(up, down)
    storage.write(path, compared, study="", kind="hysteresis")
    return path


@pytest.fixture(scope="module")
def address(henon, line, plane, swept):
    from statmech_attn.explore import Explorer

    theory = [RESULTS / f"one_shot_{n}-0-laptop.h5" for n in ("saddle", "exact")]
    files = [henon, line, plane, *theory, swept]
    with Explorer(files, allow_code=True, warm=False) as explorer:
        yield explorer.address


VIEWS = {  # of the files above
    "line": "#file=0&at=1.1",
    "overlay": "#file=1",
    "plane": "#file=2",
    "theory": "#file=3",
    "matrix": "#file=4&picture=order_parameters",
    "hysteresis": "#file=5",
}
DRAWN = "#over[data-drawn]:visible, #panels[data-drawn]"


def shown(tab, address: str, view: str = "") -> dict:
    """Open a view, and wait until it has been drawn; its window."""
    tab.goto(f"{address}{view}")
    tab.locator("#over[data-drawn]").wait_for(timeout=60_000)
    return json.loads(tab.locator("#over").get_attribute("data-drawn"))


def typeset(text: str) -> str:
    """A sentence with the symbols and the minus signs of the page."""
    text = re.sub(r"_(\d)", lambda m: chr(0x2080 + int(m[1])), text)
    return re.sub(r"(?<=[ =(])-(?=\d)", "−", text)


def drawn_again(tab, act) -> dict:
    """Do something that changes the window, and wait for the new picture."""
    before = tab.locator("#over").get_attribute("data-drawn")
    act()
    for _ in range(200):
        now = tab.locator("#over").get_attribute("data-drawn")
        if now != before:
            return json.loads(now)
        tab.wait_for_timeout(50)
    raise AssertionError("the picture did not change")


def until_address_has(tab, text: str) -> None:
    """Wait until the address of the view has a part."""
    for _ in range(200):
        if text in tab.evaluate("location.hash"):
            return
        tab.wait_for_timeout(50)
    raise AssertionError(f"the address has no {text}")


def place(tab, x: float, y: float = 0.3) -> tuple[float, float]:
    """Pixels of a place, in shares of the diagram's frame."""
    box = tab.locator("#over").bounding_box()
    left, right = 64, box["width"] - 12
    return box["x"] + left + x * (right - left), box["y"] + 10 + y * (
        box["height"] - 60
    )


def test_pixels_of_the_density_are_where_samples_are(tab, address, line):
    window = shown(tab, address, "#file=1&hide=up%2Bdown+%26+more.h5")
    ink = tab.evaluate(
        """() => {
          const canvas = document.getElementById("base");
          const {width, height} = canvas;
          const {data} = canvas.getContext("2d").getImageData(0, 0, width, height);
          return [width, height, [...data].filter((_, i) => i % 4 === 3)];
        }"""
    )
    width, height, alpha = ink[0], ink[1], np.array(ink[2])
    alpha = alpha.reshape(height, width)
    dataset = storage.read(line)
    bottom = round(10 + 0.66 * (height - 42 - 10 - 13 - 18))  # of the diagram's frame
    edges = np.linspace(*window["y"], bottom - 10 + 1)
    wrong = count = 0
    dots = np.ones(3)  # a sample reaches to the pixels above and below
    for number, row in enumerate(dataset.section.values):
        share = (number + 0.5) / 40
        column = alpha[10:bottom, round(64 + share * (width - 12 - 64))]
        counts = np.histogram(row[np.isfinite(row)], edges)[0][::-1]
        counts = np.convolve(counts, dots, "same")
        beside = alpha[10:bottom, round(64 + (share + 0.5 / 40) * (width - 12 - 64))]
        assert number == 39 or not beside[2:-2].any()  # no ink between two points
        wrong += int(((column > 0) != (counts > 0))[2:-2].sum())
        count += int((counts > 0).sum())
    assert count > 300 and wrong <= 0.02 * count  # pixels at edges of cells


def test_hover_and_click_tell_what_the_file_holds(tab, address, henon):
    dataset = storage.read(henon)
    shown(tab, address)
    tab.mouse.move(*place(tab, 0.97))
    tab.locator("#hover", has_text="nat/step").wait_for(timeout=20_000)
    tab.mouse.click(*place(tab, 0.25))
    tab.locator("#verdict .sentence").wait_for(timeout=20_000)
    at = tab.evaluate("location.hash").split("at=")[1].split("&")[0]
    point = dataset.sel(a=float(at), method="nearest")
    assert float(point.a) == float(at)
    sentence = tab.locator("#verdict .sentence").first.inner_text()
    assert sentence == typeset(diagrams.explain(dataset, a=float(at)))
    tab.locator("#live figure").nth(4).wait_for(timeout=120_000)
    live = tab.locator("#live").inner_text()
    assert "with the same verdict" in live
    value, error = float(point.lyapunov[0]), float(point.lyapunov_stderr[0])
    assert f"{value:.3f}"[:6].replace("-", "−") in live and error >= 0


def test_wheel_drag_and_keys_move_the_window(tab, address):
    window = shown(tab, address)
    tab.mouse.move(*place(tab, 0.5))
    smaller = drawn_again(tab, lambda: tab.mouse.wheel(0, -300))
    span = lambda w: w["x"][1] - w["x"][0]
    assert span(smaller) < 0.7 * span(window)
    drag = lambda: (tab.mouse.down(), tab.mouse.move(*place(tab, 0.4)), tab.mouse.up())
    dragged = drawn_again(tab, drag)
    assert dragged["x"][0] > smaller["x"][0]
    assert np.isclose(span(dragged), span(smaller))
    tab.locator("#over").focus()
    pressed = drawn_again(tab, lambda: tab.keyboard.press("ArrowRight"))
    assert pressed["x"][0] > dragged["x"][0]
    tab.keyboard.press("Enter")
    until_address_has(tab, "at=")
    first = tab.locator("#verdict .value").inner_text()
    tab.keyboard.press(".")
    tab.locator("#verdict .value").filter(has_not_text=first).wait_for(timeout=20_000)
    tab.locator("#over").focus()
    assert drawn_again(tab, lambda: tab.keyboard.press("0")) == window


def test_the_address_holds_the_view(tab, address, browser):
    view = "#file=0&x=1.1,1.2&y=-0.5,0.5&at=1.15&theme=dark"
    window = shown(tab, address, view)
    assert window == {"x": [1.1, 1.2], "y": [-0.5, 0.5]}
    tab.locator("#verdict .sentence").wait_for(timeout=20_000)
    assert tab.locator("html").get_attribute("data-theme") == "dark"
    other = browser.new_page()  # two tabs
    assert shown(other, tab.url) == window
    other.close()


def test_a_part_is_computed_and_appears(tab, address):
    shown(tab, address, "#file=0&at=1.1")
    tab.locator("#live figure").nth(4).wait_for(timeout=120_000)
    tab.locator("#box").click()
    tab.mouse.move(*place(tab, 0.1))
    tab.mouse.down()
    tab.mouse.move(*place(tab, 0.15))
    tab.mouse.up()
    tab.locator("#part-a-num").fill("12")
    form = tab.locator(
        "#part"
    ).bounding_box()  # beside the box, not below five pictures
    assert 0 <= form["y"] and form["y"] + form["height"] <= tab.viewport_size["height"]
    with tab.expect_download() as download:
        tab.locator("#download").click()
    text = download.value.path().read_text()
    assert "num = 12" in text and 'function = "henon.py:step"' in text
    tab.locator("#compute").click()
    done = tab.locator("#part-message", has_text="12 points have been computed")
    done.wait_for(timeout=120_000)
    tab.locator("#close").click()
    assert tab.locator("#part").is_hidden()


def test_maps_of_every_variable_are_drawn(tab, address):
    shown(tab, address, "#file=2")
    options = tab.locator("#variable option").all()
    assert len(options) > 8
    for option in options:
        name = option.get_attribute("value")
        tab.locator("#variable").select_option(name)
        tab.wait_for_timeout(300)
    assert tab.evaluate("location.hash").endswith(f"show={name}")
    assert tab.locator("#message").is_hidden()


def test_an_exported_page_needs_no_server(tab, henon, tmp_path, browser):
    from statmech_attn.explore import export

    target = tmp_path / "henon.html"
    export(henon, target)
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    window = shown(tab, target.as_uri())
    assert np.allclose(window["x"], [0.9975, 1.4025])
    tab.mouse.click(*place(tab, 0.25))
    tab.locator("#verdict .sentence").wait_for(timeout=20_000)
    assert tab.locator("#share").is_hidden() and tab.locator("#box").is_hidden()
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)


def test_nothing_is_wider_than_a_phone(browser, address):
    phone = browser.new_page(viewport={"width": 390, "height": 800})
    for view in VIEWS.values():
        phone.goto(f"{address}{view}")
        phone.reload()
        phone.locator(DRAWN).first.wait_for(timeout=60_000)
        phone.wait_for_timeout(300)
        assert phone.evaluate("document.documentElement.scrollWidth") == 390
    phone.close()


@pytest.mark.parametrize("theme", ("light", "dark"))
@pytest.mark.parametrize("view", VIEWS)
def test_axe_has_no_complaint(tab, address, view, theme):
    axe = needed("axe_playwright_python.sync_playwright")
    sign = VIEWS[view] + f"&theme={theme}"
    tab.goto(f"{address}{sign}")
    tab.locator(DRAWN).first.wait_for(timeout=60_000)
    if "at=" in sign:
        tab.locator("#live figure").nth(4).wait_for(timeout=120_000)
    found = axe.Axe().run(tab).response["violations"]
    assert not found, [(x["id"], x["nodes"][0]["html"]) for x in found]


def test_panels_tell_of_their_numbers_by_pointer_and_keyboard(tab, address):
    tab.goto(f"{address}#file=4&picture=order_parameters")
    panel = tab.locator("#panels .panel").first
    tab.locator("#panels[data-drawn]").wait_for(timeout=60_000)
    stored = storage.read(RESULTS / "one_shot_exact-0-laptop.h5").squeeze()
    names = [str(x) for x in stored.path_1.values]
    panel.focus()
    tab.keyboard.press("ArrowRight")
    told = tab.locator(".told")
    assert "Tab" in tab.locator("#keys").inner_text()
    assert panel.get_attribute("aria-describedby") == "keys"
    assert told.inner_text().startswith(f"path π′ {names[0]}, path π {names[0]}: ")
    value, error = told.inner_text().split()[-3::2]
    assert float(error) == pytest.approx(float(stored.U_1_stderr[0, 0]), rel=0.6)
    assert abs(float(value) - float(stored.U_1[0, 0])) <= float(error)
    tab.keyboard.press("ArrowDown")
    assert told.inner_text().startswith(f"path π′ {names[0]}, path π {names[1]}: ")
    tab.keyboard.press("ArrowUp")
    assert told.inner_text().startswith(f"path π′ {names[0]}, path π {names[0]}: ")
    box = panel.bounding_box()
    cell = box["width"] / len(names)
    tab.mouse.move(box["x"] + 2.5 * cell, box["y"] + 1.5 * cell)
    assert told.inner_text().startswith(f"path π′ {names[2]}, path π {names[1]}: ")
    ring = panel.locator("i").bounding_box()
    at = ring["x"] + ring["width"] / 2 - box["x"]
    assert at == pytest.approx(2.5 * cell, abs=1.0)
    tab.mouse.move(box["x"] + 0.5 * cell, box["y"] + 0.5 * cell)
    tab.locator("#choice-layer").press("End")
    until_address_has(tab, "c.layer=2")
    tab.locator("#panels[data-drawn*='layer\":1']").wait_for(timeout=20_000)
    value, error = told.inner_text().split()[-3::2]  # of the same place there
    value = float(value.replace("−", "-"))
    assert abs(value - float(stored.U_2[0, 0])) <= float(error)
    tab.locator("#picture").select_option("accuracy")
    tab.locator("#panels[data-drawn*=accuracy]").wait_for(timeout=20_000)
    assert tab.locator("#panels img").count() == tab.locator(".panel").count() == 1


def test_an_image_is_drawn_in_the_colours_of_the_theme(tab, address):
    colours = """async () => {
      const image = document.querySelector("#panels img");
      const canvas = document.createElement("canvas");
      [canvas.width, canvas.height] = [400, 300];
      const context = canvas.getContext("2d");
      context.drawImage(image, 0, 0, 400, 300);
      return [...context.getImageData(1, 1, 1, 1).data];
    }"""
    seen = {}
    for theme in ("light", "dark"):
        tab.goto(f"{address}#file=3&picture=accuracy&theme={theme}")
        tab.reload()
        tab.locator("#panels[data-drawn]").wait_for(timeout=60_000)
        seen[theme] = tab.evaluate(colours)
    assert seen["light"][:3] == [255, 255, 255] and seen["dark"][:3] == [27, 30, 36]
    tab.locator("#theme").click()
    tab.wait_for_timeout(1000)
    assert tab.evaluate(colours) == seen["light"]


def test_an_exported_file_of_any_kind_needs_no_server(tab, tmp_path):
    from statmech_attn.explore import export

    target = tmp_path / "exact.html"
    export(RESULTS / "one_shot_exact-0-laptop.h5", target)
    asked = []
    tab.on("request", lambda request: asked.append(request.url))
    tab.goto(f"{target.as_uri()}#picture=order_parameters&c.layer=2")
    tab.locator("#panels[data-drawn]").wait_for(timeout=20_000)
    tab.locator(".panel").focus()
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".told").inner_text().startswith("path π′ 1, path π 1: ")
    tab.locator("#picture").select_option("accuracy")
    tab.locator("#panels[data-drawn*=accuracy]").wait_for(timeout=20_000)
    assert tab.locator("#share").is_hidden()
    assert all(url.startswith(("file:", "data:", "blob:")) for url in asked)


def test_other_files_are_drawn_over_a_scan(tab, address):
    from statmech_attn.explore.views.overlays import DOWNWARD

    shown(tab, address, "#file=1")
    box = tab.locator("#others input")
    box.wait_for(timeout=20_000)
    downward = [int(DOWNWARD[i : i + 2], 16) for i in (1, 3, 5)]
    colours = """([red, green, blue]) => {
      const canvas = document.getElementById("base");
      const {data} = canvas.getContext("2d")
        .getImageData(0, 0, canvas.width, canvas.height);
      let count = 0;
      for (let i = 0; i < data.length; i += 4) {
        count += data[i] === red && data[i + 1] === green && data[i + 2] === blue;
      }
      return count;
    }"""
    assert "followed downward" in tab.locator("#legend").inner_text()
    with_sweep = tab.evaluate(colours, downward)
    box.uncheck()
    until_address_has(tab, "hide=")
    without = tab.evaluate(colours, downward)  # of what has this colour in any case
    assert with_sweep > without + 40
    tab.reload()
    box.wait_for(timeout=20_000)
    assert not box.is_checked(), "the address names the file"


def test_a_file_that_is_replaced_is_told_of_and_opened_again(
    tab, line, plane, tmp_path
):
    from statmech_attn.explore import Explorer

    path = tmp_path / "scan.h5"
    path.write_bytes(line.read_bytes())
    with Explorer([path], warm=False) as explorer:
        shown(tab, explorer.address)
        (tmp_path / "other.h5").write_bytes(plane.read_bytes())
        (tmp_path / "other.h5").replace(path)
        message = tab.locator("#message")
        tab.locator("#message", has_text="has been replaced").wait_for(timeout=20_000)
        message.locator("button").click()
        tab.locator("#variable").wait_for(timeout=20_000)
        path.unlink()
        tab.locator("#message", has_text="has been removed").wait_for(timeout=20_000)
        path.write_bytes(b"no HDF5 at all")
        message.locator("button").click()
        tab.locator("#message", has_text="is not an HDF5 file").wait_for(timeout=20_000)
