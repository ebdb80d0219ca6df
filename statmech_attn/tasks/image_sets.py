"""Images of one-shot tasks: what is learned from, and test sets by name."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from jaxtyping import Array, Key

from statmech_attn.batches import rng
from statmech_attn.tasks import one_shot
from statmech_attn.tasks.image_files import images


MAIN, VALIDATION = "omniglot", "omniglot-validation"


class ImageSets(NamedTuple):
    """Classes of images in parts, and others that are only tested.

    Attributes:
        setting: of the tasks that are drawn.
        split: classes for training, validation and tests.
        elsewhere: images of the supports and of the queries, of two classes, by name of
            the set.
        name: of the split.
        turned: whether turned and mirrored training classes are classes, too.

    Example:
        >>> import jax, numpy as np
        >>> classes = lambda name: images.ImageClasses(
        ...     (name + "1", name + "2"), np.zeros((2, 3, 8, 8), np.float32))
        >>> setting = one_shot.Setting(image_size=8, patch=4, channels=1)
        >>> sets = ImageSets(setting, images.Split(*map(classes, "abc")))
        >>> drawn = sets.tests(jax.random.key(0), number=0, examples=4)
        >>> {name: y.shape for name, (_, y) in drawn.items()}
        {'omniglot': (4,), 'omniglot-validation': (4,)}
    """

    setting: one_shot.Setting
    split: images.Split
    elsewhere: Mapping[str, tuple[images.ImageClasses, images.ImageClasses]] = {}
    name: str = "given"
    turned: bool = False

    @property
    def characters(self) -> int:
        """Number of training classes, turned ones not counted."""
        orientations = images.ORIENTATIONS if self.turned else 1
        return len(self.split.train.names) // orientations

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

    def train(
        self, key: Key[Array, ""], number: int, examples: int
    ) -> one_shot.Examples:
        """Training tasks of the theory for the heads of a network, an even number."""
        key = rng.key_for(key, "training set", number)
        return one_shot.draw(key, self.split.train, self.setting, examples=examples)

    def tests(
        self, key: Key[Array, ""], number: int, examples: int
    ) -> dict[str, one_shot.Examples]:
        """Tasks of every test set, an even number `examples` of each.

        Those of a network are the same for its training, theory and pruning by one key,
        and of a set whatever others are there; each network `number` has its own.
        """
        parts = {MAIN: self.split.test, VALIDATION: self.split.validation}
        sets = {}
        for name in self.tested:
            of_set = rng.key_for(key, f"test set {name}", number)
            if name in parts:
                sets[name] = one_shot.draw(
                    of_set, parts[name], self.setting, examples=examples
                )
            else:
                sets[name] = one_shot.draw_elsewhere(
                    of_set, *self.elsewhere[name], self.setting, examples=examples
                )
        return sets


def read(
    setting: one_shot.Setting,
    split: str,
    elsewhere: Sequence[str],
    turned: bool = False,
) -> ImageSets:
    """Read the images of a split of Omniglot, and of data sets elsewhere.

    Args:
        setting: of the tasks that are drawn.
        split: name of the split.
        elsewhere: names of the other data sets.
        turned: whether turned and mirrored training characters are classes, too; all
            others are upright.

    Raises:
        ValueError: images that are not there.

    Example:
        `read(one_shot.Setting(), "small", [])` reads files of the publishers.
    """
    folder, size = images.data_folder(), setting.image_size
    parts = images.split(images.omniglot(folder, size=size), split)
    if turned:
        parts = parts._replace(train=images.turned(parts.train))
    others = {name: images.elsewhere(folder, name, size=size) for name in elsewhere}
    return ImageSets(setting, parts, others, split, turned)
