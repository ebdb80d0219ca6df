import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn import bpkr
from statmech_attn.bpkr import wishart
from statmech_attn.bpkr.corrections import corrections, evidence_correction
from statmech_attn.bpkr.newton import ITERATIONS


@pytest.fixture(scope="module")
def data(small):
    """Seven examples to learn and three to test, and the numbers of heads."""
    x, heads, y = small
    xi = bpkr.attentioned_inputs(x, heads)
    return xi[:7], xi[7:], 4 * y[:7], bpkr.head_counts(heads)


def one_path(N, examples):
    """Exact means of U_1 and U_a and ln p(Y) where K = U 1 and all labels are 3/2.

    U = u v, N u and N v chi^2 with N degrees of freedom: quadrature in ln u and ln v.
    """
    nodes, weights = np.polynomial.legendre.leggauss(400)
    log_u, weights = 12 * np.sqrt(2 / N) * nodes, weights
    prior = weights * np.exp(N / 2 * (log_u - np.exp(log_u) + 1))
    prior /= prior.sum()
    U = np.exp(log_u[:, None] + log_u)
    logs = -examples / 2 * (np.log(2 * np.pi * (U + 0.1)) + 1.5**2 / (U + 0.1))
    joint = prior[:, None] * prior * np.exp(logs - logs.max())
    U_a = (joint * np.exp(log_u)[:, None]).sum() / joint.sum()
    evidence = logs.max() + np.log(joint.sum())
    return (joint * U).sum() / joint.sum(), U_a, evidence


def one_path_data(P):
    return np.sqrt(P) * jnp.eye(P)[:, :, None], jnp.full(P, 1.5)


def errors(N, P):
    """Errors of (U, U_a, ln p) at the saddle point, and with their corrections."""
    xi, y = one_path_data(P)
    problem = dict(width=N, temperature=0.1, heads=(1,))
    saddle = bpkr.solve(xi, y, **problem)
    better = corrections(saddle, xi, y, **problem)
    log_p = better.log_evidence
    next_order = log_p + evidence_correction(saddle, xi, y, **problem)
    first = np.array([saddle.U[0][0, 0], saddle.U_a, log_p])
    second = np.array([better.U[0][0, 0], better.U_a, next_order])
    return np.abs(first - one_path(N, P)), np.abs(second - one_path(N, P))


@pytest.mark.slow
def test_orders_of_one_path_at_fixed_examples_per_width():
    """The saddle point is off by 1/N, the corrected means by 1/N^2."""
    slopes = np.log2(np.array(errors(160, 40)) / np.array(errors(320, 80)))
    # The next order changes a slope by some 1/N of order ten.
    assert np.abs(slopes - [[1], [2]]).max() < 10 / 160


def test_orders_of_one_path_at_fixed_examples():
    """The saddle point is off by 1/N^2: its first order is exact."""
    wide, wider = errors(1280, 4), errors(2560, 4)
    # The next order changes the slope by P^2 / N and smaller.
    assert np.abs(np.log2(wide[0] / wider[0]) - 2).max() < 0.1
    assert (wide[1] < wide[0] / 100).all()


@pytest.mark.slow
def test_nothing_is_left_to_correct_without_labels(data):
    """The prior means are exact, at any widths and variances, and ln p is zero."""
    xi, _, y, heads = data
    problem = dict(
        width=(5, 9, 4, 6), temperature=1e14, heads=heads,
        variances=(0.5, 2.0, 1.0, 3.0, 0.7),
    )  # fmt: skip
    found = bpkr.solve(xi, y, **problem)
    better = corrections(found, xi, y, **problem)
    U, U_a = bpkr.gaussian_process_limit(problem["heads"], problem["variances"])
    for one, other in zip((*better.U, better.U_a), (*U, U_a[0, 0])):
        assert np.abs(one - other).max() < 1e-9
    log_p = better.log_evidence + evidence_correction(found, xi, y, **problem)
    assert float(log_p) == pytest.approx(-7 / 2 * np.log(2 * np.pi * 1e14), abs=1e-9)


@pytest.mark.slow
@pytest.mark.statistical
@pytest.mark.parametrize("outputs", (None, 2))
def test_corrected_means_are_those_of_the_exact_law(data, outputs):
    xi, test, y, heads = data
    Y = y if outputs is None else jnp.stack([y, y[::-1]], axis=1)
    widths, variances = (40, 30, 50, 60), (1.0, 0.5, 2.0, 1.5, 0.8)
    problem = dict(width=widths, temperature=0.2, heads=heads, variances=variances)
    saddle = bpkr.solve(xi, Y, **problem)
    better = corrections(saddle, xi, Y, **problem)
    law = wishart.law(xi, Y, **problem)
    draws = wishart.sample(jax.random.key(0), law, draws=1500)
    exact = wishart.predict(draws, law, test)
    found, moved = [], []
    for U, first, true in zip(
        (*better.U, better.U_a), (*saddle.U, saddle.U_a), draws.summary
    ):
        size = np.abs(U - first).max()
        # What is left out is smaller than the correction by another 1/N.
        allowed = 4.5 * true.stderr + 5 * size / 30
        found.append((np.abs(U - true.mean) / allowed).max())
        moved.append(size / true.stderr.max())
    assert max(found) < 1
    assert max(moved) > 5  # the saddle point itself is seen to be off
    prediction = better.predict(test)
    shift = np.abs(
        prediction.mean
        - bpkr.theory(
            xi, Y, saddle.U[0], temperature=0.2, variance=1.0
        ).predict(test).mean
    ).max()  # fmt: skip
    allowed = 4.5 * exact.mean_stderr + 5 * shift / 30
    assert (np.abs(prediction.mean - exact.mean) < allowed).all()
    spread = np.abs(prediction.variance - exact.variance)
    assert (spread < 4.5 * exact.variance_stderr + 0.05 * exact.variance).all()


def test_widths_together_are_widths_alone():
    xi, y = one_path_data(4)
    problem = dict(temperature=0.1, heads=(1,))
    many = bpkr.solve_many(xi, y, width=[6, 20], **problem)
    both = corrections(many, xi, y, width=[6, 20], **problem)
    alone = corrections(
        bpkr.solve(xi, y, width=20, **problem), xi, y, width=20, **problem
    )
    # Two saddle points of gradient 1e-9.
    assert np.abs(both.U[0][1] - alone.U[0]).max() < 1e-7
    assert float(both.log_evidence[1] - alone.log_evidence) == pytest.approx(
        0, abs=1e-7
    )
    means = both.predict(xi).mean
    assert np.abs(means[1] - alone.predict(xi).mean).max() < 1e-7


def test_a_solution_of_another_problem_is_refused(data):
    """By the gradient of the action given; the solution's own problem is accepted."""
    xi, _, y, heads = data
    settings = dict(width=20, temperature=0.1, heads=heads, variances=np.ones(5))
    saddle = bpkr.solve(xi, y, **settings)
    own = corrections(saddle, xi, y, **settings)
    assert eqx.tree_equal(own, corrections(saddle, xi, y, **settings))
    # The action is even in the labels: the saddle point of -y is that of y.
    opposite = corrections(saddle, xi, -y, **settings)
    assert eqx.tree_equal(opposite.U, own.U)
    others = {
        "labels": (xi, 2 * y, {}),
        "inputs xi": (xi[:, :, ::-1], y, {}),
        "widths": (xi, y, {"width": 40}),
        "temperature": (xi, y, {"temperature": 0.11}),
        "variances": (xi, y, {"variances": [1, 1, 1, 1, 1.1]}),
        "labels and temperature": (xi, 2 * y, {"temperature": 0.2}),
    }
    for name, (inputs, labels, changes) in others.items():
        for call in (corrections, evidence_correction):
            with pytest.raises(ValueError, match=f"solved with other {name}: ") as one:
                call(saddle, inputs, labels, **settings | changes)
            assert "\n" not in str(one.value)
    with pytest.raises(ValueError, match="must be that of"):
        corrections(saddle, xi, y, **settings | {"heads": (4,), "variances": None})


def test_a_batch_with_its_widths_in_another_order_is_refused():
    xi, y = one_path_data(4)
    problem = dict(temperature=0.1, heads=(1,))
    many = bpkr.solve_many(xi, y, width=[6, 20], **problem)
    with pytest.raises(ValueError, match="solved with other widths: "):
        corrections(many, xi, y, width=[20, 6], **problem)


def test_a_saddle_point_known_less_well_is_accepted():
    """Of a solver with a wide tolerance, and with kernels of another form."""
    xi, y = one_path_data(4)
    problem = dict(width=20, temperature=0.1, heads=(1,))
    rough = bpkr.solve(xi, y, solver=bpkr.NewtonSolver(tolerance=0.1), **problem)
    assert float(rough.gradient_norm) > 1e-3
    corrections(rough, xi, y, **problem)
    saddle = bpkr.solve(xi, y, form="kernels", **problem)
    corrections(saddle, xi, y, form="factors", **problem)


def test_bad_input_is_refused(data):
    xi, _, y, heads = data
    problem = dict(temperature=0.1, heads=heads)
    narrow = bpkr.solve(xi, y, width=3, **problem)
    both = bpkr.solve_many(xi, y, width=[3, 4], **problem)  # U_1 has the size 4
    assert narrow.outside_support and both.outside_support.tolist() == [True, False]
    with pytest.raises(ValueError, match="at least"):
        corrections(narrow, xi, y, width=3, **problem)
    with pytest.raises(ValueError, match="must be that of"):
        corrections(narrow, xi[:, :, :1], y, width=9, temperature=0.1, heads=(1,))
    found, settings = bpkr.solve(xi, y, width=9, **problem), dict(width=9, **problem)
    lost = eqx.tree_at(lambda s: s.result, found, jnp.asarray(ITERATIONS))
    with pytest.raises(ValueError, match="iterations used up"):
        corrections(lost, xi, y, **settings)
    good = corrections(found, xi, y, **settings)
    with pytest.raises(ValueError, match="xi_test must have shape"):
        good.predict(xi[:, :2])
    with pytest.raises(ValueError, match="kernels need .* more than memory_limit"):
        corrections(found, xi, y, memory_limit=2**16, **settings)
    # A solution of one layer of 16 heads, as far as its number of unknowns tells.
    many = eqx.tree_at(lambda s: s.point, found, jnp.zeros(137))
    settings = dict(width=20, temperature=0.1, heads=(16,))
    xi = jnp.ones((2, 1, 16))
    with pytest.raises(ValueError, match="third derivatives in 137 unknowns"):
        evidence_correction(many, xi, y[:2], memory_limit=2**24, **settings)
