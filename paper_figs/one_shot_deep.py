"""One-shot images, three layers of three heads: accuracy, order parameters, pruning."""

from script import Script, usable

from statmech_attn import plotting


TRAINING = "simulations/one_shot_training_deep.toml"


def main(arguments=None):
    script = Script(__file__, __doc__, arguments, kept=True)
    trained = script.study(TRAINING)
    good = usable(trained)
    theories = [
        script.of_trained("analysis/one_shot_theory_deep.toml", TRAINING, restart=r)
        for r in good
    ]
    solved = trained.sel(restart=good)
    pictures = plotting.one_shot_pictures(theories, trained=solved)
    for name, picture in pictures:
        script.save(picture, f"one_shot_deep_{name}")
    pruned = script.of_trained("analysis/one_shot_pruning_deep.toml", TRAINING)
    for name, picture in plotting.pictures(pruned):
        script.save(picture, f"one_shot_deep_{name}")


if __name__ == "__main__":
    main()
