r"""Feature patterns as site classes (docs/theory/dmft.md, section 2).

Sites whose joint column $(W^o, W^v, W^q, W^k)_i$ is the same behave alike, so a
network of any size is a short list of distinct columns and the fraction of sites
that has each:

    W^alpha_{a,c}  (4, M, S)    semantic patterns, +-1        `semantic`
    w_c            (S,)         site fractions, sum to one    `fractions`
    W^{alpha,p}    (4, M, N_p)  positional patterns, +-1      `positional`

The four kinds are ordered as `KINDS` = o, v, q, k; M patterns, S site classes, N_p
positional bits.  All numbers are dimensionless.
"""

import difflib
import itertools
import json
import operator
import reprlib
from collections import Counter
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

import jax
import numpy as np
from jaxtyping import Array, Float, Key

from statmech_attn import inputs, presentation, storage
from statmech_attn.batches import rng
from statmech_attn.labels import Variable
from statmech_attn.options import Count, NotNegatives, Numbers, WholeNumber


KINDS = ("o", "v", "q", "k")
MAX_BYTES = 2**25  # of a pattern file
NO_NUMBERS = (ValueError, TypeError, OverflowError)  # of NumPy, on what is no array
MAX_NUMBER = 1e15  # in a pattern file
MAX_PATTERNS = 4096
MAX_ENTRIES = 2**24  # of W^alpha
MAX_EXACT_PATTERNS = 12  # 2^12 classes: beyond it, draw columns instead


class Patterns(NamedTuple):
    """Site classes of a network; build with the functions of this module.

    Attributes:
        semantic: patterns o, v, q, k (4) by pattern and site class, +-1.
        fractions: share of the sites in each class; they sum to one.
        positional: patterns of the positional code, +-1, most significant bit first.
    """

    semantic: Float[np.ndarray, "4 M S"]
    fractions: Float[np.ndarray, " S"]
    positional: Float[np.ndarray, "4 M N_p"]

    _shown = (
        Variable("patterns", "", "patterns", symbol="M", value=lambda p: p.n_patterns),
        Variable(
            "classes", "", "site classes", symbol="S", value=lambda p: p.n_classes
        ),
        Variable("bits", "", "positional bits", symbol="N_p", value=lambda p: p.n_bits),
        Variable(
            "semantic",
            "kind pattern class",
            "semantic patterns",
            symbol="W^α",
            line=False,
        ),
        Variable("fractions", "class", "site fractions", symbol="w_c"),
        Variable(
            "positional",
            "kind pattern bit",
            "positional patterns",
            symbol="W^{α,p}",
            line=False,
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def n_patterns(self) -> int:
        """Number M of patterns."""
        return self.semantic.shape[1]

    @property
    def n_classes(self) -> int:
        """Number S of site classes."""
        return self.fractions.size

    @property
    def n_bits(self) -> int:
        """Number N_p of bits of the positional code."""
        return self.positional.shape[2]


def _of_patterns(row: Variable):
    """How a pattern file has what its patterns have."""
    read = row.value if callable(row.value) else operator.attrgetter(row.name)
    return lambda file: read(file.patterns)


class PatternFile(NamedTuple):
    """A pattern file: the patterns and the settings stored beside them.

    Attributes:
        patterns: site classes of the network.
        context: number C of tokens that attention reads.
        epsilon: weight of the positional code.
        gamma: inverse temperature of attention.
        checkpoint: attention window, newest first, and the position of the next token;
            None if the file has none.
    """

    patterns: Patterns
    context: int
    epsilon: float
    gamma: float
    checkpoint: tuple[Float[np.ndarray, "C M"], int] | None

    _shown = (
        *(row._replace(value=_of_patterns(row)) for row in Patterns._shown),
        Variable("context", "", "context length", "token", "C"),
        Variable("gamma", "", "inverse temperature of attention", symbol="γ"),
        Variable("epsilon", "", "weight of the positional part", symbol="ε"),
        Variable(
            "window",
            "position pattern",
            "attention window to start from",
            symbol="A",
            value=lambda f: f.checkpoint and f.checkpoint[0],
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


def site_classes(
    semantic: Numbers,
    fractions: NotNegatives | None = None,
    positional: Numbers | None = None,
) -> Patterns:
    """Validate explicit site classes.

    Args:
        semantic: (4, M, S) array of +-1, kinds ordered o, v, q, k.
        fractions: (S,) site fractions; equal when omitted.
        positional: (4, M, N_p) array of +-1; no positional bits when omitted.

    Returns:
        `Patterns`, for `network`.

    Raises:
        ValueError: an entry is not +-1, shapes disagree, or the fractions are
            negative or do not sum to one.

    Example:
        >>> p = site_classes([[[1, 1]], [[1, -1]], [[1, 1]], [[1, 1]]])
        >>> p.n_patterns, p.n_classes
        (1, 2)
    """
    semantic = _signs("semantic", semantic)
    n_patterns, n_classes = semantic.shape[1:]
    if n_patterns > MAX_PATTERNS:
        raise ValueError(
            f"semantic: need {MAX_PATTERNS} patterns at most; got {n_patterns}."
        )
    if fractions is None:
        fractions = np.full(n_classes, 1 / n_classes)
    fractions = np.asarray(fractions, float)
    if fractions.shape != (n_classes,):
        raise ValueError(
            f"fractions: need one per site class ({n_classes}); "
            f"got shape {fractions.shape}."
        )
    if not (fractions >= 0).all() or abs(fractions.sum() - 1) > 1e-12 * n_classes:
        raise ValueError(
            "fractions: site fractions must be >= 0 and sum to one; "
            f"got {np.array2string(fractions, threshold=6)} "
            f"with sum {fractions.sum():.15g}."
        )
    if positional is None:
        positional = np.ones((4, n_patterns, 0))
    positional = _signs("positional", positional)
    if positional.shape[1] != n_patterns:
        raise ValueError(
            f"positional: need {n_patterns} patterns as in semantic; "
            f"got {positional.shape[1]}."
        )
    return Patterns(semantic, fractions, positional)


def from_matrices(
    o: Numbers, v: Numbers, q: Numbers, k: Numbers, positional: Numbers | None = None
) -> Patterns:
    """Patterns from four matrices, with equal columns joined to site classes.

    Args:
        o: output patterns W^o, (M, N) of +-1.
        v: value patterns W^v, likewise.
        q: query patterns W^q, likewise.
        k: key patterns W^k, likewise.
        positional: (4, M, N_p) of +-1, most significant bit first; none when omitted.

    Returns:
        Patterns whose fractions are the shares of the distinct columns.

    Raises:
        ValueError: shapes that differ, or entries other than +-1.

    Example:
        >>> w = [[1, 1, -1]]
        >>> from_matrices(w, w, w, w).fractions
        array([0.33333333, 0.66666667])
    """
    shapes = {np.shape(x) for x in (o, v, q, k)}
    if len(shapes) != 1:
        raise ValueError(
            f"o, v, q, k must have one shape (M, N); got {sorted(shapes)}."
        )
    stacked = _signs(
        "o, v, q, k", np.stack([np.asarray(x, float) for x in (o, v, q, k)])
    )
    n_patterns, n_sites = stacked.shape[1:]
    columns, counts = np.unique(
        stacked.reshape(4 * n_patterns, n_sites), axis=1, return_counts=True
    )
    semantic = columns.reshape(4, n_patterns, -1)
    return site_classes(semantic, counts / n_sites, positional)


def random_segments(
    key: Key[Array, ""], *, n_patterns: Count, n_segments: Count, n_bits: WholeNumber
) -> Patterns:
    """Random patterns on equal segments of sites, as in the paper.

    Args:
        key: random key of JAX.
        n_patterns: number M of patterns.
        n_segments: number S of segments; all sites of a segment have the same random
            column.
        n_bits: number N_p of bits of the positional code.

    Returns:
        Patterns with S site classes of equal fractions.

    Example:
        >>> import jax
        >>> patterns = random_segments(
        ...     jax.random.key(0), n_patterns=3, n_segments=5, n_bits=2)
        >>> patterns.semantic.shape
        (4, 3, 5)
    """
    _check_sizes(n_patterns, n_segments=n_segments, n_bits=n_bits)
    semantic_key, positional_key = jax.random.split(key)
    return site_classes(
        _draw(semantic_key, (4, n_patterns, n_segments)),
        positional=_draw(positional_key, (4, n_patterns, n_bits)),
    )


def random_independent(
    key: Key[Array, ""], *, n_patterns: Count, n_sites: Count, n_bits: WholeNumber
) -> Patterns:
    """Independent random patterns of a network of `n_sites` spins.

    The sampled fractions are those of this one finite network, so its map is the
    "finite" mean field of the paper.

    Args:
        key: random key of JAX.
        n_patterns: number M of patterns.
        n_sites: number N of spins.
        n_bits: number N_p of bits of the positional code.

    Returns:
        Patterns with one site class for every distinct column.

    Example:
        >>> import jax
        >>> patterns = random_independent(
        ...     jax.random.key(0), n_patterns=2, n_sites=1000, n_bits=2)
        >>> patterns.n_classes  # of at most 2^8 distinct columns
        254
    """
    _check_sizes(n_patterns, n_sites=n_sites, n_bits=n_bits)
    semantic_key, positional_key = jax.random.split(key)
    matrices = _draw(semantic_key, (4, n_patterns, n_sites))
    return from_matrices(
        *matrices, positional=_draw(positional_key, (4, n_patterns, n_bits))
    )


def cycle(key: Key[Array, ""], *, n_patterns: Count, n_bits: WholeNumber) -> Patterns:
    """Patterns that recall a cycle: o = q = k independent, v_a = o_{a+1 mod M}.

    Recall goes down in number: where a token is o_a, the value that agrees with it is
    v_{a-1}, which draws o_{a-1} next.

    All 2^M columns with equal fractions, the exact limit of infinitely many sites;
    only the positional patterns are drawn from the key.

    Args:
        key: random key of JAX.
        n_patterns: number M of patterns.
        n_bits: number N_p of bits of the positional code.

    Returns:
        Patterns with 2^M site classes.

    Raises:
        ValueError: there are too many patterns for 2^M site classes.

    Example:
        >>> import jax
        >>> cycle(jax.random.key(0), n_patterns=3, n_bits=2).n_classes
        8
    """
    _check_sizes(n_patterns, n_bits=n_bits)
    if n_patterns > MAX_EXACT_PATTERNS:
        raise ValueError(
            f"cycle: 2^M site classes need M <= {MAX_EXACT_PATTERNS}; got {n_patterns}."
        )
    o = np.array(list(itertools.product((1.0, -1.0), repeat=n_patterns))).T
    v = np.roll(o, -1, axis=0)
    signs = _draw(key, (1, n_patterns, n_bits))[0]
    positional = np.stack([signs, np.roll(signs, -1, axis=0), signs, signs])
    return site_classes(np.stack([o, v, o, o]), positional=positional)


def presets() -> list[str]:
    """Names of the patterns shipped with the package.

    Example:
        >>> "poclopez-pe2" in presets()
        True
    """
    folder = resources.files("statmech_attn.dmft") / "presets"
    return sorted(
        f.name[: -len(".json")] for f in folder.iterdir() if f.name.endswith(".json")
    )


def load(name_or_path: str | Path) -> PatternFile:
    """Read a preset by its name, or a pattern file by its path.

    Args:
        name_or_path: a name in `presets()`, or the path of a JSON file
            (docs/patterns.md).

    Returns:
        The patterns, and the context, gamma, epsilon and checkpoint stored with them.

    Raises:
        ValueError: no such preset (the nearest name is suggested), or a file whose
            content is not a valid pattern file.
        FileNotFoundError: a path that does not exist.

    Example:
        >>> load("poclopez-pe2").patterns.n_patterns
        3
    """
    name = str(name_or_path)
    if name in presets():
        source = resources.files("statmech_attn.dmft") / "presets" / f"{name}.json"
        return _parse(source.read_text(), name)
    path = Path(name)
    if path.suffix != ".json" and "/" not in name and not path.exists():
        near = difflib.get_close_matches(name, presets(), n=1, cutoff=0.0)[0]
        raise ValueError(
            f"no preset {name!r}; did you mean {near!r}? "
            f"Presets: {', '.join(presets())}; or give the path of a .json file."
        )
    if not path.exists():
        raise FileNotFoundError(f"pattern file {name!r} does not exist.")
    text = inputs.content(path, MAX_BYTES).decode("utf-8-sig", "replace")
    return _parse(text, name)


def save(path: str | Path, file: PatternFile, *, overwrite: bool = False) -> None:
    """Write patterns as the JSON file that `load` and studies read (docs/patterns.md).

    Args:
        path: JSON file to write.
        file: patterns, and the settings beside them.
        overwrite: replace a file that is there.

    Raises:
        ValueError: what `load` would refuse.
        FileExistsError: the file is there, unless `overwrite`.
        StorageError: it cannot be written; what was there stays.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     save(f"{folder}/mine.json", load("poclopez-pe2"))
        ...     load(f"{folder}/mine.json").context
        4
    """
    by_kind = lambda signs: {
        kind: signs[i].astype(int).tolist() for i, kind in enumerate(KINDS)
    }
    table = {
        "context": file.context,
        "epsilon": file.epsilon,
        "gamma": file.gamma,
        "semantic": by_kind(file.patterns.semantic),
        "fractions": file.patterns.fractions.tolist(),
        "positional": by_kind(file.patterns.positional),
    }
    if file.checkpoint is not None:
        window, position = file.checkpoint
        table["start"] = {"window": window.tolist(), "next_position": position}
    text = json.dumps(table)
    _parse(text, str(path))
    if not overwrite:
        storage.require_new(path)
    storage.write_text(path, text + "\n")


def _parse(text: str, name: str) -> PatternFile:
    try:
        d = _table("the file", json.loads(text, object_pairs_hook=_once))
        semantic = _by_kind(d, "semantic")
        positional = _by_kind(d, "positional")
        context = _whole(d, "context", 1)
        epsilon, gamma = _number(d, "epsilon"), _number(d, "gamma")
        fractions = _listed("fractions", d["fractions"], 1)
        patterns, checkpoint = site_classes(semantic, fractions, positional), None
        if d.get("start") is not None:
            start = _table("start", d["start"])
            checkpoint = (
                np.asarray(_listed("start.window", start["window"], 2), float),
                _whole(start, "next_position", 0),
            )
    except KeyError as missing:
        raise ValueError(f"pattern file {name}: key {missing} is missing.") from None
    except (*NO_NUMBERS, RecursionError) as error:
        raise ValueError(f"pattern file {name}: {_in_one_line(error)}") from None
    shape = (context, patterns.n_patterns)
    if checkpoint is not None and checkpoint[0].shape != shape:
        raise ValueError(
            f"pattern file {name}: start.window must be (context, M) = {shape}; "
            f"got {checkpoint[0].shape}."
        )
    if checkpoint is not None and not (np.abs(checkpoint[0]) <= 1).all():
        raise ValueError(
            f"pattern file {name}: start.window must lie in [-1, 1]; got "
            f"{np.abs(checkpoint[0]).max():g}."
        )
    return PatternFile(patterns, context, epsilon, gamma, checkpoint)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A table of a JSON file, whose keys must be there once."""
    table = dict(pairs)
    if len(table) < len(pairs):
        (twice, _), *_ = Counter(key for key, _ in pairs).most_common(1)
        raise ValueError(f"key {reprlib.repr(twice)} is there twice.")
    return table


def _table(name: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{name}: must be a table of keys; got {reprlib.repr(value)}.")
    return value


def _by_kind(table: dict[str, Any], key: str) -> list:
    kinds = _table(key, table[key])
    return [_listed(f"{key}.{kind}", kinds[kind], 2) for kind in KINDS]


def _listed(name: str, value: Any, depth: int) -> list:
    """Lists of numbers, which in JSON are no truth values, as deep as is said."""

    def fits(x: Any, depth: int) -> bool:
        if not depth:
            return type(x) in (int, float)
        return isinstance(x, list) and all(fits(y, depth - 1) for y in x)

    if not fits(value, depth):
        lists = "a list" if depth == 1 else "lists"
        raise ValueError(
            f"{name}: must be {lists} of numbers; got {reprlib.repr(value)}."
        )
    return value


def _number(table: dict[str, Any], key: str) -> float:
    """A finite number of a JSON file."""
    value = table[key]
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not abs(value) <= MAX_NUMBER:
        raise ValueError(f"{key}: must be a finite number; got {reprlib.repr(value)}.")
    return float(value)


def _whole(table: dict[str, Any], key: str, least: int) -> int:
    value = table[key]
    if type(value) is not int or not least <= value <= MAX_NUMBER:
        raise ValueError(
            f"{key}: must be a whole number >= {least}; got {reprlib.repr(value)}."
        )
    return value


def _in_one_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)[:200]


def _signs(name: str, values: Any) -> Float[np.ndarray, "4 M n"]:
    try:
        array = np.asarray(values, float)
    except NO_NUMBERS:
        raise ValueError(f"{name}: rows must be numbers of one length.") from None
    if array.ndim != 3 or array.shape[0] != 4 or array.shape[1] < 1:
        raise ValueError(
            f"{name}: need shape (4, M, columns), kinds o, v, q, k; got {array.shape}."
        )
    if not np.isin(array, (-1.0, 1.0)).all():
        bad = array[~np.isin(array, (-1.0, 1.0))].flat[0]
        raise ValueError(f"{name}: patterns are +1 or -1; got {bad:g}.")
    return array


def _draw(key: Key[Array, ""], shape: tuple[int, ...]) -> Float[np.ndarray, "..."]:
    return 2.0 * rng.bernoulli(key, 0.5, shape) - 1.0


def _check_sizes(n_patterns: int, **columns: int) -> None:
    """Refuse sizes of patterns, by name: not positive, or too large for memory."""
    for name, size in {"n_patterns": n_patterns, **columns}.items():
        if size < 1 and name != "n_bits":
            raise ValueError(f"{name} must be at least 1; got {size}.")
    for name, size in columns.items():
        if 4 * n_patterns * size > MAX_ENTRIES:
            raise ValueError(
                f"n_patterns x {name} must be at most {MAX_ENTRIES // 4}; got "
                f"{n_patterns} x {size}."
            )
