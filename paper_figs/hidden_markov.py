"""Hidden-Markov task, four paths: accuracy, order parameters, alignment and kernels."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    theory = script.study("analysis/hidden_markov.toml")
    samples = [
        script.study("simulations/hidden_markov_exact.toml"),
        script.study("simulations/hidden_markov_weights.toml"),
    ]
    options = {
        "accuracy": {"posteriors": samples},
        "order_parameters": {"widths": (10, 100, 1000)},
    }
    for name, picture in plotting.pictures(theory, options=options):
        script.save(picture, f"hidden_markov_{name}")


if __name__ == "__main__":
    main()
