"""Time of the saddle point at the published widths, printed as a table.

    python benchmarks/saddle.py

The four-path hidden-Markov task, 100 examples, temperature 0.01: every width alone and
all in one call, each after compilation, the least of five runs.
"""

import time

import jax


WIDTHS = [10, 30, 50, 100, 300, 500, 1000]


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    from statmech_attn import bpkr
    from statmech_attn.tasks import hidden_markov

    head_key, train_key = jax.random.split(jax.random.key(0))
    setting = hidden_markov.preset("four-paths", head_key)
    x, y = hidden_markov.draw(train_key, setting.task, examples=setting.n_train)
    xi = bpkr.attentioned_inputs(x, setting.heads, readout=setting.readout)
    problem = dict(temperature=0.01, heads=bpkr.head_counts(setting.heads))
    print(
        f"# jax {jax.__version__}, {jax.default_backend()}, {setting.n_train} examples"
    )
    for form in ("kernels", "factors"):
        print(f"{form:<10} {'N':>5} {'ms':>8} {'steps':>6} {'gradient':>9}")
        for N in WIDTHS:
            solve = lambda: bpkr.solve(xi, y, width=N, form=form, **problem)
            found, seconds = timed(solve)
            print(
                f"{'':<10} {N:>5} {1e3 * seconds:>8.1f} {int(found.iterations):>6} "
                f"{float(found.gradient_norm):>9.1e}",
                flush=True,
            )
        many = lambda: bpkr.solve_many(xi, y, width=WIDTHS, form=form, **problem)
        found, seconds = timed(many)
        worst = float(found.gradient_norm.max())
        steps = int(found.iterations.max())
        print(f"{'':<10} {'all':>5} {1e3 * seconds:>8.1f} {steps:>6} {worst:>9.1e}")


def timed(call):
    """Result and least time of five runs, compilation left out."""
    found, times = jax.block_until_ready(call()), []
    for _ in range(5):
        start = time.perf_counter()
        jax.block_until_ready(call())
        times.append(time.perf_counter() - start)
    return found, min(times)


if __name__ == "__main__":
    main()
