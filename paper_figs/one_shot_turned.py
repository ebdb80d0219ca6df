"""One-shot images, trained on turned characters too: accuracy, U, pruning."""

from script import Script, usable

from statmech_attn import plotting


TRAINING = "simulations/one_shot_training_turned.toml"


def main(arguments=None):
    script = Script(__file__, __doc__, arguments, kept=True)
    trained = script.study(TRAINING)
    script.save(
        plotting.figure(trained, "learning_curves"), "one_shot_turned_learning_curves"
    )
    good = usable(trained)
    theories = [
        script.of_trained("analysis/one_shot_theory_turned.toml", TRAINING, restart=r)
        for r in good
    ]
    solved = trained.sel(restart=good)
    for name, picture in plotting.one_shot_pictures(theories, trained=solved):
        script.save(picture, f"one_shot_turned_{name}")
    pruned = script.of_trained("analysis/one_shot_pruning_turned.toml", TRAINING)
    for name, picture in plotting.pictures(pruned):
        script.save(picture, f"one_shot_turned_{name}")


if __name__ == "__main__":
    main()
