import itertools

import jax
import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf

from statmech_attn import dmft
from statmech_attn.dmft import extensive


def problem_of(net, ensemble):
    return extensive.loaded_network(
        net, ensemble, alpha=0.2, beta=1.2, gamma=5.0, epsilon=0.1
    )


PARTLY = extensive.correlated(ov=0.6, oq=0.3, ok=0.1, vq=0.2, vk=0.4, qk=0.5)


@pytest.fixture(scope="module")
def partly(net, histories):
    problem = problem_of(net, PARTLY)
    return problem, histories.summed(problem, net.output[0], steps=3, nodes=14)


@pytest.mark.slow
@pytest.mark.parametrize(
    "ensemble", [extensive.cycle(), extensive.correlated(oq=0.5, vk=0.4, qk=0.2)]
)
def test_histories_agree_with_the_closed_recursion(net, ensemble, histories):
    problem = problem_of(net, ensemble)
    summed = histories.summed(problem, net.output[0], steps=3, nodes=14)
    closed = extensive.closed(problem, net.output[0], steps=5)
    assert_begins_as(closed, summed, 1e-5)
    assert float(summed.error.C.max()) < 1e-5


def assert_begins_as(closed, summed, error):
    """The recursion goes on for two tokens, as in its own tests."""
    pairs = zip(
        jax.tree.leaves(summed.value), jax.tree.leaves(closed.value), strict=True
    )
    for by_histories, by_recursion in pairs:
        first = np.asarray(by_recursion)[tuple(map(slice, by_histories.shape))]
        assert np.allclose(by_histories, first, rtol=0, atol=error)


def test_matrices_solve_the_general_equations(partly):
    problem, result = partly
    v, rho, alpha = result.value, problem.ensemble.correlations, 0.2
    P = np.zeros((4, 4))
    for t in range(4):
        for d in range(min(t + 1, 2)):
            P[t, t - d] = 0.9 * v.weights[t, d]
    C, GP = np.asarray(v.C), v.G @ P
    L = np.linalg.inv(np.eye(4) - rho[1, 0] * GP)
    B = [rho[x, 0] * GP @ L for x in range(4)]
    S_qk = rho[2, 3] * C + B[2] @ (rho[1, 3] * C) + rho[2, 1] * C @ B[3].T
    S_qk = S_qk + B[2] @ C @ B[3].T
    assert np.allclose(v.S, L @ C @ L.T, atol=1e-13)
    assert np.allclose(np.tril(v.S_qk), np.tril(S_qk), atol=1e-13)
    assert np.allclose(v.Gamma, alpha * rho[0, 1] * P @ L, atol=1e-13)
    assert np.allclose(v.noise, alpha * P @ L @ C @ L.T @ P.T, atol=1e-13)


def mean_spins(problem, result, start, field):
    """Means of one spin by enumeration, with a field added to h, given its process."""
    v, beta = result.value, 1.2
    z, w = np.polynomial.hermite_e.hermegauss(14)
    factor = np.linalg.cholesky(np.asarray(v.noise)[:3, :3])
    net, total = problem.net, np.zeros(4)
    shares = np.abs(net.weighted[0, 0])
    for c, share in enumerate(shares):
        a = np.asarray(v.A) @ np.asarray(net.output)[:, c]
        nodes = np.array(list(itertools.product(z, repeat=3)))
        weights = np.prod(list(itertools.product(w / w.sum(), repeat=3)), axis=1)
        phi = nodes @ factor.T
        for tail in itertools.product((1.0, -1.0), repeat=3):
            x = np.array([float(start[c]), *tail])
            chance = weights
            for t in range(3):
                h = a[t] + phi[:, t] + np.asarray(v.Gamma)[t, : t + 1] @ x[: t + 1]
                chance = chance * (1 + x[t + 1] * np.tanh(beta * (h + field[t]))) / 2
            total += share * chance.sum() * x
    return total


def test_the_score_is_the_derivative_in_the_field(partly, net):
    problem, result = partly
    step = 1e-4
    for t in range(3):
        field = step * np.eye(3)[t]
        up, down = (
            mean_spins(problem, result, net.output[0], sign * field) for sign in (1, -1)
        )
        by_difference = (up - down) / (2 * step)
        assert np.allclose(result.value.G[:, t], by_difference, rtol=0, atol=1e-7)


def test_a_spin_of_identical_patterns_feels_its_own_past(net, histories):
    """First token: h = a + alpha x(0), as the diagonal of the coupling matrix."""
    problem = problem_of(net, extensive.identical())
    value = histories.summed(problem, net.output[0], steps=3, nodes=14).value
    assert float(value.Gamma[0, 0]) == pytest.approx(0.2 * 0.9, abs=1e-15)
    assert np.all(np.diag(value.Gamma)[1:] > 0) and np.any(np.tril(value.Gamma, -1))


def test_deterministic_spins_agree_with_the_closed_recursion(net, histories):
    """Where the response does not return, G included."""
    ensemble = extensive.correlated(oq=0.3, vk=0.4, qk=0.5)
    short, long = (
        extensive.loaded_network(
            net, ensemble, alpha=0.2, beta=beta, gamma=5.0, epsilon=0.1
        )
        for beta in (np.inf, np.full(5, np.inf))
    )
    summed = histories.summed(short, net.output[0], steps=3)
    assert_begins_as(extensive.closed(long, net.output[0], steps=5), summed, 1e-6)


def hopfield_by_hand(alpha, beta, m0):
    """m(1), m(2) and C(2, 0) of a Hopfield network updated in parallel.

    The first steps of E. Gardner, B. Derrida and P. Mottishaw, J. Physique 48, 741
    (1987), with the diagonal of the couplings, alpha, and thermal noise: from
    h(0) = m0 + alpha x(0) + sqrt(alpha) z and
    h(1) = m(1) + alpha x(1) + alpha g x(0) + phi, where the overlaps w(1) = z' + g w(0)
    have S(1,0) = C(1,0) + g and S(1,1) = 1 + 2 g C(1,0) + g^2.
    """
    z, w = np.polynomial.hermite_e.hermegauss(80)
    w = w / w.sum()
    x0 = np.array([1.0, -1.0])[:, None]
    share = (1 + x0 * m0) / 2 * w
    theta = np.tanh(beta * (m0 + alpha * x0 + np.sqrt(alpha) * z))
    m1, C10 = (share * theta).sum(), (share * x0 * theta).sum()
    g = beta * (share * (1 - theta**2)).sum()
    S10, S11 = C10 + g, 1 + 2 * g * C10 + g**2
    m2 = C20 = 0.0
    for x1 in (1.0, -1.0):
        both = share * (1 + x1 * theta) / 2
        mean = m1 + alpha * x1 + alpha * g * x0 + np.sqrt(alpha) * S10 * z
        field = mean[..., None] + np.sqrt(alpha * (S11 - S10**2)) * z
        after = np.tanh(beta * field) @ w
        m2, C20 = m2 + (both * after).sum(), C20 + (both * x0 * after).sum()
    return m1, m2, C20


@pytest.mark.slow
def test_identical_patterns_take_the_first_steps_of_hopfield_networks(histories):
    alone = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=1)
    problem = extensive.loaded_network(
        alone, extensive.identical(), alpha=0.15, beta=1.7
    )
    value = histories.summed(problem, [0.6], steps=2, nodes=40).value
    m1, m2, C20 = hopfield_by_hand(0.15, 1.7, 0.6)
    assert float(value.m_o_se[1, 0]) == pytest.approx(m1, abs=1e-9)
    assert float(value.m_o_se[2, 0]) == pytest.approx(m2, abs=1e-7)
    assert float(value.C[2, 0]) == pytest.approx(C20, abs=1e-7)


def test_deterministic_identical_patterns_take_their_first_steps(histories):
    """The same at T = 0, with the noise z on either side of its threshold."""
    alpha, m0 = 0.15, 0.6
    fields = {x0: m0 + alpha * x0 for x0 in (1.0, -1.0)}
    share = {x0: (1 + x0 * m0) / 2 for x0 in fields}
    drawn = {x0: erf(h / np.sqrt(2 * alpha)) for x0, h in fields.items()}
    kinks = {x0: np.exp(-(h**2) / (2 * alpha)) for x0, h in fields.items()}
    m1 = sum(share[x0] * drawn[x0] for x0 in fields)
    C10 = sum(share[x0] * x0 * drawn[x0] for x0 in fields)
    g = np.sqrt(2 / (np.pi * alpha)) * sum(share[x0] * kinks[x0] for x0 in fields)
    S10, S11 = C10 + g, 1 + 2 * g * C10 + g**2
    m2 = 0.0
    for x0, h in fields.items():
        edge = -h / np.sqrt(alpha)
        for x1, low, high in ((1.0, edge, 9.0), (-1.0, -9.0, edge)):

            def weighted(z, known=m1 + alpha * x1 + alpha * g * x0):
                mean = known + np.sqrt(alpha) * S10 * z
                after = erf(mean / np.sqrt(2 * alpha * (S11 - S10**2)))
                return after * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi)

            m2 += share[x0] * quad(weighted, low, high)[0]
    alone = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=1)
    problem = extensive.loaded_network(
        alone, extensive.identical(), alpha=alpha, beta=np.inf
    )
    value = histories.summed(problem, [m0], steps=2).value
    assert float(value.m_o_se[1, 0]) == pytest.approx(m1, abs=1e-12)
    assert float(value.G[1, 0]) == pytest.approx(g, abs=1e-12)
    assert float(value.S[1, 1]) == pytest.approx(S11, abs=1e-12)
    assert float(value.m_o_se[2, 0]) == pytest.approx(m2, abs=1e-8)
