"""Double precision is required, never switched on behind the user's back."""

from typing import Any

import jax.numpy as jnp
import numpy as np

from statmech_attn.batches.lapack import one_at_a_time


one_at_a_time()


def require_double() -> None:
    """Raise `RuntimeError` unless JAX computes in float64."""
    if jnp.result_type(float) != jnp.float64:
        raise RuntimeError(
            "statmech_attn needs double precision: call statmech_attn.setup() before "
            'building arrays, or jax.config.update("jax_enable_x64", True), or set '
            "JAX_ENABLE_X64=1."
        )


def require_real(name: str, values: Any) -> None:
    """Refuse complex numbers, of which a conversion would drop the imaginary parts."""
    try:
        is_complex = np.iscomplexobj(values)
    except ValueError:  # lists of different lengths, which a conversion refuses
        return
    if is_complex:
        raise ValueError(
            f"{name} must hold real numbers; got complex ones: give the real parts."
        )
