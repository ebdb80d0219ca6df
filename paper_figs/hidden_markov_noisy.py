"""Hidden-Markov task with strong noise and two paths."""

from script import Script

from statmech_attn import plotting


def main(arguments=None):
    script = Script(__file__, __doc__, arguments)
    theory = script.study("analysis/hidden_markov_noisy.toml")
    exact = script.study("simulations/hidden_markov_noisy_exact.toml")
    pictures = plotting.learning_pictures(theory, [exact], widths=(10, 100, 1000))
    for name, picture in pictures:
        script.save(picture, f"hidden_markov_noisy_{name}")


if __name__ == "__main__":
    main()
