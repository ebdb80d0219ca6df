import errno
import json
import os
from importlib import resources

import jax
import jsonschema
import numpy as np
import pytest

from statmech_attn import dmft, storage


NETWORKS = pytest.mark.parametrize(
    ("preset", "name", "context"),
    [
        ("poclopez-pe2", "poclopez_patterns.json", 4),
        ("poclopez-pe5", "poclopez_pe5_patterns.json", 32),
    ],
)


@NETWORKS
def test_preset_is_the_published_network(published, preset, name, context):
    values = json.loads((published / name).read_text())
    file = dmft.load(preset)
    for kind, semantic in zip(dmft.KINDS, file.patterns.semantic, strict=True):
        assert semantic.tolist() == values["semantic"][kind]
    for kind, bits in zip(dmft.KINDS, file.patterns.positional, strict=True):
        assert bits.tolist() == values["positional"][kind]
    assert file.context == context and file.epsilon == 0.02
    assert file.gamma == pytest.approx(2.2 * 100 / np.sqrt(3), rel=1e-15)
    assert file.checkpoint[1] == values["start"]["next_position"]


@NETWORKS
def test_a_json_file_reads_like_its_preset(published, preset, name, context):
    by_path, by_name = dmft.load(published / name), dmft.load(preset)
    assert by_path.context == by_name.context == context
    assert np.array_equal(by_path.patterns.semantic, by_name.patterns.semantic)
    assert np.array_equal(by_path.checkpoint[0], by_name.checkpoint[0])


def test_matrices_compress_to_distinct_columns_with_their_fractions():
    columns = np.array([[1, 1, -1, 1, -1, 1], [1, 1, 1, -1, 1, 1]], float)
    p = dmft.from_matrices(columns, columns, -columns, columns)
    assert p.n_classes == 3
    assert sorted(p.fractions.tolist()) == pytest.approx([1 / 6, 2 / 6, 3 / 6])
    for a in range(2):
        for b in range(2):
            by_site = np.mean(columns[a] * -columns[b])
            by_class = np.sum(p.fractions * p.semantic[0, a] * p.semantic[2, b])
            assert by_class == pytest.approx(by_site, abs=1e-15)


def test_cycle_recalls_after_every_pattern_the_one_before():
    p = dmft.cycle(jax.random.key(0), n_patterns=3, n_bits=2)
    o, v, q, k = p.semantic
    assert np.array_equal(v, o[[1, 2, 0]])
    assert np.array_equal(q, o) and np.array_equal(k, o)
    overlaps = (p.fractions * o) @ o.T
    assert np.allclose(overlaps, np.eye(3), atol=1e-15)
    drawn = (p.fractions * v) @ o.T  # (a, b): weight of o_a after a token o_b
    assert np.array_equal(drawn.argmax(axis=0), [2, 0, 1])


def test_random_patterns_depend_on_the_key_only():
    build = lambda seed: dmft.random_independent(
        jax.random.key(seed), n_patterns=2, n_sites=50, n_bits=1
    )
    assert np.array_equal(build(1).semantic, build(1).semantic)
    assert build(1).n_classes <= 50
    assert not np.array_equal(build(1).positional, build(2).positional) or not (
        np.array_equal(build(1).fractions, build(2).fractions)
    )


@pytest.mark.parametrize("n_patterns", (1, 2, 3))
def test_correlations_of_a_network_can_be_given_back(n_patterns):
    p = dmft.random_segments(
        jax.random.key(5), n_patterns=n_patterns, n_segments=7, n_bits=1
    )
    given = dmft.correlations(p)
    back = dmft.from_correlations(given)
    again = dmft.correlations(back)
    assert np.allclose(again.pair, given.pair, atol=1e-12)
    assert np.allclose(again.triple, given.triple, atol=1e-12)


@pytest.mark.slow
def test_networks_with_the_same_even_correlations_move_alike():
    p = dmft.random_segments(jax.random.key(0), n_patterns=3, n_segments=9, n_bits=2)
    other = dmft.from_correlations(dmft.correlations(p), p.positional)
    assert not np.array_equal(other.semantic, p.semantic)
    params = dmft.parameters(0.7, 5.0, 0.02)
    orbits = []
    for patterns in (p, other):
        net = dmft.network(patterns, context=4)
        window = np.linspace(-0.3, 0.4, 12).reshape(4, 3)
        state = dmft.from_window(net, params, window, 1)
        orbits.append(dmft.trajectory(net, params, state, steps=200)[1].A)
    # A contracting orbit, so rounding differences stay small.
    assert np.allclose(*orbits, atol=1e-10)


def test_impossible_correlations_are_refused():
    p = dmft.load("poclopez-pe2").patterns
    given = dmft.correlations(p)
    pair = given.pair.copy()
    pair[1, :, 0] = 0.9  # W^v_1 close to three patterns that disagree with one another
    with pytest.raises(ValueError, match=r"kind v, pattern 1, cannot be those of \+-1"):
        dmft.from_correlations(given._replace(pair=pair))
    pair = given.pair.copy()
    pair[0] = [[1, -0.9, -0.9], [-0.9, 1, -0.9], [-0.9, -0.9, 1]]
    with pytest.raises(ValueError, match="output patterns cannot be those"):
        dmft.from_correlations(given._replace(pair=pair))


def test_even_correlations_cover_every_odd_subset():
    p = dmft.random_segments(jax.random.key(1), n_patterns=5, n_segments=9, n_bits=0)
    even = dmft.even_correlations(p)
    assert len(even) == 2**4
    expected = np.sum(p.fractions * p.semantic[0, [0, 2, 4]].prod(0) * p.semantic[3, 1])
    assert even[(0, 2, 4)][3, 1] == pytest.approx(expected, abs=1e-15)


SIGNS = np.ones((4, 1, 2))


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: dmft.site_classes(SIGNS, [0.5, 0.6]), "sum to one; got .* sum 1.1"),
        (lambda: dmft.site_classes(SIGNS, [1.5, -0.5]), "fractions must be at least 0"),
        (lambda: dmft.site_classes(2 * SIGNS), r"patterns are \+1 or -1; got 2"),
        (lambda: dmft.site_classes(SIGNS[:3]), "kinds o, v, q, k; got"),
        (
            lambda: dmft.from_matrices(*3 * [np.ones((1, 2))], np.ones((1, 3))),
            "one shape",
        ),
        (lambda: dmft.load("poclopez-2"), "did you mean 'poclopez-pe2'"),
        (
            lambda: dmft.parameters(1.0, 1, [0.0, 1.0]),
            r"epsilon must lie in \[0, 1\); got 1",
        ),
        (lambda: dmft.cycle(jax.random.key(0), n_patterns=20, n_bits=0), "M <= 12"),
    ],
)
def test_bad_input_says_what_is_allowed(build, message):
    with pytest.raises(ValueError, match=message):
        build()


@pytest.mark.parametrize("name", dmft.presets())
def test_what_is_saved_is_loaded_and_follows_the_schema(name, tmp_path):
    file, path = dmft.load(name), tmp_path / "mine.json"
    dmft.save(path, file)
    again = dmft.load(path)
    for one, other in zip(jax.tree.leaves(file), jax.tree.leaves(again), strict=True):
        np.testing.assert_array_equal(one, other)
    folder = resources.files("statmech_attn.dmft")
    schema = json.loads((folder / "patterns.schema.json").read_text())
    preset = json.loads((folder / "presets" / f"{name}.json").read_text())
    for table in (json.loads(path.read_text()), preset):
        jsonschema.validate(table, schema)
    with pytest.raises(FileExistsError):
        dmft.save(path, file)
    with pytest.raises(ValueError, match="context: must be a whole number"):
        dmft.save(tmp_path / "bad.json", file._replace(context=0))
    assert not (tmp_path / "bad.json").exists()


def test_a_full_disk_keeps_the_old_pattern_file(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    path = tmp_path / "mine.json"
    dmft.save(path, dmft.load("poclopez-pe2"))
    before = path.read_bytes()
    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(storage.StorageError, match="No space left"):
        dmft.save(path, dmft.load("poclopez-pe5"), overwrite=True)
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["mine.json"]


def test_a_damaged_pattern_file_is_named(tmp_path):
    path = tmp_path / "mine.json"
    for text, message in (
        ("{", "mine.json"),
        ("{}", "key 'semantic' is missing"),
        ("[1]", "mine.json"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=message):
            dmft.load(path)
    with pytest.raises(FileNotFoundError, match="absent.json"):
        dmft.load(tmp_path / "absent.json")


ONES = dict.fromkeys(dmft.KINDS, [[1, -1]])


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"semantic": [1, 2]}, r"semantic: must be a table of keys; got \[1, 2\]"),
        ({"semantic": {**ONES, "v": [1, 2]}}, "semantic.v: must be lists of numbers"),
        ({"positional": {**ONES, "k": "x" * 10_000}}, "positional.k: must be lists"),
        ({"fractions": 0.5}, "fractions: must be a list of numbers; got 0.5"),
        ({"start": {"window": [[True]], "next_position": 0}}, "start.window: must be"),
        ({"gamma": "x" * 10_000}, "gamma: must be a finite number"),
        ({"context": True}, "context: must be a whole number"),
    ],
)
def test_a_wrong_value_of_a_pattern_file_is_one_line_with_its_key(
    tmp_path, change, words
):
    table = {"semantic": ONES, "positional": ONES, "context": 1, "epsilon": 0.0}
    table |= {"gamma": 1.0, "fractions": [0.5, 0.5]}
    path = tmp_path / "mine.json"
    text = json.dumps(table)
    path.write_text("\ufeff" + text, encoding="utf-8")
    assert dmft.load(path).context == 1
    path.write_text(json.dumps(table | change))
    with pytest.raises(ValueError, match=words) as error:
        dmft.load(path)
    assert "\n" not in str(error.value) and len(str(error.value)) < 300 + len(str(path))
    path.write_text('{"gamma": 4.0, ' + text[1:])
    with pytest.raises(ValueError, match="key 'gamma' is there twice"):
        dmft.load(path)
