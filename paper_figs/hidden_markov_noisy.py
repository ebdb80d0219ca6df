"""Hidden-Markov task with strong noise and two paths."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    theory = script.study("analysis/hidden_markov_noisy.toml")
    exact = script.study("simulations/hidden_markov_noisy_exact.toml")
    options = {
        "accuracy": {"posteriors": [exact]},
        "order_parameters": {"widths": (10, 100, 1000)},
    }
    for name, picture in plotting.pictures(theory, options=options):
        script.save(picture, f"hidden_markov_noisy_{name}")


if __name__ == "__main__":
    main()
