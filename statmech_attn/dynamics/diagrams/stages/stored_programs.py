"""What the compiled stages of a diagram depend on, where they can be kept.

A stage is traced from the functions of a system and from those of this package.  Where
the system consists of parts of the package, all that its trace depends on has a name:
the parts, the numbers of the plan, the source of the package, the settings of JAX, and
this machine.  The trace of a system of one's own depends on code that has none.
"""

import dataclasses
import functools
import hashlib
import inspect
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import psutil

import statmech_attn
from statmech_attn import storage
from statmech_attn.batches import Origin
from statmech_attn.dynamics.maps.systems import System


PACKAGE = statmech_attn.__name__
VERSIONS = ("package_version", "git_describe")  # of the package, whose source counts


def origin_of(system: System, *numbers: Any) -> Origin | None:
    """All that the stages of a system of this package depend on.

    `numbers` are written into the programs. Returns None for a system with functions of
    one's own, and where the source of this package may no longer be what this process
    has imported.
    """
    source = _source()
    try:
        parts = _described(system)
    except TypeError:
        return None
    if source is None:
        return None
    leaves = [id(x) for x in jax.tree.leaves(system)]
    same = [leaves.index(x) for x in leaves]  # arrays that are one argument
    values = jax.config.values.items()  # type: ignore[attr-defined]
    settings = {name: getattr(jax.config, name, value) for name, value in values}
    machine = {n: x for n, x in storage.environment().items() if n not in VERSIONS}
    trace = source, parts, *map(repr, (same, settings, *numbers))
    return Origin(trace, (repr(machine),))


def _described(part: Any) -> str:
    """A part of a system in words: arrays, which are arguments, by their shapes."""
    if eqx.is_array(part):
        return str(jax.typeof(part))
    if part is None or isinstance(part, bool | int | float | str):
        return repr(part)
    module = getattr(part, "__module__", None) or ""  # none of what `exec` defines
    of_package = module.split(".")[0] == PACKAGE
    if of_package and isinstance(part, eqx.Module):
        names = [field.name for field in dataclasses.fields(part)]
        fields = [f"{name}={_described(getattr(part, name))}" for name in names]
        return f"{part.__module__}.{type(part).__qualname__}({', '.join(fields)})"
    if of_package and inspect.isfunction(part) and part.__qualname__.isidentifier():
        return f"{part.__module__}.{part.__qualname__}"
    raise TypeError(f"{part!r} is not of this package.")


@functools.cache
def _source() -> str | None:
    """SHA-256 of the package; None where a file is younger than this process."""
    digest, begun = hashlib.sha256(), psutil.Process().create_time()
    for path in sorted(Path(statmech_attn.__file__).parent.rglob("*.py")):
        if path.stat().st_mtime >= begun:
            return None
        digest.update(f"{path}\0".encode() + path.read_bytes())
    return digest.hexdigest()
