"""Accuracy of the trained one-shot networks without Greek letters of Latin shape.

    python analysis/one_shot_lookalikes.py

Greek letters are test characters at laptop size and Latin ones training characters, and
ten of them look alike.  New tasks are drawn from all test characters, from the Greek
ones, and from both without these letters; needs the images (the variable
STATMECH_ATTN_DATA names their folder) and the kept networks.
"""

from pathlib import Path

import jax
import numpy as np

from statmech_attn import studies
from statmech_attn.batches import rng
from statmech_attn.tasks import image_sets, images, one_shot
from statmech_attn.training import one_shot_networks


KEPT = Path(__file__).resolve().parents[1] / "paper_figs" / "results"
# α η ι κ ν ο ρ υ χ ω, by their numbers in the alphabet.
LOOKALIKES = {f"Greek/character{n:02}" for n in (1, 7, 9, 10, 13, 15, 17, 20, 22, 24)}
TASKS = 4000  # of each network and set of characters


def main() -> None:
    jax.config.update("jax_enable_x64", True)
    trained = studies.load_trained(KEPT / "one_shot_training-laptop.h5")
    test = image_sets.read(trained.setting, trained.split, []).split.test
    greek = {name for name in test.names if name.startswith("Greek/")}
    sets = {
        "all test characters": {*test.names},
        "without lookalikes": {*test.names} - LOOKALIKES,
        "Greek": greek,
        "Greek without lookalikes": greek - LOOKALIKES,
        "Tagalog": {*test.names} - greek,
    }
    for words, names in sets.items():
        shares = np.array(
            [
                one_shot_networks.accuracy(
                    network, *tasks(test, names, trained.setting, number)
                )
                for number, network in enumerate(trained.transformers)
            ]
        )
        error = shares.std(ddof=1) / np.sqrt(len(shares))
        each = ", ".join(f"{x:.3f}" for x in shares)
        print(f"{words}, {len(names)}: {shares.mean():.3f} ± {error:.3f} ({each})")


def tasks(
    test: images.ImageClasses, names: set[str], setting: one_shot.Setting, number: int
) -> one_shot.Examples:
    """Tasks of these characters for one network."""
    rows = [row for row, name in enumerate(test.names) if name in names]
    chosen = images.ImageClasses(
        tuple(test.names[row] for row in rows), test.images[rows]
    )
    key = rng.key_for(jax.random.key(0), "tasks without lookalikes", number)
    return one_shot.draw(key, chosen, setting, examples=TASKS)


if __name__ == "__main__":
    main()
