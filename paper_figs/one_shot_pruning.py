"""One-shot images: scores and pruning of two layers of four heads and of eight."""

from script import Script

from statmech_attn import plotting


TRAININGS = {"": "", "_wide": "_wide", "_exact": ""}


def main(arguments=None):
    script = Script(__file__, __doc__, arguments, kept=True)
    for variant, network in TRAININGS.items():
        training = f"simulations/one_shot_training{network}.toml"
        script.study(training)
        study = f"analysis/one_shot_pruning{variant}.toml"
        pruned = script.of_trained(study, training)
        for name, picture in plotting.pictures(pruned):
            script.save(picture, f"one_shot{variant}_{name}")


if __name__ == "__main__":
    main()
