"""Order parameters and accuracy against N: saddle point, 1/N, exact law, weights."""

from script import Script

from statmech_attn import comparison, plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    theory = script.study("analysis/hidden_markov.toml")
    samples = [
        script.study("simulations/hidden_markov_exact.toml"),
        script.study("simulations/hidden_markov_weights.toml"),
    ]
    agreement = comparison.compare(theory, *samples)
    script.save(plotting.figure(agreement, "finite_width"), "learning_at_finite_width")


if __name__ == "__main__":
    main()
