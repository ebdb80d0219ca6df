"""Test sets of images: each with tasks of its own, whatever stands beside it."""

import jax
import numpy as np

from statmech_attn.tasks import image_sets, images, one_shot


def drawn(seed, classes=3, images_of_each=4):
    names = tuple(f"{seed}/{number}" for number in range(classes))
    random = np.random.default_rng(seed)
    shape = classes, images_of_each, 8, 8
    return images.ImageClasses(names, random.uniform(size=shape).astype(np.float32))


SETTING = one_shot.Setting(image_size=8, patch=4, channels=1)
SPLIT = images.Split(*map(drawn, range(3)))
ELSEWHERE = {name: (drawn(n, 2), drawn(n, 2)) for name, n in (("a", 3), ("b", 4))}
KEY = jax.random.key(5)


def test_a_set_is_the_same_whatever_others_are_there():
    alone = image_sets.ImageSets(SETTING, SPLIT)
    every = image_sets.ImageSets(SETTING, SPLIT, ELSEWHERE)
    turned = image_sets.ImageSets(SETTING, SPLIT, dict(reversed(ELSEWHERE.items())))
    sets = every.tests(KEY, 0, 6)
    assert [*sets] == every.tested == ["omniglot", "omniglot-validation", "a", "b"]
    for others in (alone, turned):
        for name, (x, y) in others.tests(KEY, 0, 6).items():
            np.testing.assert_array_equal(x, sets[name].x)
            np.testing.assert_array_equal(y, sets[name].y)


def test_every_network_and_every_set_has_tasks_of_its_own():
    """One class of images in all parts: only the keys differ."""
    same = images.Split(*[drawn(0)] * 3)
    sets = image_sets.ImageSets(SETTING, same)
    tasks = [sets.train(KEY, number, 6).x for number in (0, 1)]
    tasks += [x for number in (0, 1) for x, _ in sets.tests(KEY, number, 6).values()]
    assert len({np.asarray(x).tobytes() for x in tasks}) == 6


def test_images_are_known_by_their_digests_and_turned_ones_counted_once():
    sets = image_sets.ImageSets(SETTING, SPLIT, ELSEWHERE)
    others = sets._replace(split=SPLIT._replace(train=drawn(6)))
    differ = {n for n, digest in sets.digests.items() if others.digests[n] != digest}
    assert differ == {"train"} and len(sets.digests) == 3 + 2 * 2
    turned = SPLIT._replace(train=images.turned(SPLIT.train))
    assert sets.characters == 3
    assert sets._replace(split=turned, turned=True).characters == 3
