"""One-shot images, two layers of four heads: learning, accuracy, order parameters."""

from script import Script, usable

from statmech_attn import plotting


TRAINING = "simulations/one_shot_training.toml"


def main(arguments=None):
    script = Script(__file__, __doc__, arguments, kept=True)
    trained = script.study(TRAINING)
    script.save(plotting.figure(trained, "learning_curves"), "one_shot_learning_curves")
    good = usable(trained)
    theories = [
        script.of_trained("analysis/one_shot_theory.toml", TRAINING, restart=r)
        for r in good
    ]
    saddle, *samples = [
        script.of_trained(f"{name}.toml", TRAINING, restart=good[0])
        for name in (
            "analysis/one_shot_saddle",
            "simulations/one_shot_exact",
            "simulations/one_shot_weights",
        )
    ]
    solved = trained.sel(restart=good)
    pictures = plotting.one_shot_pictures(theories, samples, solved, saddle)
    for name, picture in pictures:
        script.save(picture, f"one_shot_{name}")


if __name__ == "__main__":
    main()
