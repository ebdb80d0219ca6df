"""Results say their numbers: in text, in a table, in a data set, in sentences."""

import inspect
import pickle
import re
import sys

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr, dmft, dynamics, montecarlo, presentation, storage
from statmech_attn.dmft import extensive
from statmech_attn.dynamics import (
    classify,
    continuation,
    EscapeRate,
    PHASES,
    Rotation,
    System,
)
from statmech_attn.labels import Variable
from statmech_attn.storage import schema


GROWTH = jnp.array([2.5, 3.2, 3.9, 3.0])


def logistic(x, r):
    return r * x * (1 - x)


@pytest.fixture(scope="module")
def verdict_at():
    def at(r):
        return classify(logistic, jnp.array(0.3), r, steps=2000, max_doublings=0)

    return at


@pytest.fixture(scope="module")
def batch(verdict_at):
    """As users make it, the batch on the first axis."""
    return jax.vmap(verdict_at)(GROWTH)


@pytest.mark.slow
def test_every_verdict_of_a_batch_has_a_sentence_with_its_numbers(batch):
    fixed, periodic, chaotic, undetermined = batch.explain()
    assert fixed.startswith("fixed: the orbit recurs after 1 step, to ")
    assert "λ_1 = -0.693147 nat/step is negative" in fixed
    assert periodic.startswith("periodic: the orbit recurs after 2 steps, to ")
    assert chaotic.startswith("chaotic: λ_1 = 0.5") and "0-1 test K = 0.99" in chaotic
    assert (
        undetermined.startswith("undetermined: ") and "standard errors" in undetermined
    )
    assert PHASES[batch.phase].tolist() == [
        "fixed",
        "periodic",
        "chaotic",
        "undetermined",
    ]


def test_a_batch_on_the_first_axis_is_one_on_the_last(verdict_at, batch):
    last = jax.vmap(verdict_at, out_axes=-1)(GROWTH)
    assert last.explain() == batch.explain() and repr(last) == repr(batch)
    assert last.to_dataset().identical(batch.to_dataset())
    assert last.spectrum.kaplan_yorke.tolist()[:2] == [0, 0]
    assert np.array_equal(
        last.spectrum.running, np.moveaxis(batch.spectrum.running, 0, -1)
    )


def test_text_and_table_have_numbers_with_errors_and_words(batch):
    text, table = repr(batch), batch._repr_html_()
    for words in ("fixed 1, periodic 1", "-0.693147, ", "nat / step"):
        assert words in text and words in table
    assert "Array" not in text and len(text) < 1000


class Periods(eqx.Module):
    period: np.ndarray
    _shown = (Variable("period", "", "period, 0 if none", "token", "p"),)
    __repr__, _repr_html_, to_dataset = presentation.METHODS


@pytest.mark.parametrize(
    ("periods", "line"),
    [
        (0, "period  none"),
        (1, "period, 0 if none  1 token"),
        ([0, 2], "period, 0 if none  0, 2 tokens"),
    ],
)
def test_what_there_is_none_of_is_said_in_a_word(periods, line):
    assert repr(Periods(np.array(periods))) == f"Periods\n  {line}"


def test_results_under_a_trace_show_their_shapes(batch):
    seen = []
    jax.jit(lambda c: seen.append(repr(c)))(batch)
    assert "f64[4]" in seen[0] and repr(jax.eval_shape(lambda: batch)) != seen[0]


def test_the_data_set_of_a_result_is_written_and_read_back(batch, tmp_path):
    dataset = batch.to_dataset()
    assert dataset.lyapunov.dims == ("batch", "exponent")
    assert dataset.phase.attrs["flag_meanings"].split() == list(PHASES)
    path = tmp_path / "verdicts.h5"
    storage.write(path, dataset, study="", kind=dataset.attrs["kind"])
    assert np.array_equal(storage.read(path).lyapunov, batch.spectrum.exponents)


def swap(x):
    return jnp.stack([0.9 * x[1], -0.9 * x[0]])


LAYERS = System(swap, unit="layer")
POINT = jnp.array([0.3, 0.1])
OF_LAYERS = {
    "spectrum": lambda: dynamics.lyapunov_spectrum(LAYERS, POINT, steps=16),
    "cycle": lambda: dynamics.cycle_spectrum(LAYERS, 0 * POINT, period=1),
    "windows": lambda: dynamics.finite_time_exponents(
        LAYERS, POINT, window=2, count=4
    ).merged(2),
    "shares": lambda: dynamics.growth_shares(
        dynamics.looped([{"swap": lambda h, p: swap(h) - h}], unit="layer"),
        POINT,
        steps=16,
    ),
    "alignment": lambda: dynamics.gali(LAYERS, POINT, samples=4, every=1),
    "attractors": lambda: dynamics.find_attractors(LAYERS, POINT[None]),
    "orbits": lambda: dynamics.settle(LAYERS, POINT[None]).take(np.array([0])),
    "survival": lambda: dynamics.survival(
        np.array([1, 2]), np.array([True, True]), unit="layer"
    ),
    "rate": lambda: dynamics.escape_rate(
        np.array([3, 5, 8]), np.array([True, True, False]), unit="layer"
    ),
    "rotation": lambda: dynamics.curve_rotation(LAYERS, POINT, steps=8),
}


# Of maps, as the others are.
SECOND = {"windows", "shares", "alignment", "orbits", "rotation"}


@pytest.mark.parametrize(
    "result",
    [
        pytest.param(result, marks=pytest.mark.slow if name in SECOND else (), id=name)
        for name, result in OF_LAYERS.items()
    ],
)
def test_results_of_a_system_have_its_word_for_a_step(result):
    """In their text and in their data set, never the word step."""
    shown = result()
    units = {x.attrs.get("unit_name", "1") for x in shown.to_dataset().values()}
    assert any("layer" in unit for unit in units)
    assert not any("step" in unit for unit in units)
    assert " layer" in repr(shown) and "/ step" not in repr(shown)


@pytest.mark.slow
def test_rates_of_a_flow_are_per_unit_of_time():
    decay = lambda x: -x
    rates = dynamics.flow_spectrum(decay, jnp.ones(1), time=8.0, substeps=5)
    assert "-1 nat / unit of time" in repr(rates)
    assert rates.steps == 32 and "8 unit of time" in repr(rates)
    of_steps = dynamics.flow(decay, time=0.5, substeps=5)
    assert "nat / 0.5 units of time" in repr(
        dynamics.lyapunov_spectrum(of_steps, jnp.ones(1), steps=16)
    )
    assert of_steps.strobed(4).unit == "4 times 0.5 units of time"


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (EscapeRate(0.0612, 0.0131, 20, 320.0, 0.0, -1.4), "0.06 ± 0.01 nat / step"),
        (
            Rotation(
                jnp.array([0.25, 0.5]), jnp.array([1e-4, 2e-3]), jnp.array([0, 1])
            ),
            "0.2500 ± 0.0001, 0.500 ± 0.002 turn / step",
        ),
        (dmft.load("poclopez-pe2"), "context length"),
        (bpkr.heads_from_products([np.zeros((2, 3, 3))]), "Heads per layer: 2; W of 3"),
    ],
)
def test_results_print_short_and_say_their_numbers(result, words):
    assert words in repr(result) and len(repr(result)) < 700


@pytest.mark.parametrize(
    ("value", "error", "text"),
    [
        (1.23456, 0.001, "1.235 ± 0.001"),
        (0.636, 0.0096, "0.64 ± 0.01"),
        (-0.0212031770069, 1e-13, "-0.0212032"),  # six digits at most
        (1.23456789, 2e-5, "1.23457 ± 2e-05"),
        (1.23456789, 2e-6, "1.23457"),
        (0.0, 3e-9, "0.000000000 ± 3e-09"),
        (1234.5, 20, "1230 ± 20"),
        (1e-7, 2e-9, "1.00e-07 ± 2e-09"),
        (np.inf, np.nan, "∞"),
        (np.nan, np.nan, "NaN"),
        (2.0, 0.0, "2"),
        (1.0, 6e-17, "1"),  # rounding of values that are all the same
        (0.5, 0.2, "0.5 ± 0.2"),
        (-0.0008, 0.1, "0.0 ± 0.1"),
    ],
)
def test_a_number_has_the_digits_that_its_error_leaves(value, error, text):
    assert presentation.quantity(value, error) == text


def test_what_an_orbit_is_made_of_shows_its_numbers():
    """Not the shapes of its arrays, except while JAX traces it."""
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    params = dmft.parameters(1.28, file.gamma, file.epsilon)
    start = dmft.from_row(net, params, 0)
    seen = []
    state, observed = jax.eval_shape(
        lambda s: (seen.append(repr(s)), dmft.trajectory(net, params, s, steps=2))[1],
        start,
    )
    assert "f64[4,3]" in seen[0] and "(2, 3)" in repr(observed)
    for value, numbers in (
        (net, "context length                 4 tokens"),
        (params, "inverse temperature of the output  1.28\n"),
        (start, "tokens in the window                 1 token"),
    ):
        assert numbers in repr(value) and "[" not in repr(value)
        assert numbers.split("  ")[0] in value._repr_html_()


def test_results_know_the_network_and_the_parameters_that_they_are_of():
    """Along the one that varies, where a function was given them."""
    patterns = dmft.site_classes(np.ones((4, 1, 1)))
    net = dmft.network(patterns, context=2)
    params = dmft.parameters([1.0, 2.5], 1.0, 0.0)
    start = dmft.from_row(net, params, 0)
    rate = dmft.entropy_production(net, params, start, steps=16)
    of_beta = rate.to_dataset()
    assert of_beta["mean"].dims == ("beta",)
    assert of_beta.beta.values.tolist() == [1.0, 2.5] and float(of_beta.gamma) == 1.0
    assert of_beta.beta.attrs["long_name"] == dmft.PARAMETERS.variable("beta").long_name
    assert dmft.network_attributes(net).items() <= of_beta.attrs.items()
    schema.validate(of_beta)
    map = lambda x, p: p["r"] * x * (1 - x)
    spectrum = lambda r: dynamics.lyapunov_spectrum(
        map, jnp.array(0.3), {"r": r}, steps=16, blocks=4
    )
    assert float(spectrum(3.2).to_dataset().r) == 3.2
    traced = jax.vmap(spectrum)(GROWTH).to_dataset()
    assert traced.sizes["batch"] == len(GROWTH) and "r" not in traced.coords


def _knows_given(function) -> bool:
    while function is not None:
        name = getattr(getattr(function, "__code__", None), "co_qualname", "")
        if name == "knows_given.<locals>.wrapped":
            return True
        function = getattr(function, "__wrapped__", None)
    return False


def test_every_result_of_a_system_or_network_knows_it():
    """Functions that take one and return what has a data set; others say why not."""
    rooms = dynamics, continuation, dmft, extensive, montecarlo
    own = {  # what the result holds itself
        "cascade": "its parameter is an axis, as are its special points",
        "capacity": "the load is what is found",
        "critical_fluctuations": "the special point is what it is of",
        "diagram": "its parameter is an axis, as are its special points",
    }
    unaware = set()
    for room, name in ((r, name) for r in rooms for name in r.__all__):
        function = getattr(room, name)
        if inspect.isclass(function) or not callable(function):
            continue
        signature = inspect.signature(function)
        words = set(re.findall(r"\w+", str(signature.return_annotation)))
        kinds = [
            kind
            for module in (sys.modules[function.__module__], room)
            for kind in map(vars(module).get, words & vars(module).keys())
            if hasattr(kind, "_shown") and hasattr(kind, "to_dataset")
        ]
        asked = {*presentation.SYSTEMS, *presentation.PARAMETERS}
        if kinds and asked & set(signature.parameters) and not _knows_given(function):
            unaware.add(name)
    assert unaware == set(own)


def test_named_tuples_know_the_parameters_that_they_are_of():
    """One for each start is along the starts; what is made of a result knows them."""
    logistic = lambda x, p: p["r"] * x * (1 - x)
    starts, search = np.array([0.3, 0.4, 0.7]), dynamics.Search(500)
    each = dynamics.settle(logistic, starts, {"r": GROWTH[:3]}, search)
    assert each.to_dataset()["period"].dims == ("r",)
    assert each.to_dataset().r.values.tolist() == list(GROWTH[:3])
    found = dynamics.basins.distinguish(each)
    assert found.to_dataset().label.dims == ("r",)
    cycle = dynamics.cycle_spectrum(logistic, jnp.array(0.5), {"r": 3.2}, period=2)
    assert float(cycle.to_dataset().r) == 3.2
    again = pickle.loads(pickle.dumps(found))
    assert type(again) is dynamics.Attractors and (again.label == found.label).all()
    assert jax.tree.structure(found) == jax.tree.structure(found._replace())


def test_a_problem_of_learning_has_a_data_set():
    problem = bpkr.Problem(
        np.ones((1, 1, 1)), [1.0], heads=(1,), width=9, temperature=1
    )
    assert float(problem.to_dataset().temperature) == 1


def test_a_class_is_named_as_a_kind_of_file():
    assert presentation._words_of("CycleSpectrum") == "cycle-spectrum"
