"""How a process that computes studies sets up JAX."""

import importlib.metadata
import os
import re
import resource
from typing import Any

import psutil

from statmech_attn.reporting import size


# Bytes for compilations: on two cores 0.7 GiB were too few, 0.9 GiB enough.
ADDRESS_SPACE = 3 * 2**29
FUSED = "xla_cpu_use_fusion_emitters"  # the newer of two generators of loops for CPUs


def has_fused() -> bool:
    """Whether this jaxlib has both generators; from 0.11.1 on it has the older alone.

    The older one compiles in two thirds of the time, and what it makes is as fast or
    faster.  The last digits of what the newer one makes do not depend on the width of a
    batch (`lanes`).
    """
    return jaxlib() < (0, 11, 1)


def jaxlib() -> tuple[int, ...]:
    """The three numbers of jaxlib's version."""
    version = re.findall(r"\d+", importlib.metadata.version("jaxlib"))
    return tuple(int(number) for number in version[:3])


def compile_quickly() -> None:
    """Let programs be made by the older generator, unless they ask for the newer one.

    Holds for this process and those that it begins, if JAX has not computed yet.
    """
    flags = os.environ.get("XLA_FLAGS", "")
    if has_fused() and FUSED not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} --{FUSED}=false".strip()


def device() -> Any:
    """The device that JAX computes on; `ValueError` where JAX_PLATFORMS has none."""
    import jax

    try:
        return jax.devices()[0]
    except (RuntimeError, AssertionError) as error:
        named = os.environ.get("JAX_PLATFORMS")
        if not named:
            raise
        reason = next(iter(str(error).splitlines()), "it finds no such device")
        raise ValueError(
            f"JAX_PLATFORMS={named}: JAX cannot use it: {reason}."
        ) from None


def require_address_space() -> None:
    """Refuse a limit of virtual memory under which compilations end the process.

    XLA compiles on threads, each with a stack and an arena of its own; where one of
    them finds no addresses the process aborts, or ends in a segmentation fault.
    """
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit == resource.RLIM_INFINITY:
        return
    used = psutil.Process().memory_info().vms
    if limit - used < ADDRESS_SPACE:
        raise ValueError(
            f"the limit of virtual memory (ulimit -v) must be at least "
            f"{size(used + ADDRESS_SPACE)}, or compilations would end this process; "
            f"it is {size(limit)}."
        )


def prepare() -> None:
    """Have a device, double precision, and quick compilations in the user's cache."""
    import jax

    from statmech_attn import kept_files

    compile_quickly()
    device()
    require_address_space()

    jax.config.update("jax_enable_x64", True)
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        jax.config.update(
            "jax_compilation_cache_dir", str(kept_files.cache_folder() / "jax")
        )
    if "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS" not in os.environ:
        # To read a small program takes a tenth of the time to compile it.
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
