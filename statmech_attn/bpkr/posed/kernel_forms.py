r"""Two forms of the kernel, with the same numbers (docs/theory/bpkr.md, section 2).

`PathKernels` keeps all path-path kernels, `PathFactors` the attentioned inputs; what
they take in memory and work decides between them.

    A, alpha          (n, n), (n,)       see `curvature`; n = P K        `A`, `alpha`

The second derivative of the energy in U, with $\alpha = (K+T)^{-1} Y$,
$A = (K+T)^{-1} - \alpha\alpha^T$ and $K_{ab}$ the derivative of the kernel in $U_{ab}$:

    $\partial^2 E / \partial U_{ab} \partial U_{cd} = -\mathrm{Tr}[A K_{ab} A K_{cd}]
        + (\alpha^T K_{ab} \alpha)(\alpha^T K_{cd} \alpha)$

U is symmetric: `curvature` is the (m, m) matrix of derivatives in its m = d (d + 1) / 2
entries with a >= b, each changed together with its mirror image, rows of U one after
the other.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from statmech_attn.bpkr.posed import streamed_kernels
from statmech_attn.bpkr.posed.kernels import (
    contracted,
    cross_kernel,
    path_path,
    path_readout,
    self_kernel,
    self_path_path,
    unexplained_variances,
    with_prefactor,
)
from statmech_attn.options import Count


MEMORY_LIMIT = 2**32  # bytes that a form and its Newton step may take


class PathKernels(eqx.Module):
    """All path-path kernels: fast where |Pi|^2 P^2 numbers are few."""

    blocks: Float[Array, "Pi Pi P P"]

    @property
    def n_paths(self) -> int:
        return self.blocks.shape[0]

    @property
    def n_examples(self) -> int:
        return self.blocks.shape[2]

    def kernel(self, U: Float[Array, "d d"]) -> Float[Array, "n n"]:
        """K(U) on the training examples."""
        return contracted(self.blocks, U)

    def masked(self, known: Float[Array, " P"]) -> "PathKernels":
        """These kernels with input zero for the examples where `known` is 0, not 1."""
        return PathKernels(self.blocks * known[:, None] * known)

    def curvature(self, A, alpha) -> Float[Array, "m m"]:
        """Second derivative of E, of alpha = (K + T)^-1 Y, A = (K + T)^-1 - alpha^2."""
        A, alpha = _split_outputs(A, alpha, self.n_examples)
        d = self.n_paths * alpha.shape[1]
        AK = jnp.einsum("pnrk,abrq->nkabpq", A, self.blocks, optimize="optimal")
        pairs = jnp.einsum("nkabpq,lmcdqp->akblcmdn", AK, AK, optimize="optimal")
        pairs = pairs.reshape(d, d, d, d)
        pairs = pairs + jnp.swapaxes(pairs, 0, 1)
        pairs = (pairs + jnp.swapaxes(pairs, 2, 3))[np.tril_indices(d)]
        R = jnp.einsum(
            "pk,abpq,ql->akbl", alpha, self.blocks, alpha, optimize="optimal"
        ).reshape(d, d)
        return _curvature(pairs[:, *np.tril_indices(d)], R)


class PathFactors(eqx.Module):
    """The attentioned inputs: K = F F^T, F = X (C x 1), U = C C^T, never |Pi|^2 P^2."""

    xi: Float[Array, "P N_0 Pi"]
    scale: Float[Array, " Pi"]

    @property
    def n_paths(self) -> int:
        return self.xi.shape[2]

    @property
    def n_examples(self) -> int:
        return self.xi.shape[0]

    def kernel(self, U: Float[Array, "d d"]) -> Float[Array, "n n"]:
        """K(U) on the training examples."""
        return self_kernel(self.xi, with_prefactor(U, self.scale))

    def masked(self, known: Float[Array, " P"]) -> "PathFactors":
        """These factors with input zero for the examples where `known` is 0, not 1."""
        return PathFactors(self.xi * known[:, None, None], self.scale)

    def curvature(self, A, alpha) -> Float[Array, "m m"]:
        """Second derivative of the energy, through M_ab = X_a^T A X_b.

        Tr[A K_ab A K_cd] = <M_bc, M_ad> and M_ba = M_ab^T, so the M_ab with a >= b are
        enough.  Their symmetric and antisymmetric parts, kept as vectors with the same
        scalar products, do not mix.
        """
        A, alpha = _split_outputs(A, alpha, self.n_examples)
        outputs = alpha.shape[1]
        d = self.n_paths * outputs
        X = jnp.moveaxis(self.xi * self.scale, 2, 0)
        AX = jnp.einsum("pkql,bqj->klbpj", A, X)
        below = np.tril_indices(self.xi.shape[1], -1)
        rows, columns = np.tril_indices(d)

        def parts(pair):
            (a, k), (b, l) = (jnp.divmod(index, outputs) for index in pair)
            M = X[a].T @ AX[k, l, b]
            lower, upper = M[below] / math.sqrt(2), M.T[below] / math.sqrt(2)
            return jnp.concatenate([jnp.diagonal(M), lower + upper]), lower - upper

        even, odd = jax.lax.map(parts, (jnp.asarray(rows), jnp.asarray(columns)))
        even, odd = even @ even.T, odd @ odd.T
        products = jnp.stack([even - odd, even + odd])

        def product(a, b, c, d):
            same = (a >= b) == (c >= d)
            return products[same.astype(int), _entry(a, b), _entry(c, d)]

        a, b = rows[:, None], columns[:, None]
        pairs = product(b, a.T, a, b.T) + product(a, a.T, b, b.T)
        r = jnp.einsum("bpj,pl->jbl", X, alpha).reshape(-1, d)
        return _curvature(2 * pairs, r.T @ r)


Operator = PathKernels | PathFactors


class CrossInputs(eqx.Module):
    """Attentioned inputs beside those of the training examples, and their prefactor."""

    left: Float[Array, "Q N_0 Pi"]
    right: Float[Array, "P N_0 Pi"]
    scale: Float[Array, " Pi"]

    def kernel(self, U: Float[Array, "d d"]) -> Float[Array, "m n"]:
        """K(x, x') between the inputs and the training examples."""
        U = with_prefactor(U, self.scale)
        if self.left is self.right:
            return self_kernel(self.left, U)
        return cross_kernel(self.left, self.right, U)

    def mean(self, U: Float[Array, "d d"], alpha: Float[Array, " n"]) -> Array:
        """k^T alpha of every input and output, without their kernel."""
        readout = path_readout(self.right, with_prefactor(U, self.scale), alpha)
        return jnp.einsum("qia,kia->qk", self.left, readout)

    def unexplained(self, U: Float[Array, "d d"], c: Float[Array, "m n"]) -> Array:
        """`unexplained_variances` of the inputs by the training examples."""
        U = with_prefactor(U, self.scale)
        return unexplained_variances(self.left, self.right, U, c)

    def own_blocks(self) -> Float[Array, "Pi Pi Q 1"]:
        """Kernels of every input with itself, for `own_variances`."""
        pairs = jnp.outer(self.scale, self.scale)
        return self_path_path(self.left) * pairs[:, :, None, None]

    def operator(
        self, *, outputs: int, memory_limit: int
    ) -> tuple[Callable[[Array], Array], int]:
        """K(x, x') as a function of U, and bytes: `cross_operator`."""
        return cross_operator(
            self.left,
            self.right,
            self.scale,
            outputs=outputs,
            memory_limit=memory_limit,
        )


def cross_operator(
    test: Float[Array, "Q N_0 Pi"],
    train: Float[Array, "P N_0 Pi"],
    scale: Float[Array, " Pi"],
    *,
    outputs: int = 1,
    memory_limit: int = MEMORY_LIMIT,
) -> tuple[Callable[[Array], Array], int]:
    """K(x, x') between two sets of attentioned inputs as a function of U.

    From path-path kernels where they fit and save work; with the bytes that one call
    takes, which are refused above `memory_limit`.
    """
    (n_test, n_inputs, n_paths), n_train = test.shape, train.shape[0]
    blocks = 8 * n_paths**2 * n_test * n_train
    through = 8 * outputs**2 * n_test * n_paths * n_inputs
    call = 8 * outputs**2 * n_train * (3 * n_test + 6 * n_train)
    shorter = n_paths * n_train < n_inputs * (n_paths + n_train)
    if shorter and 2 * blocks + call <= memory_limit:  # contraction copies them once
        return Partial(contracted, path_path(test * scale, train * scale)), call
    if through + call > memory_limit:
        raise ValueError(
            f"{n_test} test inputs need {(through + call) / 2**30:.3g} GiB, more than "
            f"memory_limit = {memory_limit / 2**30:.3g} GiB: give fewer at a time."
        )
    return Partial(_cross_kernel, test, train, scale), through + call


def _cross_kernel(left, right, scale, U):
    return cross_kernel(left, right, with_prefactor(U, scale))


def memory(n_examples, n_inputs, n_paths, outputs=1) -> dict[str, int]:
    """Bytes that each form and one Newton step in it take, at most."""
    d, n = n_paths * outputs, n_examples * outputs
    m = d * (d + 1) // 2
    common = 8 * n * n + 24 * m * m
    blocks = (n_paths * n_examples) ** 2
    inputs = n_examples * n_inputs * n_paths
    return {
        "kernels": 8 * (blocks * (1 + 2 * outputs**2) + common),
        "factors": 8 * (inputs * (2 + outputs**2) + m * n_inputs**2 + common),
    }


def most_paths(
    n_examples: Count,
    n_inputs: Count,
    outputs: Count = 1,
    memory_limit: Count = MEMORY_LIMIT,
) -> int:
    """Largest number of attention paths whose saddle point fits in memory."""

    def needed(n_paths: int) -> int:
        rank = n_inputs * n_paths
        shape = min(n_examples, rank), n_inputs, n_paths, outputs
        solving = min(*memory(*shape).values(), streamed_kernels.memory(*shape))
        # Inputs, inputs beside labels, and what LAPACK makes of them.
        reducing = 3 * 8 * n_examples * rank if n_examples > rank else 0
        return max(solving, reducing)

    n_paths = 0
    while needed(n_paths + 1) <= memory_limit:
        n_paths += 1
    return n_paths


class Operations(NamedTuple):
    """Multiplications that a gradient and a Newton step take."""

    gradient: int
    newton: int


def operations(n_examples, n_inputs, n_paths, outputs=1) -> dict[str, Operations]:
    """Multiplications in each form."""
    d, n = n_paths * outputs, n_examples * outputs
    m = d * (d + 1) // 2
    blocks, inputs = (d * n_examples) ** 2, n_examples * n_inputs * n_paths
    kernel = {"kernels": blocks, "factors": inputs * (d + n) * outputs}
    curvature = {
        "kernels": blocks * (n_examples + d * d),
        "factors": inputs * n * outputs + m * (n_examples + m) * n_inputs**2,
    }
    counts = {}
    for form in kernel:
        gradient = 2 * kernel[form] + n**3
        counts[form] = Operations(gradient, gradient + curvature[form] + 10 * m**3)
    return counts


FORMS = {"kernels": PathKernels, "factors": PathFactors}


def path_kernels(
    xi: Float[Array, "P N_0 Pi"], scale: Float[Array, " Pi"], *, form: str
) -> Operator:
    """The kernels of attentioned inputs with a prefactor, "kernels" or "factors"."""
    if form == "factors":
        return PathFactors(xi, scale)
    scaled = xi * scale
    return PathKernels(path_path(scaled, scaled))


def fitting_operator(
    xi: Float[Array, "P N_0 Pi"],
    scale: Float[Array, " Pi"],
    outputs: int,
    *,
    form: str | None = None,
    memory_limit: int,
) -> Operator:
    """Kernels of attention paths in the cheaper form that fits in memory.

    The factors are the inputs themselves: only what solves needs more memory.
    """
    P, N_0, n_paths = xi.shape
    fitting = fits(P, N_0, n_paths, outputs, form=form, memory_limit=memory_limit)
    return path_kernels(xi, scale, form=fitting or "factors")


def fits(
    n_examples, n_inputs, n_paths, outputs, *, form=None, steps=1.0, memory_limit
) -> str | None:
    """Name of the cheaper form of which some Newton steps fit in memory, if any does.

    `form` is the only one allowed, if given; the caller takes the memory of `steps`
    Newton steps at once.
    """
    if form not in (None, *FORMS):
        raise ValueError(f'form must be "kernels" or "factors"; got {form!r}.')
    shape = (n_examples, n_inputs, n_paths, outputs)
    needed, work = memory(*shape), operations(*shape)
    forms = [form] if form else sorted(FORMS, key=lambda name: work[name].newton)
    fitting = (name for name in forms if int(steps * needed[name]) <= memory_limit)
    return next(fitting, None)


def choose_form(
    n_examples, n_inputs, n_paths, outputs, *, form=None, steps=1.0, memory_limit
) -> str:
    """Name of the cheaper form that fits in memory; an error where none does."""
    shape = (n_examples, n_inputs, n_paths, outputs)
    fitting = fits(*shape, form=form, steps=steps, memory_limit=memory_limit)
    if fitting:
        return fitting
    needed = {name: int(steps * size) for name, size in memory(*shape).items()}
    sizes = ", ".join(f"{name} {size / 2**30:.3g} GiB" for name, size in needed.items())
    advice = "use fewer examples or paths"
    if needed["factors"] <= memory_limit:
        advice = 'take form="factors"'
    raise ValueError(
        f"kernels need {sizes}, more than memory_limit = {memory_limit / 2**30:.3g} "
        f"GiB: raise it, or {advice}."
    )


def _entry(a, b):
    """Number of the entry (a, b) of a symmetric matrix, rows below the diagonal."""
    high, low = jnp.maximum(a, b), jnp.minimum(a, b)
    return high * (high + 1) // 2 + low


def _curvature(pairs, R) -> Float[Array, "m m"]:
    """Hessian of the energy in U_1, from sums of Tr[A K_ab A K_cd] and alpha K alpha.

    An entry on the diagonal of U has no mirror image and is counted once.
    """
    rows, columns = np.tril_indices(R.shape[0])
    once = jnp.where(rows == columns, 0.5, 1.0)
    r = 2 * once * R[rows, columns]
    return jnp.outer(r, r) - jnp.outer(once, once) * pairs


def _split_outputs(A, alpha, n_examples):
    outputs = alpha.shape[0] // n_examples
    A = A.reshape(n_examples, outputs, n_examples, outputs)
    return A, alpha.reshape(n_examples, outputs)
