"""Double precision is required, never switched on behind the user's back."""

import jax.numpy as jnp

from statmech_attn.batches.lapack import one_at_a_time


one_at_a_time()


def require_double() -> None:
    """Raise `RuntimeError` unless JAX computes in float64.

    Raises:
        RuntimeError: JAX computes in float32.

    Example:
        >>> import jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> require_double()
    """
    if jnp.result_type(float) != jnp.float64:
        raise RuntimeError(
            "statmech_attn needs double precision: call statmech_attn.setup() before "
            'building arrays, or jax.config.update("jax_enable_x64", True), or set '
            "JAX_ENABLE_X64=1."
        )
