"""How a process that computes studies sets up JAX."""

import os
from pathlib import Path


def prepare() -> None:
    """Double precision, and compilations kept between runs in the user's cache."""
    import jax

    jax.config.update("jax_enable_x64", True)
    if "JAX_COMPILATION_CACHE_DIR" not in os.environ:
        root = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
        jax.config.update(
            "jax_compilation_cache_dir", str(root / "statmech_attn" / "jax")
        )
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.5)
