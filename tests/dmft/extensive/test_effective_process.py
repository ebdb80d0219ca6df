import re

import jax
import numpy as np
import pytest

from statmech_attn import statistics
from statmech_attn.dmft import extensive


PARTLY = extensive.correlated(ov=0.6, oq=0.3, ok=0.1, vq=0.2, vk=0.4, qk=0.5)
KEY = jax.random.key(7)
POPULATION = 2**12


def problem_of(net, ensemble):
    return extensive.loaded_network(
        net, ensemble, alpha=0.2, beta=1.2, gamma=5.0, epsilon=0.1
    )


@pytest.fixture(scope="module")
def partly(net):
    problem = problem_of(net, PARTLY)
    given = {"steps": 3, "key": KEY, "population": POPULATION}
    return problem, extensive.sampled(problem, net.output[0], error=5e-3, **given)


def assert_agrees(found, reference):
    """All order parameters within as many standard errors as chance allows."""
    populations = found.trajectories // POPULATION
    known = [
        (x, s, y)
        for x, s, y in zip(
            jax.tree.leaves(found.value),
            jax.tree.leaves(found.error),
            jax.tree.leaves(reference.value),
            strict=True,
        )
    ]
    x, s, y = (np.concatenate([np.ravel(part[i]) for part in known]) for i in range(3))
    sure = s < 1e-12
    assert np.allclose(x[sure], y[sure], rtol=0, atol=1e-9)
    z = np.abs(x - y)[~sure] / s[~sure]
    assert z.size > 50
    assert z.max() < statistics.threshold(z.size, populations)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("ensemble", [PARTLY, extensive.identical()])
def test_trajectories_agree_with_sums_over_histories(net, partly, ensemble, histories):
    problem, found = partly
    if ensemble is not PARTLY:
        problem = problem_of(net, ensemble)
        found = extensive.sampled(
            problem, net.output[0], steps=3, key=KEY, population=POPULATION
        )
    assert_agrees(found, histories.summed(problem, net.output[0], steps=3, nodes=14))


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize(("steps", "alpha", "nodes"), [(6, 0.2, 6), (8, 0.03, 3)])
def test_many_steps_agree_with_sums_over_histories(net, steps, alpha, nodes, histories):
    """Few nodes are left for a direction of the noise, which must be the weaker."""
    problem = extensive.loaded_network(
        net, PARTLY, alpha=alpha, beta=1.0, gamma=5.0, epsilon=0.1
    )
    start = net.output[0]
    reference = histories.summed(problem, start, steps=steps, nodes=nodes)
    largest = max(float(np.max(x)) for x in jax.tree.leaves(reference.error))
    assert largest < 1e-3
    found = extensive.sampled(
        problem, start, steps=steps, key=KEY, population=POPULATION
    )
    assert_agrees(found, reference)


def test_populations_are_added_until_the_error_is_reached(net, partly):
    problem, found = partly
    assert found.reached and found.trajectories > 8 * (POPULATION - 4)
    assert max(found.error.C.max(), found.error.m_o_se.max()) < 5e-3
    few = extensive.sampled(
        problem,
        net.output[0],
        steps=3,
        key=KEY,
        population=POPULATION,
        error=1e-6,
        most=8,
    )
    assert not few.reached and "no" in repr(few)
    assert found.jitter < 1e-12 and found.positive


def test_the_solver_is_that_of_the_ensemble(net, partly):
    problem, _ = partly
    with pytest.raises(ValueError, match="give a JAX key"):
        extensive.solve(problem, net.output[0], steps=3)


@pytest.mark.parametrize(
    "given, words",
    [
        ({"error": 0.0}, "error must be above 0; got 0.0."),
        ({"most": 2}, "most must be at least 8; got 2."),
        ({"population": 2}, "population must be at least 2 for each of"),
        ({"steps": 10**4, "population": 10**9}, "10000 steps take"),
    ],
)
def test_bad_input_is_refused(net, partly, given, words):
    problem, _ = partly
    with pytest.raises(ValueError, match=re.escape(words)):
        extensive.sampled(problem, net.output[0], **{"steps": 3, "key": KEY} | given)


@pytest.mark.slow
@pytest.mark.statistical
def test_responses_from_the_noise_are_those_of_the_score(net, histories):
    """Before the spins are deterministic, in a run that ends without thermal noise."""
    given = {"alpha": 0.2, "gamma": 5.0, "epsilon": 0.1}
    beta = [1.2, 1.2, 1.2, np.inf]
    problem = extensive.loaded_network(net, PARTLY, beta=beta, **given)
    found = extensive.sampled(
        problem, net.output[0], steps=4, key=KEY, population=POPULATION, error=5e-3
    )
    warm = extensive.loaded_network(net, PARTLY, beta=1.2, **given)
    reference = histories.summed(warm, net.output[0], steps=3, nodes=14)
    G, error = found.value.G[:4, :3], found.error.G[:4, :3]
    later = np.tril_indices(4, -1, 3)
    z = np.abs(G - reference.value.G[:, :3])[later] / error[later]
    assert z.size == 6 and np.all(error[later] < 0.05)
    assert z.max() < statistics.threshold(z.size, found.trajectories // POPULATION)


@pytest.mark.slow
@pytest.mark.statistical
def test_deterministic_trajectories_agree_with_sums_over_histories(net, histories):
    """With self-interaction, G included."""
    problem = extensive.loaded_network(
        net, PARTLY, alpha=0.2, beta=np.inf, gamma=5.0, epsilon=0.1
    )
    found = extensive.sampled(
        problem,
        net.output[0],
        steps=3,
        key=KEY,
        population=POPULATION,
        error=5e-3,
    )
    assert_agrees(found, histories.summed(problem, net.output[0], steps=3))
