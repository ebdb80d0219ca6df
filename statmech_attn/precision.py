"""Double precision is required, never switched on behind the user's back."""

import jax


def require_double() -> None:
    """Raise `RuntimeError` unless JAX computes in float64.

    Example:
        >>> import jax
        >>> jax.config.update("jax_enable_x64", True)
        >>> require_double()
    """
    if not jax.config.jax_enable_x64:
        raise RuntimeError(
            "statmech_attn needs double precision: call "
            'jax.config.update("jax_enable_x64", True) before building arrays, '
            "or set JAX_ENABLE_X64=1."
        )
