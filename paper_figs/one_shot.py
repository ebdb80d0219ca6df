"""One-shot images, two layers of four heads: learning, accuracy, order parameters."""

from statmech_attn import plotting
from statmech_attn.plotting.scripts import Script, usable


TRAINING = "simulations/one_shot_training.toml"


def main(arguments=None):
    script = Script(__file__, __doc__, arguments, kept=True)
    trained = script.study(TRAINING)
    script.save(plotting.training(trained), "one_shot_training")
    good = usable(trained)
    theories = [
        script.of_trained("analysis/one_shot_theory.toml", TRAINING, restart=r)
        for r in good
    ]
    samples = [
        script.of_trained(f"simulations/one_shot_{name}.toml", TRAINING, good[0])
        for name in ("exact", "weights")
    ]
    found = trained.sel(restart=good)
    pictures = plotting.one_shot_pictures(theories, samples, found)
    for name, picture in pictures:
        script.save(picture, f"one_shot_{name}")


if __name__ == "__main__":
    main()
