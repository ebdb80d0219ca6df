"""What one process makes and others read: files beside the stored programs of XLA.

An entry is named by a digest of what it depends on.  It begins with a digest of its own
content, so that an entry that was cut off or damaged is none.  Without a store of JAX
(`jax_compilation_cache_dir`), or where it cannot be written, nothing is kept.
"""

import contextlib
import hashlib
import os
import tempfile
from collections.abc import Sequence
from pathlib import Path

import jax


DIGEST = hashlib.sha256


def digest(parts: Sequence[str]) -> str:
    """A name for texts.

    Example:
        >>> digest(["a", "b"]) == digest(["ab"])
        False
    """
    return DIGEST("\0".join(parts).encode()).hexdigest()


def read(folder: str, parts: Sequence[str]) -> bytes | None:
    """The content of an entry; None where there is none, or a damaged one.

    Args:
        folder: below the store of JAX.
        parts: all that the entry depends on.

    Example:
        >>> read("examples", ["never written"]) is None
        True
    """
    path = _entry(folder, parts)
    if path is None:
        return None
    try:
        content = path.read_bytes()
    except OSError:
        return None
    size = DIGEST().digest_size
    intact = DIGEST(content[size:]).digest() == content[:size]
    return content[size:] if intact else None


def write(folder: str, parts: Sequence[str], content: bytes) -> None:
    """Keep an entry, if anything can be kept; others see the whole of it or none.

    Args:
        folder: below the store of JAX.
        parts: all that the entry depends on.
        content: of the entry.
    """
    path = _entry(folder, parts)
    if path is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(DIGEST(content).digest() + content)
        os.replace(file.name, path)


def _entry(folder: str, parts: Sequence[str]) -> Path | None:
    store = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if not store or "://" in store or not jax.config.jax_enable_compilation_cache:  # type: ignore[attr-defined]
        return None
    return Path(store) / folder / digest(parts)
