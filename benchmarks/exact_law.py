"""Effective samples per second of the exact law, printed as a table.

    python benchmarks/exact_law.py [N ...]

The four-path hidden-Markov task, 100 examples, temperature 0.01, four chains.  The
time is that of a second call, warm-up included; compilation is the rest of the first.
"""

import sys
import time

import jax


WIDTHS = [3, 10, 30, 50, 100, 300, 500, 1000]
DRAWS = 1500


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    from statmech_attn import bpkr
    from statmech_attn.tasks import hidden_markov

    head_key, train_key = jax.random.split(jax.random.key(0))
    setting = hidden_markov.preset("four-paths", head_key)
    x, y = hidden_markov.draw(train_key, setting.task, examples=setting.n_train)
    xi = bpkr.attentioned_inputs(x, setting.heads, readout=setting.readout)
    problem = bpkr.Problem(xi, y, heads=setting.heads, width=3, temperature=0.01)
    print(f"# jax {jax.__version__}, {jax.default_backend()}, 4 chains")
    print(
        f"{'N':>5} {'draws':>6} {'s':>6} {'compile':>8} {'n_eff':>6} {'n_eff/s':>8} "
        f"{'gradients':>10} {'divergent':>10} {'R-hat':>6} {'BFMI':>5}"
    )
    for N in [int(n) for n in sys.argv[1:]] or WIDTHS:
        seconds = []
        for seed in range(2):
            start = time.perf_counter()
            posterior = problem.at(width=N).posterior(jax.random.key(seed), draws=DRAWS)
            seconds.append(time.perf_counter() - start)
        n_eff, steps = posterior.n_eff.min(), float(posterior.steps.mean())
        print(
            f"{N:>5} {4 * DRAWS:>6} {seconds[1]:>6.2f} {seconds[0] - seconds[1]:>8.1f} "
            f"{n_eff:>6.0f} {n_eff / seconds[1]:>8.0f} {steps:>10.1f} "
            f"{int(posterior.divergences):>10} {posterior.r_hat.max():>6.3f} "
            f"{posterior.bfmi.min():>5.2f}",
            flush=True,
        )


if __name__ == "__main__":
    main()
