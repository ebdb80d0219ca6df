"""Native programs: JAX's numbers, the same bits for every width, and refusals."""

import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import dmft, dynamics, native, storage
from statmech_attn.batches import Compiled, Stage
from statmech_attn.dynamics import System
from statmech_attn.dynamics.diagrams.stages.lanes import Points
from statmech_attn.dynamics.exponents import frames
from statmech_attn.dynamics.options import Plan, WITHOUT_SECTION
from statmech_attn.native import machine_code


pytest.importorskip("llvmlite", exc_type=ImportError)
processor = pytest.importorskip("statmech_attn.native.processor", exc_type=ImportError)
PER_STEP = 1e-13


def of_lanes(function, *arguments, lanes=8):
    """A function of arrays with lanes, natively."""
    example = lambda n: tuple(np.zeros((*np.shape(x)[:-1], n)) for x in arguments)
    return native.Native(function, example, lanes=lanes)(*arguments)


def test_integers_and_choices_are_those_of_jax():
    """Indices, remainders, selections, records of a loop, sums of rows."""

    def function(x):
        def body(carry, i):
            y, clock = carry
            row = jax.lax.dynamic_index_in_dim(y, clock, 0, False)
            y = jax.lax.dynamic_update_index_in_dim(y, row % 0.7 - 0.1, clock, 0)
            return (jnp.where(y > 0.5, y, -y), (clock + i) % 3), y[::-1].max(axis=0)

        (y, clock), record = jax.lax.scan(body, (x, jnp.array(1)), jnp.arange(5))
        low = jax.lax.cond(clock > 1, jnp.minimum, jnp.maximum, y[0], y[2])
        return jnp.sum(y[jnp.array([2, 0])], axis=0), low, jnp.sign(record), clock

    x = np.random.default_rng(0).uniform(-1, 1, (3, 8))
    for result, expected in zip(of_lanes(function, x), function(x), strict=True):
        np.testing.assert_allclose(result, expected, rtol=1e-15, atol=1e-15)


def test_a_loop_ends_in_every_lane_where_it_does_alone():
    """Numbers of lanes that are done stay, as those of a lane that never begins."""

    def halved(x):
        goes_on = lambda carry: jnp.abs(carry[0]).max() > 0.1
        halve = lambda carry: (carry[0] / 2, carry[1] + 1)
        return jax.lax.while_loop(goes_on, halve, (x, 0))

    x = np.random.default_rng(0).uniform(-1, 1, (3, 11)) * 2.0 ** np.arange(-5, 6)
    sides = dict(in_axes=-1, out_axes=(-1, 0))
    values, count = of_lanes(jax.vmap(halved, **sides), x)
    assert count.tolist() == [int(halved(column)[1]) for column in x.T]
    assert len(set(count.tolist())) > 5 and min(count) == 0
    np.testing.assert_array_equal(values, x / 2.0**count)
    each = jax.vmap(jax.vmap(halved, **sides), in_axes=1, out_axes=(1, 0))
    with pytest.raises(native.Unsupported, match="another step in each part"):
        of_lanes(each, np.ones((3, 2, 11)))


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (lambda x: x - jnp.mean(x, axis=-1, keepdims=True), "lanes"),
        (lambda x: x * jnp.arange(x.shape[-1]), "lanes"),
        (lambda x: x.T @ x, "lanes"),
        (lambda x: x[..., ::-1], "lanes"),
        (lambda x: x.reshape(-1), "lanes"),
        (lambda x: jnp.sort(x, axis=0), "sort"),
        (lambda x: x.astype(jnp.float32), "float32"),
    ],
)
def test_what_mixes_lanes_or_is_not_known_is_refused(function, reason):
    with pytest.raises(native.Unsupported, match=reason):
        of_lanes(function, np.zeros((2, 8)))


@pytest.mark.parametrize("reverse", [False, True])
def test_short_sums_over_rows_are_written_out(reverse):
    """The rows themselves choose what is added: known while the program is made."""

    def function(x):
        places = jnp.arange(6).reshape(3, 2)

        def add(total, row):
            return total / 2 + x[row].sum(axis=0), None

        return jax.lax.scan(add, x[0], places, reverse=reverse)[0]

    x = np.random.default_rng(0).uniform(-1, 1, (6, 8))
    x = jnp.asarray(x)
    np.testing.assert_allclose(of_lanes(function, x), function(x), rtol=1e-14)


@pytest.fixture(scope="module")
def points():
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(np.linspace(0.9, 1.5, 24), file.gamma, file.epsilon)
    state = dmft.advance(net, params, dmft.from_checkpoint(net, params, file), 50)
    return net, Points(*jax.tree.map(np.asarray, (params, state)))


def arguments(points, *rest):
    net, points = points
    return lambda lanes: (net, *points.take(np.zeros(lanes, int)), *rest)


@pytest.fixture(scope="module")
def advance(points):
    examples = arguments(points, jnp.array(0))
    return {n: native.Native(dmft.advance, examples, 1, n) for n in (4, 8)}


def difference(one, other):
    pairs = zip(jax.tree.leaves(one), jax.tree.leaves(other), strict=True)
    return max(float(np.max(np.abs(np.asarray(a, float) - b))) for a, b in pairs)


def test_bits_do_not_depend_on_lanes_or_blocks(points, advance):
    """800 steps, in chaos too, where every bit grows."""
    net, all = points
    whole = advance[8](net, *all, np.array(800))
    some = np.array([23, 3, 3, 17, 5])
    for program in advance.values():
        part = program(net, *all.take(some), np.array(800))
        assert difference(part, Points({}, whole).take(some).starts) == 0


def test_a_turn_with_a_frame_is_that_of_jax(points):
    check_turn(*points, exponents=2, spacing=1)


@pytest.mark.slow
def test_a_turn_with_twelve_columns_is_that_of_jax(points):
    check_turn(*points, exponents=12, spacing=4)


@pytest.mark.slow
def test_a_turn_with_a_whole_frame_is_that_of_jax():
    """With its determinant, and rounding errors pushed along over two steps."""
    sizes = dict(n_patterns=2, n_sites=16, n_bits=1)
    net = dmft.network(dmft.random_independent(jax.random.key(1), **sizes), context=1)
    params = dmft.parameters(np.linspace(0.5, 2, 16), 3.0, 0.1)
    state = dmft.advance(net, params, dmft.from_row(net, params, 0), 2)
    batch = Points(*jax.tree.map(np.asarray, (params, state)))
    check_turn(net, batch, exponents=2, spacing=2)


def check_turn(net, batch, exponents, spacing):
    def turn(net, params, state):
        system = dmft.TangentMap(net, params)
        lifted, frame = frames.start_frame(system, state, exponents)
        after = frames.turn(system, lifted, frame, spacing)
        leading = after.frame[:, : min(exponents, 3)]  # others may be rounding
        return after.lifted.state, leading, after.lengths, after.log_det

    examples = arguments((net, batch))
    result = native.Native(turn, examples, 1)(net, *batch)
    expected = Compiled(turn, *examples(batch.size), shared=1)(net, *batch)
    for one, other in zip(
        jax.tree.leaves(result), jax.tree.leaves(expected), strict=True
    ):
        np.testing.assert_allclose(one, other, rtol=1e-11, atol=spacing * PER_STEP)


@pytest.fixture
def store(tmp_path):
    """An empty store of programs for one test."""
    name = "jax_compilation_cache_dir"
    before = getattr(jax.config, name)
    jax.config.update(name, str(tmp_path))
    yield tmp_path / machine_code.FOLDER
    jax.config.update(name, before)


def logistic(x):
    return 3.7 * x * (1 - x)


def test_machine_code_is_compiled_once(store, monkeypatch):
    """A second program, as of another process, is read; another text is not it."""
    x = np.linspace(0, 1, 8)
    expected = of_lanes(logistic, x)
    monkeypatch.setattr(processor, "optimised", lambda *_: pytest.fail("compiled"))
    assert (of_lanes(logistic, x) == expected).all()
    assert len(list(store.iterdir())) == 1
    with pytest.raises(pytest.fail.Exception, match="compiled"):
        of_lanes(lambda x: 3.6 * x * (1 - x), x)


def test_code_of_another_processor_is_another(store, monkeypatch):
    of_lanes(logistic, np.zeros(8))
    monkeypatch.setattr(processor.llvm, "get_host_cpu_name", lambda: "x86-64")
    of_lanes(logistic, np.zeros(8))
    assert len(list(store.iterdir())) == 2


@pytest.mark.parametrize("damage", [lambda x: x[:100], lambda x: x[:-1] + b"?"])
def test_damaged_machine_code_is_compiled_anew(store, damage):
    x = np.linspace(0, 1, 8)
    expected = of_lanes(logistic, x)
    (entry,) = store.iterdir()
    whole = entry.read_bytes()
    entry.write_bytes(damage(whole))
    with pytest.warns(UserWarning, match="is damaged, .* made anew"):
        assert (of_lanes(logistic, x) == expected).all()
    assert entry.read_bytes() == whole


def test_without_a_store_that_can_be_written_programs_run(store):
    store.write_text("a file where the folder would be")
    assert of_lanes(logistic, np.full(8, 0.5)).tolist() == [3.7 / 4] * 8


def test_without_llvmlite_it_is_refused(monkeypatch):
    monkeypatch.setitem(sys.modules, "statmech_attn.native", None)
    with pytest.raises(ValueError, match="needs llvmlite: pip install llvmlite"):
        Stage(None, lambda lanes: (np.zeros(lanes),), 8, native=lambda x: x)


def test_a_function_that_cannot_be_written_says_what_to_do():
    with pytest.raises(ValueError, match='it uses sort; use "xla"'):
        Stage(None, lambda n: (np.zeros((3, n)),), 8, native=lambda x: jnp.sort(x, 0))


@pytest.mark.slow
def test_a_diagram_of_another_compiler_is_another_diagram(tmp_path):
    """Circle maps: the same phases, and no file is taken for the other's."""

    def circle(x, p):
        turn = p["omega"] - p["k"] / (2 * jnp.pi) * jnp.sin(2 * jnp.pi * x)
        return (x + turn) % 1.0

    seen = System(circle, observe=lambda x: jnp.cos(2 * jnp.pi * x)[None])
    grid = {"omega": np.linspace(0.2, 0.5, 12), "k": 0.9}
    plan = dict(transient=1000, steps=2000, exponents=1, **WITHOUT_SECTION)
    scans = {}
    for compiler in ("xla", "llvm"):
        plan["compiler"] = compiler
        scans[compiler] = dynamics.diagram(
            seen,
            grid,
            jnp.array(0.1),
            Plan(**plan),
            file=tmp_path / f"{compiler}.h5",
        )
    assert (scans["xla"].phase == scans["llvm"].phase).all()
    assert (scans["xla"].period == scans["llvm"].period).all()
    np.testing.assert_allclose(scans["llvm"].lyapunov, scans["xla"].lyapunov, atol=1e-5)
    with pytest.raises(storage.StorageError, match="compiler"):
        dynamics.diagram(
            seen, grid, jnp.array(0.1), Plan(**plan), file=tmp_path / "xla.h5"
        )


def test_a_stage_hands_the_results_of_a_native_program_to_xla():
    stage = Stage(
        lambda x, top: jnp.sort(x)[-1] - top,  # XLA sorts over lanes
        lambda lanes: (np.zeros((2, lanes)),),
        16,
        native=lambda x: (x[0] * x[1], jnp.array(1.0)),
    )
    x = np.arange(32.0).reshape(2, 16)
    assert stage(16, x) == 15 * 31 - 1
