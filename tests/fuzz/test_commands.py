"""Whatever studies, files and paths are, a command works or refuses in one line.

Within 10 seconds of a processor and a gigabyte of memory, and without a character that
a terminal would obey.  Compiling the programs of a study that is good may take longer,
and a good study whose arrays are large takes the memory that it forecasts.
"""

import hashlib
import os
import pathlib
import random
import shutil
import zlib

import h5py
import numpy as np
import pytest
import xarray as xr

from statmech_attn import storage
from statmech_attn.dynamics import PHASES
from statmech_attn.storage.schema import seal, SEAL_LENGTH


ROOT = pathlib.Path(__file__).resolve().parents[2]
STUDIES = sorted([*ROOT.glob("analysis/*.toml"), *ROOT.glob("simulations/**/*.toml")])
CODE = sorted(ROOT.glob("simulations/systems/*.py"))
RESULTS = sorted((ROOT / "paper_figs" / "results").glob("*.h5"))
LABELS = {"long_name": "x", "units": "1", "symbol": "x"}
STUDY = 'kind = "trajectory"\n[parameters]\nbeta = 0.5\n[run]\nsteps = 5\n'


# --- studies ---

VALUES = (
    "0",
    "-1",
    "1",
    "4294967296",
    "9223372036854775808",
    "1e308",
    "-1e-300",
    "nan",
    "inf",
    "true",
    '"text"',
    '"../[b].json"',
    "[]",
    "[1, 1]",
    "{ }",
    "1000000",
    "{ start = 0.0, stop = 1.0, num = 1000000 }",
    "[0.5, nan]",
    '"/dev/zero.json"',
    '"henon.py:step"',
    '"lorenz.py:field"',
    '"nowhere.py:step"',
)


def mutated(text: str, chance: random.Random) -> bytes:
    """A study with some values replaced, lines moved, or bytes changed."""
    lines = text.splitlines()
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(lines))
        key, equals, _ = lines[place].partition("=")
        if equals and chance.random() < 0.8:
            lines[place] = f"{key}= {chance.choice(VALUES)}"
        else:
            lines.insert(chance.randrange(len(lines)), lines.pop(place))
    content = bytearray("\n".join(lines).encode())
    if chance.random() < 0.2:
        content[chance.randrange(len(content))] = chance.randrange(256)
    return bytes(content)


@pytest.mark.slow
def test_mutated_studies(command, tmp_path):
    """For 10 minutes; test_studies.py has more of them, which are read only."""
    chance = random.Random(200)
    for path in CODE:
        shutil.copy(path, tmp_path)
    # The flow alone compiles for 40 seconds of a processor before it would compute.
    files = [path for path in STUDIES if path.stem != "lorenz"]
    for number in range(200):
        study, output = tmp_path / f"{number}.toml", tmp_path / f"{number}.h5"
        study.write_bytes(mutated(chance.choice(files).read_text(), chance))
        ended = command("run", study, "-o", output).orderly()
        assert output.exists() == (ended.code == 0), ended
        print(f"{ended.code} {ended.seconds:.2f} s {ended.megabytes:.0f} MB")  # noqa: T201


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("context = 4294967296", "context times patterns"),
        (
            'patterns = "random-segments"\ncontext = 4\nseed = 0\nn_patterns = 3\n'
            "n_bits = 2\nn_segments = 4294967296",
            "n_patterns x n_segments must be at most",
        ),
    ],
)
def test_networks_beyond_any_memory_are_refused(command, tmp_path, text, words):
    study = tmp_path / "large.toml"
    study.write_text(STUDY + "[network]\n" + text)
    ended = command("run", study, "-o", tmp_path / "out.h5").orderly()
    assert ended.code == 1 and words in ended.said


PRESET = ROOT / "statmech_attn" / "dmft" / "presets" / "poclopez-pe2.json"


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"context": 4', '"context": Infinity', "context: must be a whole number"),
        ('"context": 4', '"context": 4.5', "context: must be a whole number"),
        ('"gamma": 127', '"gamma": 1e999, "x": 127', "gamma: must be a finite number"),
        ('"next_position": 3', '"next_position": -Infinity', "next_position: must be"),
        ('"window": [', '"window": [[NaN, 0, 0],', "start.window must"),
        ('"epsilon": 0.02', '"epsilon": true', "epsilon: must be a finite number"),
    ],
)
def test_numbers_that_are_none_in_pattern_files(command, tmp_path, old, new, words):
    text = PRESET.read_text()
    assert old in text
    changed = text.replace(old, new)
    if "NaN" in new:  # one row replaces another
        rows = changed.index("[NaN, 0, 0],") + len("[NaN, 0, 0],")
        end = changed.index("]", rows) + 2
        changed = changed[:rows] + changed[end:]
    (tmp_path / "p.json").write_text(changed)
    study = tmp_path / "s.toml"
    study.write_text(STUDY + '[network]\npatterns = "p.json"\n')
    ended = command("run", study, "-o", tmp_path / "out.h5").orderly()
    assert ended.code == 1 and "p.json" in ended.said and words in ended.said


@pytest.mark.parametrize("kind", ("pipe", "device", "folder"))
@pytest.mark.parametrize("what", ("study", "patterns", "result", "trained"))
def test_what_is_no_regular_file_is_refused_unread(command, tmp_path, kind, what):
    path = tmp_path / {"patterns": "p.json", "study": "s.toml"}.get(what, "r.h5")
    make = {
        "pipe": lambda: os.mkfifo(path),
        "device": lambda: path.symlink_to("/dev/zero"),
        "folder": path.mkdir,
    }
    make[kind]()
    study, words = tmp_path / "s.toml", ["info", path]
    if what == "patterns":
        study.write_text(STUDY + '[network]\npatterns = "p.json"\n')
    if what == "trained":
        text = (ROOT / "analysis" / "one_shot_saddle.toml").read_text()
        lines = [line for line in text.splitlines() if not line.startswith("trained")]
        lines.insert(lines.index("[task]") + 1, 'trained = "r.h5"')
        study.write_text("\n".join(lines))
    if what != "result":
        words = ["run", study, "-o", tmp_path / "out.h5"]
    ended = command(*words).orderly()
    assert ended.code == 1 and path.name in ended.said
    assert "not a regular file" in ended.said or "directory" in ended.said


# --- files ---


def resealed(path: pathlib.Path) -> pathlib.Path:
    """A file that another program changed, with a seal that matches."""
    content = path.read_bytes()
    path.write_bytes(content + seal(hashlib.sha256(content).hexdigest()))
    return path


def scan(path: pathlib.Path) -> pathlib.Path:
    """A small bifurcation file."""
    points = lambda *shape: np.zeros((5, *shape))
    exponents = {
        name: (("beta", "exponent"), points(3), LABELS)
        for name in ("lyapunov", "lyapunov_stderr")
    }
    words = {
        "flag_values": np.arange(len(PHASES), dtype=np.int8),
        "flag_meanings": " ".join(PHASES),
    }
    codes = {
        name: ("beta", np.zeros(5, "i4"), LABELS | labels)
        for name, labels in (
            *(("phase", words), ("phase_paper", words)),
            *(("period", {}), ("section_count", {})),
        )
    }
    samples = {
        "section": (("beta", "sample"), points(4), LABELS),
        "strobe": (("beta", "strobe_sample"), points(4), LABELS),
    }
    dataset = xr.Dataset(
        exponents | codes | samples,
        {"beta": ("beta", np.linspace(0, 1, 5), LABELS)},
        {"section_tolerance": 1e-3},
    )
    storage.write(path, dataset, study='kind = "bifurcation"\n')
    return path


def changed(path: pathlib.Path, change) -> pathlib.Path:
    path.write_bytes(path.read_bytes()[:-SEAL_LENGTH])
    with h5py.File(path, "a") as file:
        change(file)
    return resealed(path)


def dimension(file, length: int):
    """A netCDF dimension without coordinates."""
    made = file.create_dataset(f"of_{length}", (length,), "f4")
    made.make_scale(
        f"This is a netCDF dimension but not a netCDF variable.{length:10d}"
    )
    return made


def one_text_many_times(file):
    """200 000 references to one text of 23 000 characters: 4.6 GB in 3 MB."""
    count = 200_000
    texts = file.create_dataset("words", (count,), h5py.string_dtype(), chunks=(count,))
    texts.attrs.update(LABELS)
    texts.dims[0].attach_scale(dimension(file, count))
    texts[0] = "x" * 23_000
    _, stored = texts.id.read_direct_chunk((0,))
    reference = bytes(stored)[:16]
    texts.id.write_direct_chunk((0,), reference * count)


def unpacks_to_gigabytes(file, name="phase", each=2**20):
    """1.3 GB of zeros in 1.4 MB."""
    del file[name]
    shape, box = (5, 2**28), (1, each)
    zeros = file.create_dataset(name, shape, "i1", chunks=box, compression="gzip")
    zeros.attrs.update(LABELS)
    for axis, scale in enumerate((file["beta"], dimension(file, shape[1]))):
        zeros.dims[axis].attach_scale(scale)
    packed = zlib.compress(bytes(each), 9)
    for row in range(shape[0]):
        for column in range(0, shape[1], each):
            zeros.id.write_direct_chunk((row, column), packed)


def unpacks_samples(file):
    unpacks_to_gigabytes(file, "strobe")


def unpacks_at_once(file):
    unpacks_to_gigabytes(file, "strobe", 2**28)


def a_long_dimension(file):
    """A variable of 5 values along a dimension of 10^9, to which readers fill it up."""
    del file["section_count"]
    file["section_count"] = np.zeros(5, "i4")
    file["section_count"].attrs.update(LABELS)
    file["section_count"].dims[0].attach_scale(dimension(file, 10**9))


def coordinates_along_a_long_dimension(file):
    """Coordinates that are said to lie along another, longer dimension."""
    number = dimension(file, 10**9).attrs["_Netcdf4Dimid"] = np.int32(99)
    file["beta"].attrs["_Netcdf4Coordinates"] = np.array([number])


def attribute_of_long_texts(file):
    file.attrs["words"] = np.array(["x" * 1000] * 3000, dtype=h5py.string_dtype())


BOMBS = (
    one_text_many_times,
    unpacks_to_gigabytes,
    unpacks_samples,
    unpacks_at_once,
    a_long_dimension,
    attribute_of_long_texts,
)


@pytest.mark.parametrize("make", BOMBS, ids=lambda make: make.__name__)
def test_small_files_fill_no_memory(command, tmp_path, make):
    path = changed(scan(tmp_path / "scan.h5"), make)
    assert path.stat().st_size < 8 * 2**20
    command("info", path).orderly()
    ended = command("figure", path, "-o", tmp_path / "figures").orderly()
    assert ended.code == 1


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("command", "\x1b[2J\x1b]0;title\x07"),
        ("kind", "\x9b31mred"),
        ("device_kind", "GPU [/b] [red]"),
        ("platform", "a\u202eb"),
        ("versions", '{"\x1b[31mjax": "1"}'),
        ("keys", '{"\\u001b[31m": "\\u001b"}'),
        ("environment", '{"cpu_model": "\\u001b[31m"}'),
        ("study", 'kind = "x"\n# \x1b[31m\r'),
    ],
)
def test_attributes_are_shown_as_text(command, tmp_path, name, value):
    path = changed(
        scan(tmp_path / "scan.h5"), lambda file: file.attrs.__setitem__(name, value)
    )
    ended = command("info", path).orderly()
    assert "[/b] [red]" in ended.said or name != "device_kind"


def no_references(file):
    file["phase"].attrs["DIMENSION_LIST"] = 5


@pytest.mark.parametrize(
    ("make", "name"),
    ((no_references, "phase"), (coordinates_along_a_long_dimension, "beta")),
)
def test_dimensions_of_another_length_are_refused(command, tmp_path, make, name):
    ended = command("info", changed(scan(tmp_path / "scan.h5"), make)).orderly()
    assert (
        ended.code == 1 and f"{name} has not the dimensions of its data" in ended.said
    )


@pytest.mark.parametrize("value", ('{"cpu_model": 5}', "[]", "7"))
def test_tables_of_texts_hold_texts(command, tmp_path, value):
    path = changed(
        scan(tmp_path / "scan.h5"),
        lambda file: file.attrs.__setitem__("environment", value),
    )
    ended = command("info", path).orderly()
    assert ended.code == 1 and "scan.h5" in ended.said and "environment" in ended.said


@pytest.mark.parametrize("value", ("", "[]"))
def test_a_task_is_a_table(command, tmp_path, value):
    (theory,) = [path for path in RESULTS if path.name.startswith("one_shot_theory-0")]
    path = pathlib.Path(shutil.copy(theory, tmp_path / "theory.h5"))
    changed(path, lambda file: file.attrs.__setitem__("task", value))
    ended = command("figure", path, "-o", tmp_path).orderly()
    assert ended.code == 1 and "theory.h5: is no whole file" in ended.said
    assert "task" in ended.said


@pytest.mark.parametrize(
    "name",
    ["period", "lyapunov", "strobe"],
)
def test_files_without_a_variable_of_their_kind(command, tmp_path, name):
    path = changed(scan(tmp_path / "scan.h5"), lambda file: file.__delitem__(name))
    for words in (["info", path], ["figure", path, "-o", tmp_path]):
        ended = command(*words).orderly()
        assert ended.code == 1 and "scan.h5: is no whole file" in ended.said
        assert name in ended.said


@pytest.mark.parametrize("name", ("phase", "phase_paper"))
@pytest.mark.parametrize("code", (100, -2))
def test_codes_without_a_word(command, tmp_path, name, code):
    path = changed(
        scan(tmp_path / "scan.h5"),
        lambda file: file[name].write_direct(np.full(5, code)),
    )
    ended = command("info", path).orderly()
    assert ended.code == 1 and "scan.h5: is no whole file" in ended.said
    assert name in ended.said


def test_numbers_that_no_picture_can_show(command, tmp_path):
    """An error of a mean that is negative, in a file that is whole otherwise."""
    path = tmp_path / "pruning.h5"
    path.write_bytes(
        (ROOT / "paper_figs/results/one_shot_pruning-laptop.h5").read_bytes()
    )
    negative = lambda file: file["accuracy_drop_stderr"].write_direct(
        np.full(file["accuracy_drop_stderr"].shape, -1.0)
    )
    ended = command("figure", changed(path, negative), "-o", tmp_path).orderly()
    assert ended.code == 1 and "pruning.h5: a picture cannot be drawn" in ended.said
    ended = command("explore", path, "--export", tmp_path / "page.html").orderly()
    assert ended.code == 1 and "pruning.h5: no page can be made" in ended.said


def number_for_a_unit(file):
    file["lyapunov"].attrs["units"] = 5


def test_a_unit_that_is_no_text_names_its_variable(command, tmp_path):
    path = changed(scan(tmp_path / "scan.h5"), number_for_a_unit)
    ended = command("explore", path, "--export", tmp_path / "scan.html").orderly()
    assert ended.code == 1 and "lyapunov has no attribute units" in ended.said


# --- paths ---


def test_a_name_is_no_markup(command, tmp_path):
    path = tmp_path / "[bold]x" / "[red].h5"
    path.parent.mkdir()
    path.write_text("a letter")
    ended = command("info", path).orderly()
    assert ended.code == 1 and "[bold]x/[red].h5: " in ended.said
