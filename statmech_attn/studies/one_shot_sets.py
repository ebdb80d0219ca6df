"""Images of a one-shot study, its keys, and its test sets by name."""

from collections.abc import Sequence
from typing import NamedTuple

import jax
from jaxtyping import Array, Key

from statmech_attn.batches import rng
from statmech_attn.tasks import images, one_shot


MAIN, VALIDATION = "omniglot", "omniglot-validation"
CHOICES = {"validation": VALIDATION, "published": MAIN}  # of the temperature, by set


class ImageSets(NamedTuple):
    """All images of a study, read once.

    Attributes:
        elsewhere: images of the supports and of the queries, by name of the set.
    """

    setting: one_shot.Setting
    split: images.Split
    elsewhere: dict[str, tuple[images.ImageClasses, images.ImageClasses]]

    @property
    def digests(self) -> dict[str, str]:
        """SHA-256 of the images, by set."""
        digests = {name: images.digest(x) for name, x in self.split._asdict().items()}
        for name, (support, query) in self.elsewhere.items():
            digests[f"{name} supports"] = images.digest(support)
            digests[f"{name} queries"] = images.digest(query)
        return digests

    @property
    def tested(self) -> list[str]:
        """Names of the test sets, in-distribution test classes first."""
        return [MAIN, VALIDATION, *self.elsewhere]

    def train(self, seed: int, restart: int, examples: int) -> one_shot.Examples:
        """Training tasks of the theory for the heads of a network."""
        key = key_of(seed, "training set", restart)
        return one_shot.draw(key, self.split.train, self.setting, examples=examples)

    def tests(
        self, seed: int, restart: int, examples: int
    ) -> dict[str, one_shot.Examples]:
        """Tasks of every test set.

        Those of a network are the same for its training, theory and pruning at one
        seed, and of a set whatever others are there; each network has its own.
        """
        parts = {MAIN: self.split.test, VALIDATION: self.split.validation}
        sets = {}
        for name in self.tested:
            key = key_of(seed, f"test set {name}", restart)
            if name in parts:
                sets[name] = one_shot.draw(
                    key, parts[name], self.setting, examples=examples
                )
            else:
                sets[name] = one_shot.draw_elsewhere(
                    key, *self.elsewhere[name], self.setting, examples=examples
                )
        return sets


def key_of(seed: int, purpose: str, number: int) -> Key[Array, ""]:
    """Key for each purpose of a seed, and for each network.

    Example:
        >>> key_of(0, "training set", 3).shape
        ()
    """
    return rng.key_for(jax.random.key(seed), purpose, number)


def image_sets(
    setting: one_shot.Setting,
    split: str,
    elsewhere: Sequence[str],
    turned: bool = False,
) -> ImageSets:
    """Read the images of a split, and of data sets elsewhere.

    Args:
        turned: whether turned and mirrored training characters are classes, too; all
            others are upright.

    Raises:
        ValueError: images that are not there.
    """
    folder, size = images.data_folder(), setting.image_size
    parts = images.split(images.omniglot(folder, size=size), split)
    if turned:
        parts = parts._replace(train=images.turned(parts.train))
    return ImageSets(
        setting,
        parts,
        {name: images.elsewhere(folder, name, size=size) for name in elsewhere},
    )
