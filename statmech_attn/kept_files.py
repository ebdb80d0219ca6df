"""What one process makes and others of its user read: files beside XLA's programs.

An entry holds code, or what becomes code, and the store may be shared.  So its name and
its content are sealed with a key that its user alone can read: what somebody else has
written, or what was cut off or damaged, is no entry, wherever it lies.  Without such a
key, without a store of JAX (`jax_compilation_cache_dir`), or where it cannot be
written, nothing is kept.
"""

import contextlib
import hashlib
import hmac
import os
import secrets
import tempfile
import warnings
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import jax


DIGEST = hashlib.sha256
SECRET = 32  # bytes


def cache_folder() -> Path:
    """Folder of what the package would otherwise make anew for this user."""
    root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return root / "statmech_attn"


@cache
def secret() -> bytes:
    """What seals files that this user makes, and that nobody else can know.

    It is kept in the user's cache; where none can be kept, this process has its own.
    """
    return _stored_secret() or secrets.token_bytes(SECRET)


@cache
def _stored_secret() -> bytes | None:
    try:
        path = cache_folder() / "secret"
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            pass
        else:
            with os.fdopen(handle, "wb") as file:
                file.write(secrets.token_bytes(SECRET))
        status, content = path.stat(), path.read_bytes()
    except (OSError, RuntimeError):  # no home
        return None
    ours = status.st_uid == os.getuid() and not status.st_mode & 0o077
    return content if ours and len(content) == SECRET else None


def digest(parts: Sequence[str]) -> str:
    """A name for texts; of ["a", "b"] another one than of ["ab"]."""
    return DIGEST("\0".join(parts).encode()).hexdigest()


def read(folder: str, parts: Sequence[str]) -> bytes | None:
    """The content of an entry; None where there is none that this user has written.

    `folder` is below the store of JAX; `parts` are all that the entry depends on.
    """
    path = _entry(folder, parts)
    if path is None:
        return None
    try:
        content = path.read_bytes()
    except OSError:
        return None
    size = DIGEST().digest_size
    if hmac.compare_digest(_seal(content[size:]), content[:size]):
        return content[size:]
    warnings.warn(
        f"{path.parent}: an entry is damaged, or was written by somebody else; it is "
        "made anew.",
        stacklevel=2,
    )
    return None


def write(folder: str, parts: Sequence[str], content: bytes) -> None:
    """Keep an entry, if anything can be kept; others see the whole of it or none."""
    path = _entry(folder, parts)
    if path is None:
        return
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, delete=False) as file:
            file.write(_seal(content) + content)
        os.replace(file.name, path)


def _entry(folder: str, parts: Sequence[str]) -> Path | None:
    store = jax.config.jax_compilation_cache_dir  # type: ignore[attr-defined]
    if not store or "://" in store or not jax.config.jax_enable_compilation_cache:  # type: ignore[attr-defined]
        return None
    if _stored_secret() is None:
        return None
    return Path(store) / folder / _seal(digest(parts).encode()).hex()


def _seal(content: bytes) -> bytes:
    return hmac.digest(secret(), content, DIGEST)
