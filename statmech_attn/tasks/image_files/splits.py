"""Which characters of Omniglot train, validate and test (docs/theory/one_shot.md).

A split is a table of three lists; an entry is an alphabet ("Greek") or one class of it
("Greek/character01").
"""

from collections.abc import Mapping, Sequence


SplitTable = Mapping[str, Sequence[str]]
PARTS = ("train", "validation", "test")

# The 20 alphabets of images_evaluation.zip; the other 30 are in images_background.zip.
EVALUATION_ALPHABETS = frozenset(
    """Angelic Atemayar_Qelisayer Atlantean Aurek-Besh Avesta Ge_ez Glagolitic Gurmukhi
    Kannada Keble Malayalam Manipuri Mongolian Old_Church_Slavonic_(Cyrillic) Oriya
    Sylheti Syriac_(Serto) Tengwar Tibetan ULOG""".split()
)

# Published lists: of the classes of images_background.zip, then images_evaluation.zip,
# each sorted by name, the first 1200 are for training and validation.  That cuts
# Gurmukhi (45 characters) after its character 41.
SPLITS: dict[str, SplitTable] = {
    "small": {
        "train": "Balinese Japanese_(katakana) Korean Latin Sanskrit".split(),
        "validation": ["Early_Aramaic"],
        "test": ["Greek", "Tagalog"],
    },
    "vinyals": {
        "train": [
            *"""Alphabet_of_the_Magi Angelic Anglo-Saxon_Futhorc Arcadian
            Asomtavruli_(Georgian) Atemayar_Qelisayer Atlantean Aurek-Besh Avesta
            Balinese Blackfoot_(Canadian_Aboriginal_Syllabics) Braille
            Burmese_(Myanmar) Cyrillic Futurama Ge_ez Glagolitic Grantha Greek Gujarati
            Inuktitut_(Canadian_Aboriginal_Syllabics) Japanese_(hiragana)
            Japanese_(katakana) Korean Latin Malay_(Jawi_-_Arabic) N_Ko
            Ojibwe_(Canadian_Aboriginal_Syllabics) Sanskrit Syriac_(Estrangelo) Tagalog
            Tifinagh""".split(),
            *(f"Gurmukhi/character{n:02}" for n in range(1, 42)),
        ],
        "validation": (
            "Armenian Bengali Early_Aramaic Hebrew Mkhedruli_(Georgian)".split()
        ),
        "test": [
            *(f"Gurmukhi/character{n:02}" for n in range(42, 46)),
            *"""Kannada Keble Malayalam Manipuri Mongolian
            Old_Church_Slavonic_(Cyrillic) Oriya Sylheti Syriac_(Serto) Tengwar Tibetan
            ULOG""".split(),
        ],
    },
}
ALPHABETS = frozenset(
    entry.split("/")[0] for part in SPLITS["vinyals"].values() for entry in part
)


def table(split: str | SplitTable) -> SplitTable:
    """The table of a named split, or a user's own once its three lists are there."""
    if isinstance(split, str):
        if split not in SPLITS:
            allowed = " or ".join(f'"{name}"' for name in SPLITS)
            raise ValueError(f"split must be {allowed}; got {split!r}.")
        return SPLITS[split]
    if set(split) != set(PARTS) or not all(_entries(split[part]) for part in PARTS):
        raise ValueError(
            "a split needs the lists train, validation and test of alphabets; "
            f"got {dict(split)}."
        )
    return split


def zip_of(entry: str) -> str:
    """Name of the published zip that holds an alphabet or class."""
    evaluation = entry.split("/")[0] in EVALUATION_ALPHABETS
    return "images_evaluation.zip" if evaluation else "images_background.zip"


def _entries(listed) -> bool:
    """Whether it is a list of one or more names."""
    is_list = isinstance(listed, Sequence) and not isinstance(listed, str)
    return is_list and bool(listed) and all(isinstance(name, str) for name in listed)
