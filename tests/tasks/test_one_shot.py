"""The one-shot task: what its sequences show, and that its choices are uniform."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from statmech_attn.tasks import images, one_shot
from statmech_attn.tasks.image_files.images import ImageClasses
from statmech_attn.tasks.one_shot import Setting


SMALL = Setting(image_size=4, patch=2, channels=1)  # N_0 = 4, p = 4, T = 12
SEQUENCES = jax.jit(one_shot.sequences)


def random_classes(C, D, size=4, seed=0) -> ImageClasses:
    pixels = np.random.default_rng(seed).random((C, D, size, size), np.float32)
    return ImageClasses(tuple(f"c{n}" for n in range(C)), pixels)


def chosen(examples=200, seed=0, C=5, D=4):
    key = jax.random.key(seed)
    return one_shot.choose(key, n_classes=C, n_drawings=D, examples=examples)


def shown(x, setting):
    """Patches plus symbol of each of the three images: x without its positions."""
    positions = one_shot.codes(setting).positions
    rest = np.swapaxes(np.asarray(x), 1, 2) - positions
    return rest.reshape(len(x), 3, setting.patches, setting.n_inputs)


def symbols_and_patches(x, setting):
    """Which symbol each image carries, told from its mean, and its bare patches.

    A layer-normalised patch has mean zero.
    """
    rest, symbols = shown(x, setting), one_shot.codes(setting).symbols
    distance = np.abs(rest.mean(-1, keepdims=True) - symbols.mean(1))
    which = distance.mean(2).argmin(-1)
    return which, rest - symbols[which][:, :, None]


def matches(bare, patches):
    """(class, drawing) of the images whose patches are these."""
    flat = np.asarray(patches).reshape(-1, *patches.shape[2:])
    distance = np.abs(bare[:, :, None] - flat).max((-2, -1))
    assert distance.min(-1).max() < 1e-5
    return np.stack(np.divmod(distance.argmin(-1), patches.shape[1]), -1)


def test_the_defaults_are_the_published_sizes():
    setting = Setting()
    assert (setting.n_inputs, setting.patches, setting.tokens) == (192, 16, 48)


@pytest.mark.parametrize(
    "settings, said",
    [
        (dict(patch=7), "patch must divide image_size; got 7 and 32"),
        (dict(patch=0), "patch must be at least 1; got 0"),
        (dict(image_size=9, patch=3, channels=1), "must be even, .* got 9"),
        (dict(symbol_seed=-1), "symbol_seed must be at least 0; got -1"),
    ],
)
def test_impossible_sizes_are_refused(settings, said):
    with pytest.raises(ValueError, match=said):
        Setting(**settings)


@pytest.mark.parametrize("size, side, channels", [(32, 8, 3), (12, 3, 2), (4, 4, 1)])
def test_patches_are_cut_row_by_row_and_normalised(size, side, channels):
    setting = Setting(image_size=size, patch=side, channels=channels)
    pixels = random_classes(2, 3, size).images
    found = one_shot.patches(pixels, setting)
    n = size // side
    assert found.shape == (2, 3, n * n, side * side * channels)
    assert found.dtype == np.float32
    for number in range(n * n):
        row, column = divmod(number, n)
        patch = pixels[
            1, 2, side * row : side * (row + 1), side * column : side * (column + 1)
        ].astype(float)
        normed = (patch - patch.mean()) / np.sqrt(patch.var() + 1e-5)
        copies = found[1, 2, number].reshape(channels, -1)
        assert np.abs(copies - normed.ravel()).max() < 20 * np.finfo("f4").eps
        assert (copies == copies[0]).all()


def test_a_constant_patch_becomes_zero_and_contrast_hardly_matters():
    pixels = random_classes(2, 2).images
    pixels[0, 0, :2, :2] = 0.3
    found = one_shot.patches(pixels, SMALL)
    assert not found[0, 0, 0].any() and found[0, 0, 1].any()
    # epsilon shifts the scale by 1e-5 / (2 variance) of itself.
    again = one_shot.patches(0.5 + pixels / 2, SMALL)
    cut = pixels.reshape(2, 2, 2, 2, 2, 2).swapaxes(3, 4).reshape(2, 2, 4, 4)
    variance = cut.var(-1, keepdims=True)
    allowed = np.abs(found) * 4 * 1e-5 / (2 * np.maximum(variance, 1e-9))
    assert (np.abs(again - found) <= allowed + 1e-4).all()


def test_positions_are_standardised_sines_of_base_10000():
    setting = Setting()
    positions, symbols = one_shot.codes(setting)
    assert abs(positions.mean()) < 1e-12
    assert positions.std() == pytest.approx(1, abs=1e-12)
    t, i = 37, 50
    angle = t / 10_000 ** (i / 192)
    flat = [(np.sin(angle), positions[t, i]), (np.cos(angle), positions[t, i + 1])]
    # Row 0 holds sin 0 and cos 0 alone: it gives offset and scale.
    low, high = positions[0, 0], positions[0, 1]
    for raw, standardised in flat:
        assert standardised == pytest.approx(low + raw * (high - low), abs=1e-12)
    # 576 normal numbers: mean 0 +- 1/24, variance 1 +- sqrt(2/576).
    assert abs(symbols.mean()) < 4 / 24 and abs(symbols.var() - 1) < 4 / np.sqrt(288)


def test_symbols_and_choices_do_not_depend_on_the_precision_but_on_the_seed():
    double, choices = one_shot.codes(SMALL), chosen()
    with jax.enable_x64(False):
        single, again = one_shot.codes(SMALL), chosen()
    assert all((a == b).all() for a, b in zip(double, single, strict=True))
    assert all((a == b).all() for a, b in zip(choices, again, strict=True))
    other = one_shot.codes(replace(SMALL, symbol_seed=1))
    assert (other.symbols != double.symbols).all()
    assert (other.positions == double.positions).all()


def test_tokens_are_patch_plus_position_plus_symbol():
    """Every number of x from its definition."""
    classes, choices = random_classes(5, 4), chosen()
    patches = one_shot.patches(classes.images, SMALL)
    positions, symbols = one_shot.codes(SMALL)
    x, y = one_shot.sequences(patches, choices, one_shot.Codes(positions, symbols))
    assert x.dtype == y.dtype == jnp.float32
    x, y = map(
        np.asarray, SEQUENCES(patches.astype(float), choices, one_shot.codes(SMALL))
    )
    parts = [np.asarray(part) for part in choices[:3]]
    for n in range(30):
        pair, drawings, match = (part[n] for part in parts)
        asked = pair[match]
        label = y[n]
        first = 0 if label == (1, -1)[match] else 1
        blocks = [
            patches[pair[0], drawings[0]] + symbols[first],
            patches[pair[1], drawings[1]] + symbols[1 - first],
            patches[asked, drawings[2]] + symbols[2],
        ]
        wanted = (np.concatenate(blocks) + positions).T
        assert np.abs(x[n] - wanted).max() < 1e-12


def test_the_label_is_the_symbol_of_the_matching_image():
    """Read from x alone: which image matches, and which symbol it carries."""
    classes = random_classes(6, 5)
    x, y = one_shot.draw(jax.random.key(2), classes, SMALL, examples=100)
    assert x.shape == (100, 4, 12) and x.dtype == y.dtype == jnp.float64
    assert y.tolist() == [1.0] * 50 + [-1.0] * 50
    which, bare = symbols_and_patches(x, SMALL)
    found = matches(bare, one_shot.patches(classes.images, SMALL))
    assert (np.sort(which[:, :2]) == [0, 1]).all() and (which[:, 2] == 2).all()
    same = found[:, :2, 0] == found[:, 2:, 0]
    assert (same.sum(1) == 1).all()  # two classes, one of them the query's
    place = same.argmax(1)
    carried = which[np.arange(100), place]
    assert (np.where(carried == 0, 1, -1) == np.asarray(y)).all()
    assert (found[np.arange(100), place, 1] != found[:, 2, 1]).all()


def test_swapping_supports_with_their_symbols_keeps_y_and_swapping_symbols_turns_it():
    classes, choices = random_classes(5, 4), jax.tree.map(np.asarray, chosen())
    patches = one_shot.patches(classes.images, SMALL).astype(float)
    codes = one_shot.codes(SMALL)
    of = lambda choices: map(np.asarray, SEQUENCES(patches, choices, codes))
    x, y = of(choices)
    swapped = one_shot.Choices(
        choices.classes[:, ::-1],
        choices.drawings[:, [1, 0, 2]],
        1 - choices.match,
        choices.y,
    )
    x_swapped, y_swapped = of(swapped)
    before, after = shown(x, SMALL), shown(x_swapped, SMALL)
    assert np.abs(after - before[:, [1, 0, 2]]).max() < 1e-12
    assert (y_swapped == y).all()
    turned = choices._replace(y=-choices.y)
    x_turned, y_turned = of(turned)
    marks, bare = symbols_and_patches(x, SMALL)
    marks_turned, bare_turned = symbols_and_patches(x_turned, SMALL)
    assert (marks_turned == np.array([1, 0, 2])[marks]).all()
    assert np.abs(bare_turned - bare).max() < 1e-12 and (y_turned == -y).all()


def chi_squared(states, count) -> float:
    """Standard errors by which counts of equally probable states scatter too much."""
    found = np.bincount(np.asarray(states), minlength=count)
    assert len(found) == count
    expected = len(states) / count
    total = ((found - expected) ** 2 / expected).sum()
    return (total - (count - 1)) / np.sqrt(2 * (count - 1))


@pytest.mark.statistical
def test_every_choice_is_as_probable_as_the_others():
    """4 classes, 3 drawings: 12 ordered pairs, 9 x 2 drawings, 2 matches, 2 labels."""
    C, D, examples = 4, 3, 86_400
    classes, drawings, match, y = map(np.asarray, chosen(examples, 3, C, D))
    assert classes.min() >= 0 and classes.max() < C and drawings.max() < D
    step = (classes[:, 1] - classes[:, 0]) % C
    asked = drawings[np.arange(examples), match]
    other = (drawings[:, 2] - asked) % D
    assert step.min() == 1 and other.min() == 1 and set(np.unique(y)) == {-1, 1}
    pair = classes[:, 0] * (C - 1) + step - 1
    images_shown = (drawings[:, 0] * D + drawings[:, 1]) * (D - 1) + other - 1
    label = (y > 0).astype(int)
    joint = ((pair * 18 + images_shown) * 2 + match) * 2 + label
    scatter = [
        chi_squared(pair, 12),
        chi_squared(images_shown, 18),
        chi_squared(match, 2),
        chi_squared(label, 2),
        chi_squared(joint, 12 * 18 * 4),
    ]
    # 5 numbers; chi squared of one degree passes 1 + 11 sqrt 2 in one of 20 000.
    assert max(scatter) < 11, scatter
    assert abs(scatter[-1]) < 4, scatter


@pytest.mark.statistical
def test_no_single_image_tells_the_label():
    """The mean of y given one image and its symbol, where that symbol is ?, is zero.

    A support's symbol alone does not tell either: y agrees with it half of the time.
    """
    classes, choices = random_classes(3, 3), chosen(20_000, 4, 3, 3)
    patches = one_shot.patches(classes.images, SMALL).astype(float)
    x, y = SEQUENCES(patches, choices, one_shot.codes(SMALL))
    y = np.asarray(y)
    which, bare = symbols_and_patches(x, SMALL)
    found = matches(bare, patches) @ [3, 1]  # one number for each of 9 images
    deviations = []
    for place in range(3):
        state = 9 * which[:, place] + found[:, place]
        for value in np.unique(state):
            labels = y[state == value]
            deviations.append(labels.mean() * np.sqrt(len(labels)))
    assert len(deviations) == 2 * 18 + 9
    # 45 standard normal numbers: one beyond 4.2 in 800 tests.
    assert np.abs(deviations).max() < 4.2


def test_pairs_are_all_unordered_pairs_once_in_random_order():
    first, again, other = (
        np.asarray(one_shot.pairs(jax.random.key(seed), 30)) for seed in (0, 0, 1)
    )
    assert first.shape == (435, 2) and (first == again).all() and (first != other).any()
    assert (first[:, 0] < first[:, 1]).all()
    assert len({tuple(pair) for pair in first.tolist()}) == 435
    rows = np.arange(435)
    correlation = np.corrcoef(rows, first[:, 0])[0, 1]
    assert abs(correlation) < 4 / np.sqrt(435)


def test_given_pairs_are_used_in_random_order():
    pairs = one_shot.pairs(jax.random.key(5), 80)
    examples = len(pairs)
    draw = jax.jit(
        lambda key, pairs: one_shot.choose(
            key, n_classes=80, n_drawings=20, examples=examples, classes=pairs
        )
    )
    found = np.asarray(draw(jax.random.key(6), pairs).classes)
    assert (np.sort(found) == np.asarray(pairs)).all()
    swapped = (found[:, 0] > found[:, 1]).mean()
    assert abs(swapped - 0.5) < 4 * 0.5 / np.sqrt(examples)


@pytest.mark.parametrize(
    "changes, said",
    [
        (dict(n_classes=1), "two or more classes, .* got 1, 4 and 6"),
        (dict(n_drawings=1), "got 5, 1 and 6"),
        (dict(examples=0), "got 5, 4 and 0"),
        (dict(classes=np.zeros((5, 2), int)), r"shape \(6, 2\); got \(5, 2\)"),
    ],
)
def test_impossible_choices_are_refused(changes, said):
    arguments = dict(n_classes=5, n_drawings=4, examples=6) | changes
    with pytest.raises(ValueError, match=said):
        one_shot.choose(jax.random.key(0), **arguments)


def test_bad_draws_are_refused():
    key, classes = jax.random.key(0), random_classes(2, 3)
    with pytest.raises(ValueError, match="examples must be a multiple of 2; got 3"):
        one_shot.draw(key, classes, SMALL, examples=3)
    with pytest.raises(ValueError, match=r"\(classes, drawings, 32, 32\); got"):
        one_shot.draw(key, classes, Setting(), examples=2)
    with pytest.raises(ValueError, match="query must be of the size 2 in C to fit"):
        one_shot.draw_elsewhere(key, classes, random_classes(3, 3), SMALL, examples=2)
    others = one_shot.draw_elsewhere(
        key, classes, random_classes(2, 4), SMALL, examples=2
    )
    assert others.y.shape == (2,)  # of other numbers of drawings
    with pytest.raises(ValueError, match="two or more classes are needed; got 1"):
        one_shot.pairs(key, 1)
    with jax.enable_x64(False), pytest.raises(RuntimeError, match="jax_enable_x64"):
        one_shot.draw(key, classes, SMALL, examples=2)


@pytest.mark.statistical
def test_elsewhere_supports_keep_their_order_and_queries_come_from_other_images():
    support, query = random_classes(2, 6, seed=1), random_classes(2, 4, seed=2)
    x, y = one_shot.draw_elsewhere(
        jax.random.key(7), support, query, SMALL, examples=1000
    )
    assert y.tolist() == [1.0] * 500 + [-1.0] * 500
    which, bare = symbols_and_patches(x, SMALL)
    shown_first = matches(bare[:, :2], one_shot.patches(support.images, SMALL))
    asked = matches(bare[:, 2:], one_shot.patches(query.images, SMALL))[:, 0]
    assert (shown_first[:, :, 0] == [0, 1]).all()
    carried = which[np.arange(1000), asked[:, 0]]
    assert (np.where(carried == 0, 1, -1) == np.asarray(y)).all()
    # Uniform over 6 x 6 supports, 8 queries and the first image's symbol.
    scatter = [
        chi_squared(shown_first[:, 0, 1] * 6 + shown_first[:, 1, 1], 36),
        chi_squared(asked @ [4, 1], 8),
        chi_squared(which[:, 0], 2),
    ]
    # Chi squared of n degrees passes n + 6 sqrt(2 n) in one of 220 000 for 35 and of
    # 8000 for 7; of one degree 1 + 11 sqrt 2 in one of 20 000.
    assert max(scatter[:2]) < 6 and scatter[2] < 11


@pytest.mark.slow
def test_the_nearer_support_is_more_often_of_the_query_class(image_data):
    """Labels belong to their images: overlaps of real, unseen characters tell y."""
    test = images.split(images.omniglot(image_data), "small").test
    setting = Setting(channels=1)
    x, y = one_shot.draw(jax.random.key(8), test, setting, examples=1000)
    which, bare = symbols_and_patches(x, setting)
    overlap = (bare[:, :2] * bare[:, 2:]).sum((2, 3))
    nearer = which[np.arange(1000), overlap.argmax(1)]
    accuracy = (np.where(nearer == 0, 1, -1) == np.asarray(y)).mean()
    assert accuracy > 0.5 + 4 * 0.5 / np.sqrt(1000)
