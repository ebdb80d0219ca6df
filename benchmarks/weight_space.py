"""Cost of sampling all weights, and the bias of Langevin steps, printed as tables.

    python benchmarks/weight_space.py

1. A gradient of the posterior, with what needs no weight contracted beforehand and
   layer by layer.  The four-path hidden-Markov task, 100 examples, temperature 0.01.
2. Effective samples of the entry of U_1 that mixes worst, per second of sampling, by
   NUTS over all weights and by the exact law; same task and widths, same run.
3. Distance of U_1, of the mean and of the variance of f on the training inputs from the
   exact law, in standard errors, against the Langevin step: three inputs, N = 5.
"""

import time

import jax
import jax.numpy as jnp
import numpy as np


WIDTHS = {10: (100, 100), 30: (60, 60), 100: (40, 40)}  # warm-up and draws
TEMPERATURE = 0.01
CHAINS = 4


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    print(f"# jax {jax.__version__}, {jax.default_backend()}")
    gradients()
    effective_samples()
    langevin_bias()


def four_paths():
    """Setting, inputs, the problem at any width, and the test set."""
    from statmech_attn import bpkr
    from statmech_attn.tasks import hidden_markov

    head_key, train_key = jax.random.split(jax.random.key(0))
    setting = hidden_markov.preset("four-paths", head_key)
    x, y = hidden_markov.draw(train_key, setting.task, examples=setting.n_train)
    test_key = jax.random.fold_in(train_key, 1)
    x_test, y_test = hidden_markov.draw(test_key, setting.task, examples=setting.n_test)
    xi = bpkr.attentioned_inputs(x, setting.heads, readout=setting.readout)
    xi_test = bpkr.attentioned_inputs(x_test, setting.heads, readout=setting.readout)
    problem = bpkr.Problem(xi, y, heads=setting.heads, width=1, temperature=TEMPERATURE)
    return setting, x, problem, xi_test, y_test


def gradients() -> None:
    from statmech_attn import bpkr
    from statmech_attn.bpkr.attention.attention import attention_matrix
    from statmech_attn.montecarlo import weight_space

    setting, x, problem, *_ = four_paths()
    attention = tuple(
        jnp.stack([attention_matrix(x, head) for head in layer])
        for layer in setting.heads
    )
    print("gradient        N  weights  contracted us  by layers us  with attention us")
    for N in WIDTHS:
        posterior = weight_space.posterior(problem.at(width=N))
        z = posterior.draw_start(jax.random.key(1))

        def gradient(outputs, posterior=posterior):
            def log_density(z, *data):
                f = outputs(posterior.weights(z), *data)
                return -(z @ z + ((f - problem.y) ** 2).sum() / TEMPERATURE) / 2

            return jax.jit(jax.grad(log_density))

        by_layers, forward = gradient(through_layers), gradient(bpkr.forward)
        contracted = jax.jit(jax.grad(posterior.log_density))
        for f in (by_layers(z, x, attention), forward(z, x, setting.heads)):
            assert jnp.allclose(contracted(z), f, rtol=1e-8, atol=1e-8)
        times = (
            seconds(lambda: contracted(z), 50),
            seconds(lambda: by_layers(z, x, attention), 3),
            seconds(lambda: forward(z, x, setting.heads), 1),
        )
        fast, slow, slowest = (1e6 * t for t in times)
        print(
            f"{'':<8} {N:>8} {z.size:>8} {fast:>14.0f} {slow:>13.0f} {slowest:>18.0f}",
            flush=True,
        )


def through_layers(weights, x, attention):
    """The forward pass with the attention matrices given."""
    hidden = jnp.einsum("ni,pit->pnt", weights.V_0, x) / x.shape[1] ** 0.5
    for V, omega in zip(weights.V, attention, strict=True):
        scale = (V.shape[2] * V.shape[0]) ** 0.5
        hidden = sum(
            jnp.einsum("mn,pns,pst->pmt", v, hidden, o) / scale
            for v, o in zip(V, omega, strict=True)
        )
    return hidden[:, :, -1] @ weights.a / weights.a.size**0.5


def effective_samples() -> None:
    from statmech_attn.montecarlo import weight_space
    from statmech_attn.montecarlo.posterior_samples.weight_sampling import (
        sample_weights,
    )
    from statmech_attn.statistics import summary

    _, _, problem, xi_test, y_test = four_paths()
    print(
        "samples         N  n_eff    1/s  exact 1/s  ratio  gradients  accept"
        "  divergent  R-hat   BFMI  accuracy"
    )
    for N, (warmup, draws) in WIDTHS.items():
        clock = Clock()
        posterior = weight_space.posterior(problem.at(width=N))
        sampled = sample_weights(
            jax.random.key(1),
            posterior,
            method="weights",
            xi_test=xi_test,
            y_test=y_test,
            draws=draws,
            warmup=warmup,
            chains=CHAINS,
            block=20,
            folder=None,
            study="",
            report=clock,
        )
        U, accuracy = summary(sampled.U[0]), summary(sampled.accuracy)
        rate = U.n_eff.min() / clock.seconds_of(draws)
        sample = problem.at(width=N).posterior
        exact = exact_rate(lambda n: sample(jax.random.key(2), draws=n))
        print(
            f"{'':<8} {N:>8} {U.n_eff.min():>6.0f} {rate:>6.2f} {exact:>10.0f} "
            f"{exact / rate:>6.0f} {sampled.leapfrog_steps.mean():>10.0f} "
            f"{sampled.acceptance.mean():>7.2f} {sampled.divergences:>10} "
            f"{U.r_hat.max():>6.3f} {sampled.bfmi.min():>6.2f} "
            f"{accuracy.mean:>6.3f}({1e3 * accuracy.stderr:.0f})",
            flush=True,
        )


def exact_rate(sample) -> float:
    """Effective samples per second of the exact law; compilation cancels."""
    times, counts = [], []
    for draws in (500, 10_500):
        start = time.perf_counter()
        posterior = jax.block_until_ready(sample(draws))
        times.append(time.perf_counter() - start)
        counts.append(float(posterior.n_eff.min()))
    return counts[1] * (10_000 / 10_500) / (times[1] - times[0])


def langevin_bias() -> None:
    from statmech_attn.bpkr import Problem
    from statmech_attn.montecarlo import weight_space
    from statmech_attn.montecarlo.posterior_samples.langevin import stiffness
    from statmech_attn.montecarlo.posterior_samples.weight_sampling import (
        sample_weights,
    )
    from statmech_attn.reporting import Silent
    from statmech_attn.statistics import summary

    input_key, label_key, start_key, power_key = jax.random.split(jax.random.key(3), 4)
    xi = jax.random.normal(input_key, (3, 6, 4))
    Y = 2 * jax.random.normal(label_key, (3,))
    problem = Problem(xi, Y, heads=(2, 2), width=5, temperature=0.05)
    draws = problem.posterior(jax.random.key(4), draws=5000, chains=4)
    U, f = summary(draws.U[0]), summary(exact_outputs(problem, draws.U[0]))
    posterior = weight_space.posterior(problem)
    starts = jax.vmap(posterior.draw_start)(jax.random.split(start_key, 16))
    one = lambda z: stiffness(posterior.log_density, z, power_key)
    omega = float(jax.vmap(one)(starts).max())
    print("bias    h omega   U_1 z max   <f> z max   var f z max   var f excess")
    for phase in (1.5, 1.0, 0.75, 0.5, 0.25):
        sampled = sample_weights(
            jax.random.key(5),
            posterior,
            method="langevin",
            xi_test=xi,
            y_test=Y,
            draws=1000,
            warmup=100,
            chains=16,
            block=100,
            folder=None,
            study="",
            report=Silent(),
            step_size=phase / omega,
        )
        of_weights = summary(sampled.U[0])
        mean, square = f.mean[:3], f.mean[3:]
        z_U = (of_weights.mean - U.mean) / np.hypot(of_weights.stderr, U.stderr)
        z_f = (sampled.predictor_mean - mean) / np.hypot(
            sampled.predictor_mean_stderr, f.stderr[:3]
        )
        expected = square - mean**2
        error = np.hypot(sampled.predictor_variance_stderr, f.stderr[3:])
        excess = sampled.predictor_variance - expected
        share = excess.sum() / expected.sum()
        share_error = np.linalg.norm(error) / expected.sum()
        print(
            f"{'':<8} {phase:>6.2f} {np.abs(z_U).max():>11.1f} "
            f"{np.abs(z_f).max():>11.1f} {np.abs(excess / error).max():>13.1f} "
            f"{share:>9.4f}({1e4 * share_error:.0f})",
            flush=True,
        )


def exact_outputs(problem, U):
    """<f> and <f^2> on the training inputs at every draw of U, (chains, draws, 2 P)."""

    def one(U):
        K = problem.operator.kernel(U)
        gain = jnp.linalg.solve(K + problem.temperature * jnp.eye(K.shape[0]), K).T
        mean = gain @ problem.y
        return jnp.concatenate([mean, jnp.diagonal(K - gain @ K) + mean**2])

    return jax.jit(jax.vmap(jax.vmap(one)))(U)


class Clock:
    """Notes the time at which every block ends."""

    def __init__(self):
        self.steps, self.times = [], []

    def note(self, text):
        pass

    def begin(self, description, points, work):
        self.times.append(time.perf_counter())

    def advance(self, work):
        self.steps.append(work)
        self.times.append(time.perf_counter())

    def finish(self):
        pass

    def seconds_of(self, last: int) -> float:
        """Time of the last steps."""
        count = next(
            n for n in range(1, len(self.steps) + 1) if sum(self.steps[-n:]) >= last
        )
        return self.times[-1] - self.times[-1 - count]


def seconds(call, repeats: int) -> float:
    """Least of five means over repeats, compilation left out."""
    jax.block_until_ready(call())
    means = []
    for _ in range(5):
        start = time.perf_counter()
        for _ in range(repeats):
            result = call()
        jax.block_until_ready(result)
        means.append((time.perf_counter() - start) / repeats)
    return min(means)


if __name__ == "__main__":
    main()
