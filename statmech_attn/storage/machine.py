"""What may change the last bit of a result: versions, device, processor, threads.

The same program on another processor, or with another number of threads, adds the
same numbers in another order: XLA chooses instructions by the processor, and cuts long
sums by the number of threads, as the linear algebra of a CPU does.
"""

import functools
import os
import platform
import re
import subprocess
from importlib import metadata
from pathlib import Path

import jax
import jax.numpy as jnp
from jax.extend.backend import get_backend

import statmech_attn
from statmech_attn.batches import runtime


PACKAGES = ("jax", "jaxlib", "numpy", "scipy", "equinox")
SETTINGS = ("XLA_FLAGS", "PJRT_NPROC", "NPROC", "OMP_NUM_THREADS")
SETTINGS += ("OPENBLAS_NUM_THREADS", "JAX_DEFAULT_MATMUL_PRECISION")
# Between two of these, XLA makes other programs (its option xla_cpu_max_isa).
INSTRUCTIONS = {"sse4_2", "avx", "avx2", "fma", "avx512f", "avx512_vnni"}
INSTRUCTIONS |= {"avx512_bf16", "amx_bf16", "amx_fp16", "asimd", "sve", "sve2"}
DESCRIPTION = Path("/proc/cpuinfo")


def environment() -> dict[str, str]:
    """Everything here that may change the last bit of a result; unknown is absent.

    `cpu_threads` are the cores that this process may use: the length of the pieces in
    which XLA adds on a CPU depends on it.  The name of the machine is left out.
    """
    device = runtime.device()
    facts = {
        "package_version": statmech_attn.__version__,
        "git_describe": git_describe(),
        **{name: version(name) for name in PACKAGES},
        "libc": " ".join(platform.libc_ver()).strip(),
        "backend": jax.default_backend(),
        "device_kind": device.device_kind,
        "driver": _driver(),
        "n_devices": str(jax.device_count()),
        "dtype": jnp.result_type(float).name,
        "cpu_model": cpu_model(),
        "cpu_instructions": _cpu_instructions(),
        "cpu_threads": str(_cpu_threads()),
        **{name: os.environ.get(name) for name in SETTINGS},
    }
    return {name: value for name, value in facts.items() if value}


@functools.cache
def version(package: str) -> str:
    """The version of an installed package; looking it up takes a millisecond."""
    return metadata.version(package)


@functools.cache
def git_describe() -> str | None:
    """`git describe --always --dirty` when run from a checkout, else None."""
    root = Path(statmech_attn.__file__).resolve().parents[1]
    if not (root / ".git").exists():
        return None
    describe = ("describe", "--always", "--tags", "--dirty")
    return _output_of("git", "-C", str(root), *describe)


@functools.cache
def cpu_model() -> str | None:
    """Name of the processor, with what tells its generation; None where unknown."""
    text = _cpu_description()
    name = _field(text, "model name")
    parts = [
        f"{key} {value}"
        for key in ("family", "model", "stepping", "implementer", "part")
        if (value := _field(text, f"(?:cpu |CPU )?{key}"))
    ]
    if platform.system() == "Darwin":
        name = _output_of("sysctl", "-n", "machdep.cpu.brand_string")
    if name or parts:
        return " ".join(filter(None, (name, f"({', '.join(parts)})" if parts else "")))
    return platform.processor() or None


@functools.cache
def _cpu_instructions() -> str | None:
    flags = _field(_cpu_description(), "flags|Features") or ""
    return " ".join(sorted(INSTRUCTIONS & set(flags.split()))) or None


def _cpu_threads() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _driver() -> str | None:
    """Versions below JAX of a device that is not the CPU, such as CUDA's."""
    if jax.default_backend() == "cpu":
        return None
    return " ".join(get_backend().platform_version.split())


def _cpu_description() -> str:
    try:
        return DESCRIPTION.read_text(errors="replace")
    except OSError:  # not Linux
        return ""


def _field(text: str, name: str) -> str | None:
    """The first field of this name in the description of the processors."""
    match = re.search(rf"^(?:{name})\s*:[ \t]*(\S.*)$", text, re.MULTILINE)
    return match and match[1].strip()


def _output_of(*command: str) -> str | None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=20)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None
