"""Images of a one-shot study, its keys, and its test sets by name."""

import zlib
from collections.abc import Sequence
from typing import NamedTuple, Protocol

import jax
from jaxtyping import Array, Key

from statmech_attn.tasks import images, one_shot


MAIN, VALIDATION = "omniglot", "omniglot-validation"


class ImageTable(Protocol):
    """What a table says of the images."""

    @property
    def split(self) -> str: ...
    @property
    def elsewhere(self) -> Sequence[str]: ...
    @property
    def image_size(self) -> int: ...
    @property
    def patch(self) -> int: ...
    @property
    def channels(self) -> int: ...
    @property
    def symbol_seed(self) -> int: ...


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
        found = {name: images.digest(x) for name, x in self.split._asdict().items()}
        for name, (support, query) in self.elsewhere.items():
            found[f"{name} supports"] = images.digest(support)
            found[f"{name} queries"] = images.digest(query)
        return found

    def tests(self, seed: int, examples: int) -> dict[str, one_shot.Examples]:
        """Tasks of every test set, in-distribution test classes first.

        The same ones for training and theory of the same seed, and of a set whatever
        others are there.
        """
        parts = {MAIN: self.split.test, VALIDATION: self.split.validation}
        found = {
            name: one_shot.draw(
                key_of(seed, f"test set {name}"),
                classes,
                self.setting,
                examples=examples,
            )
            for name, classes in parts.items()
        }
        for name, pair in self.elsewhere.items():
            found[name] = one_shot.draw_elsewhere(
                key_of(seed, f"test set {name}"), *pair, self.setting, examples=examples
            )
        return found


def key_of(seed: int, purpose: str) -> Key[Array, ""]:
    """Key of its own for each purpose of a seed.

    Numbering purposes would not do: `jax.random.split(key)[i]` is `fold_in(key, i)`,
    so that a purpose could meet a point or a network of the same number.

    Example:
        >>> bool((key_of(0, "training tasks") == key_of(0, "initial weights")).all())
        False
    """
    return jax.random.fold_in(jax.random.key(seed), zlib.crc32(purpose.encode()))


def image_sets(table: ImageTable) -> ImageSets:
    """Read the images that a table names.

    Raises:
        ValueError: impossible settings, or images that are not there.
    """
    setting = one_shot.setting(
        image_size=table.image_size, patch=table.patch,
        channels=table.channels, symbol_seed=table.symbol_seed,
    )  # fmt: skip
    folder, size = images.data_folder(), setting.image_size
    return ImageSets(
        setting,
        images.split(images.omniglot(folder, size=size), table.split),
        {name: images.elsewhere(folder, name, size=size) for name in table.elsewhere},
    )
