r"""Multilinear derivatives of a residual (docs/theory/continuation.md, section 4).

With $G: R^{n+1} \to R^n$ at u and real or complex directions a, b, c in $C^{n+1}$

    `second`  $D^2 G\,[a, b]$                  the form B
    `third`   $D^3 G\,[a, b, c]$               the form C
    `slopes`  $\partial_u\, (l^* DG(u)\, r)$   how an entry of a bordered matrix moves

from nested forward differentiation; no tensor of derivatives is built.
"""

import itertools
from collections.abc import Callable

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Complex


def along(function: Callable, direction: Array) -> Callable:
    """The derivative of a function in a direction, again a function."""
    return lambda u: jax.jvp(function, (u,), (direction,))[1]


@eqx.filter_jit
def _second(residual, u, a, b):
    return along(along(residual, a), b)(u)


@eqx.filter_jit
def _third(residual, u, a, b, c):
    return along(along(along(residual, a), b), c)(u)


@eqx.filter_jit
def _slopes(residual, u, rows, columns):
    """Gradients of the real numbers left_i . DG right_j, (pairs, n+1)."""
    pulled = lambda u: jax.vmap(lambda l, r: l @ along(residual, r)(u))(rows, columns)
    return jax.jacfwd(pulled)(u)


def second(residual, u, a, b) -> Complex[np.ndarray, " n"]:
    """B(a, b), bilinear also for complex directions."""
    return _complexified(lambda *v: _second(residual, jnp.asarray(u), *v), a, b)


def third(residual, u, a, b, c) -> Complex[np.ndarray, " n"]:
    """C(a, b, c), trilinear also for complex directions."""
    return _complexified(lambda *v: _third(residual, jnp.asarray(u), *v), a, b, c)


def slopes(residual, u, left, right) -> Complex[np.ndarray, " n+1"]:
    """Gradient in u of left^* DG(u) right, for one pair of complex vectors."""
    l, r = np.asarray(left, complex), np.asarray(right, complex)
    real = lambda *vectors: jnp.stack([jnp.asarray(v) for v in vectors])
    parts = _slopes(
        residual,
        jnp.asarray(u),
        real(np.real(l), np.imag(l), np.real(l), np.imag(l)),
        real(np.real(r), np.imag(r), np.imag(r), np.real(r)),
    )
    rr, ii, ri, ir = np.asarray(parts)
    return (rr + ii) + 1j * (ri - ir)


def _complexified(form: Callable, *directions) -> Complex[np.ndarray, " n"]:
    """Extend a real multilinear form to complex directions."""
    directions = [np.asarray(d, complex) for d in directions]
    total = 0j
    for choice in itertools.product((0, 1), repeat=len(directions)):
        parts = [
            np.imag(d) if imaginary else np.real(d)
            for d, imaginary in zip(directions, choice, strict=True)
        ]
        if all(part.any() for part in parts):
            value = form(*(jnp.asarray(part) for part in parts))
            total = total + 1j ** sum(choice) * np.asarray(value)
    return total + np.zeros(directions[0].shape[0] - 1)
