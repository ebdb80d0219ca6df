"""Whatever a study file holds is a study or an error of one short line, and soon."""

import pathlib
import shutil
import signal
import tempfile
import tracemalloc

import pytest
from hypothesis import given, HealthCheck, settings, strategies as st

from statmech_attn import storage, studies
from statmech_attn.storage import toml
from statmech_attn.studies.files import spec


ROOT = pathlib.Path(__file__).resolve().parents[2]
FILES = sorted([*ROOT.glob("analysis/*.toml"), *ROOT.glob("simulations/**/*.toml")])
TEXTS = [path.read_text() for path in FILES]
# One for all: files that a study names are looked up in its own folder.
FOLDER = tempfile.TemporaryDirectory()
for code in ROOT.glob("simulations/systems/*.py"):
    shutil.copy(code, FOLDER.name)
WORDS = sorted({word for text in TEXTS for word in text.split()})
LIMITS = settings(
    max_examples=100,
    deadline=2000,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


def loaded(text, *changes):
    """A study and its stored text, or the one line that says what is wrong."""
    path = pathlib.Path(FOLDER.name) / "study.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    try:
        return studies.load(path, changes)
    except ValueError as error:
        line = str(error).replace(str(path), "study.toml")
    assert len(line) < 1000 and line.isprintable(), line
    return None


def survives(text, *changes) -> bool:
    """Whether it is a study whose stored text is the same study, or one line."""
    if (found := loaded(text, *changes)) is None:
        return True
    study, stored = found
    again = loaded(stored)
    same = again is not None and again[0].model_dump() == study.model_dump()
    return same and len(storage.study_digest(stored)) == 64


def test_files_named_in_a_study_are_found_again_beside_it():
    text = (ROOT / "analysis/one_shot_saddle.toml").read_text()
    assert survives(text.replace("../results", "./results"))


@LIMITS
@given(st.sampled_from(TEXTS), st.data())
def test_words_of_studies_in_any_order(text, data):
    lines = text.splitlines()
    for _ in range(data.draw(st.integers(1, 4))):
        place = data.draw(st.integers(0, len(lines) - 1))
        words = data.draw(st.lists(st.sampled_from(WORDS), max_size=4))
        lines[place] = data.draw(st.sampled_from(["", lines[place] + " "])) + " ".join(
            words
        )
    assert survives("\n".join(lines))


@LIMITS
@given(st.sampled_from(TEXTS), st.data())
def test_bytes_cut_out_repeated_and_exchanged(text, data):
    content = bytearray(text.encode())
    for _ in range(data.draw(st.integers(1, 4))):
        first, second = (data.draw(st.integers(0, len(content))) for _ in range(2))
        new = data.draw(st.one_of(st.binary(max_size=8), st.just(content[first:])))
        content[min(first, second) : max(first, second)] = new
    assert survives(bytes(content))


VALUES = st.recursive(
    st.one_of(
        st.integers(),
        st.floats(),
        st.booleans(),
        st.text(max_size=8),
        st.dates(),
        st.datetimes(),
        st.builds(lambda: 2**20_000),
        st.just("all"),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(
            st.one_of(st.sampled_from(["start", "stop", "num"]), st.text(max_size=3)),
            inner,
            max_size=4,
        ),
    ),
    max_leaves=6,
)


@LIMITS
@given(st.sampled_from(TEXTS), st.data())
def test_any_value_at_any_key(text, data):
    tree = toml.loads(text)
    model = spec.model_of(tree)
    table = data.draw(st.sampled_from([*model.model_fields, "new\n"]))
    below = tree.setdefault(table, {})
    if isinstance(below, dict) and table != "new\n":
        keys = spec._keys_at(model, [table]) + [*below, "\x1b", "new"]
        below[data.draw(st.sampled_from(keys))] = data.draw(VALUES)
    else:
        tree[table] = data.draw(VALUES)
    try:
        studies.parse(tree)
    except ValueError as error:
        assert len(str(error)) < 1000 and str(error).isprintable()


@LIMITS
@given(
    st.lists(st.sampled_from(["run", "parameters", "beta", " ", "\n"]), max_size=3),
    st.sampled_from(["=", "", " = "]),
    st.one_of(st.text(max_size=8), st.sampled_from(['"a\\nb\\u007f"', "{a=1}", "inf"])),
)
def test_overrides(keys, equals, value):
    assert survives(TEXTS[0], ".".join(keys) + equals + value)


STUDY = 'kind = "bifurcation"\n[parameters]\nbeta = 1.0\n'
HOSTILE = {
    "lists in lists": STUDY + "x = " + "[" * 5000 + "]" * 5000,
    "tables in tables": STUDY + "x = " + "{a=" * 5000 + "1" + "}" * 5000,
    "a key of many names": STUDY + "[a" + ".a" * 500_000 + "]",
    "quoted names": STUDY + "[a" + " . 'a b'" * 100_000 + "]",
    "a long name": STUDY + "a" * 2_000_000,
    "digits": STUDY + "x = " + "9" * 5000,
    "digits of a power of two": STUDY + "[run]\nsteps = 0x" + "f" * 50_000,
    "more steps than a machine counts": STUDY + "[run]\nsteps = " + "9" * 30,
    "a long text": STUDY + '[run]\nsteps = "' + "x" * 1_000_000 + '"',
    "a long kind": 'kind = "' + "x" * 1_000_000 + '"',
    "wrong values": STUDY.replace("1.0", "[" + '"a",' * 100_000 + "]"),
    "unknown keys": STUDY + "\n".join(f"k{i} = 1" for i in range(20_000)),
    "points": STUDY.replace("1.0", "{ start = 0.0, stop = 1.0, num = 1000000000000 }"),
    "values": STUDY.replace("1.0", "[" + "1.0," * 1_500_000 + "]"),
    "a line break in a key": STUDY + '"a\\nb" = 1',
}
SECONDS = {"a long kind", "a long name", "a long text", "unknown keys"}  # take some


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.slow if name in SECONDS else ())
        for name in HOSTILE
    ],
)
def test_what_is_too_much_is_refused_at_once(name):
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("still reading"))
    signal.alarm(30)
    tracemalloc.start()
    try:
        assert loaded(HOSTILE[name]) is None
        assert tracemalloc.get_traced_memory()[1] < 100 * 2**20
    finally:
        tracemalloc.stop()
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def test_more_points_than_fit_are_refused_with_their_number():
    axis = "{ start = 0.1, stop = 0.2, num = 10000 }"
    text = STUDY.replace("1.0", axis) + f"gamma = {axis}\n"
    study, _ = loaded(text)
    with pytest.raises(ValueError, match="parameters: 100000000 points"):
        studies.work(study)


def test_texts_of_overrides_are_stored_as_toml():
    pattern = "a\n\t\x7f\"\\'\x01.json"
    study, stored = loaded(STUDY, f"network.patterns={pattern}")
    assert study.network.patterns.endswith(pattern)
    assert toml.loads(stored)["network"]["patterns"] == pattern
