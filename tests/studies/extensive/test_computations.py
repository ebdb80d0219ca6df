"""Studies of patterns growing with N: their keys are arguments of the library."""

from typing import Any

import jax
import numpy as np
import pytest

from statmech_attn import dmft, montecarlo, studies
from statmech_attn.dmft import extensive


NETWORK = {"patterns": "cycle", "n_patterns": 3, "n_bits": 2, "context": 2, "seed": 0}
PARAMETERS = {"alpha": [0.1, 0.3], "beta": 4.0, "gamma": 2.0, "epsilon": 0.1}
KINDS = {"patterns": "correlated", "oq": 0.3, "qk": 0.2}
COMMON = {"network": NETWORK, "ensemble": KINDS}
RECALL = {"row": 1, "overlap": 0.8, "steps": 3, "seed": 5}
THEORY = COMMON | {"kind": "extensive", "parameters": PARAMETERS, "run": RECALL}
SPINS = THEORY | {
    "kind": "extensive-simulation",
    "run": RECALL | {"n_spins": [160, 80], "samples": 2, "runs": 3},
}
CAPACITY = {
    "kind": "capacity",
    "network": NETWORK | {"n_patterns": 1, "n_bits": 0},
    "parameters": {"beta": [2.0, np.inf]},
    "run": {"contexts": [1]},
}
OTHERS = extensive.correlated(oq=0.3, qk=0.2)


def work(table, **changes) -> Any:
    return studies.work(studies.parse(table | changes))


def patterns(n_patterns=3, n_bits=2):
    return dmft.cycle(jax.random.key(0), n_patterns=n_patterns, n_bits=n_bits)


def test_a_study_of_the_theory_is_points_of_the_library():
    net = dmft.network(patterns(), context=2)
    recall = extensive.SolvedRecall(row=1, overlap=0.8, steps=3, error=0.02)
    key = jax.random.key(5)
    points = extensive.OrderParameters(net, OTHERS, recall, **PARAMETERS, key=key)
    study = work(THEORY, run=RECALL | {"error": 0.02})
    assert study.identity() == points.identity()
    assert points.single == ("beta", "gamma", "epsilon")


def test_a_study_of_spins_is_points_of_the_library():
    drawn = patterns()
    points = montecarlo.ExtensiveSamples(
        dmft.network(drawn, context=2),
        drawn,
        OTHERS,
        montecarlo.SampledRecall(row=1, overlap=0.8, steps=3, samples=2, runs=3),
        n_spins=[80, 160],
        **PARAMETERS,
        key=jax.random.key(5),
    )
    assert work(SPINS).identity() == points.identity()


def test_a_study_of_the_capacity_is_points_of_the_library():
    one = patterns(n_patterns=1, n_bits=0)
    points = extensive.capacities(
        dmft.network(one, context=2),
        one,
        extensive.cycle(),
        extensive.Retrieval(moving=True, lags=4),
        beta=[2.0, np.inf],
        gamma=[0.0, 1.0],
        contexts=[1, 3],
    )
    study = work(
        CAPACITY,
        parameters={"beta": [2.0, np.inf], "gamma": [0.0, 1.0]},
        run={"moving": True, "lags": 4, "contexts": [1, 3]},
    )
    assert study.identity() == points.identity()


def test_what_a_study_leaves_out_is_taken_from_its_pattern_file():
    parameters = {"alpha": 0.1, "beta": 4.0}
    study = work(THEORY, network={"patterns": "poclopez-pe2"}, parameters=parameters)
    file = dmft.load("poclopez-pe2")
    values = {"gamma": file.gamma, "epsilon": file.epsilon}
    assert study.parameters(0) == parameters | values
    assert study.single == ("beta", "gamma", "epsilon"), "alpha is an axis"


@pytest.mark.parametrize(
    ("ensemble", "words"),
    [
        ({}, "cycle"),
        ({"patterns": "independent"}, "independent"),
        (KINDS, "oq = 0.3, qk = 0.2"),
        (
            {"patterns": "identical"},
            "ov = 1, oq = 1, ok = 1, vq = 1, vk = 1, qk = 1",
        ),
    ],
)
def test_ensembles_by_name(ensemble, words):
    assert work(THEORY, ensemble=ensemble).attributes()["ensemble"] == words


def with_run(table, **changes):
    return table | {"run": table["run"] | changes}


def with_parameters(**changes):
    return THEORY | {"parameters": PARAMETERS | changes}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (with_parameters(alpha=-0.1), "alpha must be >= 0; got -0.1"),
        (with_parameters(beta=-1.0), "parameters.beta"),
        (with_parameters(beta=float("nan")), "parameters.beta"),
        (
            THEORY | {"ensemble": {"patterns": "correlated", "ov": 1, "oq": 1}},
            "correlations ov = 1, .* cannot be those of",
        ),
        (
            THEORY | {"ensemble": {"patterns": "cycle", "ov": 0.5}},
            "ov has no use with patterns = 'cycle'",
        ),
        (
            THEORY | {"ensemble": {"patterns": "correlated", "ov": 2.0}},
            "ensemble.ov",
        ),
        (with_run(THEORY, row=3), "row must be below the number of patterns, 3"),
        (with_run(THEORY, error=0.0), "run.error"),
        (with_run(SPINS, samples=1), "run.samples"),
        (
            with_run(CAPACITY, at_rest=True, moving=True),
            "at_rest and moving exclude each other",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(table, words):
    with pytest.raises(ValueError, match=words) as caught:
        work(table)
    assert "\n" not in str(caught.value)
