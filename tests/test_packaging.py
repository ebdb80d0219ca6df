"""The wheel holds the library and its presets, and nothing that can collide.

It is built from the source distribution, as it is where no wheel fits.
"""

import pathlib
import re
import subprocess
import sys
import sysconfig
import tarfile
import zipfile

import pytest


ROOT = pathlib.Path(__file__).resolve().parents[1]
STUDIES = ("simulations", "analysis", "paper_figs", "benchmarks")


def build(target: str, source: pathlib.Path, folder: pathlib.Path) -> pathlib.Path:
    """The distribution that a folder of sources gives."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", target, "-d", folder]
    done = subprocess.run(command, cwd=source, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (built,) = folder.iterdir()
    return built


@pytest.fixture(scope="module")
def sdist(tmp_path_factory) -> pathlib.Path:
    return build("sdist", ROOT, tmp_path_factory.mktemp("sdist"))


@pytest.fixture(scope="module")
def wheel(sdist, tmp_path_factory) -> pathlib.Path:
    unpacked = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(sdist) as archive:
        archive.extractall(unpacked, filter="data")
    (source,) = unpacked.iterdir()
    return build("wheel", source, tmp_path_factory.mktemp("wheel"))


def test_the_source_distribution_is_small_and_holds_the_tests(sdist):
    assert sdist.stat().st_size <= 4e6
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    assert {"tests/conftest.py", "docs/conf.py", "CITATION.cff"} <= names


def test_the_wheel_holds_the_library_only(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    tops = {name.split("/")[0] for name in names}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"statmech_attn"}
    sources = {
        str(path.relative_to(ROOT)) for path in (ROOT / "statmech_attn").rglob("*.py")
    }
    assert sources <= set(names)
    assert "statmech_attn/py.typed" in names  # annotations are for users too (PEP 561)
    assert "statmech_attn/dmft/presets/poclopez-pe2.json" in names
    assert "statmech_attn/explore/page/main.js" in names


def test_the_wheel_names_the_command_and_the_licence(wheel):
    archive = zipfile.ZipFile(wheel)
    (info,) = {n.split("/")[0] for n in archive.namelist() if ".dist-info" in n}
    entry_points = archive.read(f"{info}/entry_points.txt").decode()
    assert "statmech-attn = statmech_attn.cli.__main__:main" in entry_points
    assert f"{info}/licenses/LICENSE" in archive.namelist()


def test_the_extras_of_the_wheel_are_those_that_are_documented(wheel):
    """What tests, the site and checks need are groups, which a user never sees."""
    archive = zipfile.ZipFile(wheel)
    (name,) = (x for x in archive.namelist() if x.endswith(".dist-info/METADATA"))
    extras = re.findall(r"^Provides-Extra: (.*)$", archive.read(name).decode(), re.M)
    page = (ROOT / "docs" / "howto" / "install.md").read_text("utf-8")
    assert sorted(extras) == sorted(re.findall(r"^\| `(\w+)` \|", page, re.M))


@pytest.mark.slow
def test_from_the_wheel_presets_load_and_studies_do_not_import(wheel, tmp_path):
    zipfile.ZipFile(wheel).extractall(tmp_path)
    # -S: an editable installation redirects imports from a .pth file.
    code = f"""
import importlib.util, sys
sys.path += [{str(tmp_path)!r}, {sysconfig.get_path("purelib")!r}]
import statmech_attn
from statmech_attn import dmft
assert statmech_attn.__file__.startswith({str(tmp_path)!r}), statmech_attn.__file__
assert dmft.load("poclopez-pe2").context == 4
print([name for name in {STUDIES} if importlib.util.find_spec(name)])
"""
    command = [sys.executable, "-I", "-S", "-c", code]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
