"""The birth certificate of a file: what made it, where, when, and from which study."""

import json
import platform
import shlex
import sys
from collections.abc import Mapping
from datetime import datetime, UTC
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import xarray as xr

import statmech_attn
from statmech_attn.batches import runtime
from statmech_attn.storage.machine import environment, git_describe, version
from statmech_attn.storage.schema import (
    plain_text,
    SCHEMA,
    SCHEMA_VERSION,
    study_digest,
    study_kind,
)


PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "equinox", "xarray", "h5py", "h5netcdf")


def now() -> datetime:
    """The time in UTC, for `started`.

    Example:
        >>> str(now().tzinfo)
        'UTC'
    """
    return datetime.now(UTC)


def provenance(
    study: str,
    *,
    kind: str | None = None,
    keys: Mapping[str, Any] | None = None,
    started: datetime | None = None,
    elapsed: float | None = None,
    busy: float | None = None,
    history: str = "",
) -> dict[str, Any]:
    """The file attributes that say how a result came about; unknown ones are absent.

    `history` is that of what the result was made from, a line for every program before.
    """
    digest = study_digest(study)
    kind = kind or study_kind(study)
    if not kind:
        raise ValueError("kind must be given, or a study that has the key kind.")
    plain_text("kind", kind)
    if started is not None and started.tzinfo is None:
        raise ValueError("started: needs a time zone; use storage.now().")
    device = runtime.device()
    finished, command, described = now().isoformat(), command_line(), git_describe()
    known = {
        "Conventions": "CF-1.11",
        "title": f"{kind.replace('-', ' ')}: a result of statmech_attn",
        "history": f"{history}\n{finished}: {command}".strip(),
        "source": f"statmech_attn {described or statmech_attn.__version__}, "
        f"jaxlib {version('jaxlib')}",
        "schema": SCHEMA,
        "schema_version": SCHEMA_VERSION,
        "kind": kind,
        "study": study,
        "study_sha256": digest,
        "keys": json.dumps({k: _plain_key(v) for k, v in (keys or {}).items()}),
        "package_version": statmech_attn.__version__,
        "git_describe": described,
        "versions": json.dumps(versions()),
        "platform": platform.platform(),
        "backend": jax.default_backend(),
        "device_kind": device.device_kind,
        "dtype": jnp.result_type(float).name,
        "environment": json.dumps(environment()),
        "started": started and started.astimezone(UTC).isoformat(),
        "finished": finished,
        "elapsed": elapsed,
        "busy": busy,
        "command": command,
    }
    return {name: value for name, value in known.items() if value is not None}


def with_provenance(dataset: xr.Dataset, study: str, **how: Any) -> xr.Dataset:
    """A result in memory with the attributes that its file would have."""
    return dataset.assign_attrs(provenance(study, **how))


def origin(attributes: Mapping[str, Any]) -> dict[str, Any]:
    """The provenance of a result, from its attributes, as `write` takes it.

    Args:
        attributes: of a data set.

    Returns:
        Keyword arguments of `write`.

    Example:
        >>> origin({"keys": '{"run": 1}', "elapsed": 2.5})["keys"]
        {'run': 1}
    """
    started = attributes.get("started")
    return {
        "keys": json.loads(attributes.get("keys", "{}")),
        "started": started and datetime.fromisoformat(started),
        "elapsed": attributes.get("elapsed"),
        "busy": attributes.get("busy"),
    }


def versions() -> dict[str, str]:
    """Versions of Python and of the packages that the numbers depend on."""
    packages = {name: version(name) for name in PACKAGES}
    return {"python": platform.python_version(), **packages}


def command_line() -> str:
    """The command as typed, without the folder of the program.

    Bytes that are not UTF-8 are written out.
    """
    program, *arguments = sys.argv or [""]
    typed = shlex.join([Path(program).name or "python", *arguments])
    return typed.encode(errors="backslashreplace").decode()


def _plain_key(key: Any) -> Any:
    """A random key or seed as numbers that JSON can hold."""
    if isinstance(key, jax.Array) and jnp.issubdtype(key.dtype, jax.dtypes.prng_key):
        data = np.asarray(jax.random.key_data(key)).tolist()
        return {"impl": str(jax.random.key_impl(key)), "data": data}
    return np.asarray(key).tolist()
