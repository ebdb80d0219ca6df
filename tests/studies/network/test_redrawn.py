"""Studies of a network of which spins are redrawn or copied: the key redrawn."""

import numpy as np
import pytest

from statmech_attn import comparison, dmft, studies
from statmech_attn.studies.network import models
from statmech_attn.studies.network.tables import NetworkSpec


THEORY = {
    "kind": "trajectory",
    "parameters": {"beta": 0.7, "gamma": 4.0, "redrawn": 0.4},
    "run": {"start": "token", "steps": 8, "noise": True},
}
SPINS = {
    "kind": "monte-carlo",
    "parameters": {"beta": 0.7, "gamma": 4.0, "redrawn": 0.4},
    "run": {"start": "token", "steps": 8, "n_spins": [3000, 300_000], "runs": 400},
}
SCAN = {
    "kind": "bifurcation",
    "parameters": {"beta": 1.255, "redrawn": [0.5, 0.7, 1.0]},
    "run": {"start": "token", "transient": 4000, "steps": 2000, "exponents": 2},
}
BOUNDARY = {
    "kind": "continuation",
    "parameters": {"beta": 1.255, "redrawn": {"start": 0.4, "stop": 0.7}},
    "run": {"start": "token", "transient": 20_000},
}


def with_parameters(tree, **changes):
    parameters = {n: x for n, x in (tree["parameters"] | changes).items() if x}
    return studies.parse(tree | {"parameters": parameters})


def test_a_key_of_one_gives_the_bits_of_no_key():
    silent = THEORY | {"run": {"start": "token", "steps": 30}}
    with_key, without = (
        studies.run(with_parameters(silent, redrawn=redrawn, gamma=None))
        for redrawn in (1.0, None)
    )
    np.testing.assert_array_equal(with_key.A, without.A)
    assert float(with_key.redrawn) == 1.0 and "redrawn" not in without


def test_a_stretched_network_has_a_longer_window_and_slower_positions():
    made = models.model(NetworkSpec(stretch=3))
    plain = models.model(NetworkSpec())
    assert made.net.context == 12
    np.testing.assert_array_equal(made.net.positional[::3], plain.net.positional)
    np.testing.assert_array_equal(made.net.positional[2::3], plain.net.positional)


@pytest.mark.parametrize(
    ("tree", "message"),
    [
        (THEORY | {"parameters": {"beta": 1.0, "redrawn": 0.0}}, "in .0, 1.; got 0"),
        (SPINS | {"run": SPINS["run"] | {"method": "spins"}}, 'method = "collapsed"'),
        (
            {"kind": "basins", "parameters": {"beta": 1.0, "redrawn": 0.5}},
            "parameters.redrawn: unknown key",
        ),
        (
            BOUNDARY
            | {
                "parameters": {"beta": {"start": 1.0, "stop": 1.3}},
                "curves": {"parameter": "redrawn", "start": 0.4, "stop": 1.0},
            },
            "curves in redrawn begin at a number parameters.redrawn",
        ),
        (
            BOUNDARY
            | {"parameters": {"beta": 1.2, "redrawn": {"start": 0.0, "stop": 1.0}}},
            "redrawn must lie in .0, 1.; got 0",
        ),
        # Before any program is made, and not by the point that has the value.
        (SCAN | {"parameters": {"beta": 1.0, "redrawn": [1, 2]}}, "0, 1.; got 2"),
        (
            SCAN | {"parameters": {"beta": 1.0, "epsilon": [0.02, 1.5]}},
            r"epsilon must lie in .0, 1\); got 1.5",
        ),
    ],
)
def test_mistakes_are_one_line_that_says_what_is_allowed(tree, message):
    with pytest.raises(ValueError, match=message):
        studies.work(studies.parse(tree))


@pytest.mark.slow
@pytest.mark.statistical
def test_theory_and_spins_agree_where_spins_are_copied():
    theory, spins = (studies.run(studies.parse(tree)) for tree in (THEORY, SPINS))
    verdict = comparison.compare(theory, spins)
    assert comparison.VERDICTS[int(verdict.verdict[0])] in ("agrees", "bias_only")
    others = studies.run(with_parameters(THEORY, redrawn=None))
    with pytest.raises(ValueError, match="redrawn differs: theory has 1.0, simulation"):
        comparison.compare(others, spins)
    wrong = studies.run(with_parameters(THEORY, redrawn=0.45))
    wrong = wrong.assign_coords(redrawn=0.4)
    verdict = comparison.compare(wrong, spins)
    assert comparison.VERDICTS[int(verdict.verdict[0])] == "differs"


@pytest.mark.slow
def test_rest_loses_its_stability_where_orbits_begin_to_move():
    """On both sides of the bifurcation, by iteration alone."""
    found = studies.run(studies.parse(BOUNDARY))
    birth = float(found.special_redrawn[0])
    assert birth == pytest.approx(0.63506292, abs=1e-8)
    file = dmft.load("poclopez-pe2")
    net = dmft.network(file.patterns, context=file.context)
    for redrawn, moves in ((birth - 0.01, False), (birth + 0.01, True)):
        params = dmft.parameters(1.255, file.gamma, file.epsilon, redrawn)
        state = dmft.advance(net, params, dmft.from_row(net, params, 0), 40_000)
        _, seen = dmft.trajectory(net, params, state, steps=400)
        turns = np.asarray(seen.m_o_se[::4])
        assert (np.ptp(turns, axis=0).max() > 1e-3) == moves
