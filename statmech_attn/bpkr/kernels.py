r"""Kernels of attention paths (docs/theory/bpkr.md, section 2).

    $K(x, x') = \frac{\sigma_0^2}{N_0 |\Pi|}
                \sum_{\pi\pi'} U_{\pi\pi'} \, \xi^\pi(x) \cdot \xi^{\pi'}(x')$

in two forms that give the same numbers: `PathKernels` keeps all path-path kernels,
`PathFactors` the attentioned inputs.  With K outputs, U has the index (pi, k) and the
kernel the index (mu, k), k the faster one.

    U                 (d, d)             d = |Pi| K                      `U`
    K_{pi pi'}        (Pi, Pi, P, P)     path-path kernels, scaled       `blocks`
    xi^pi             (P, N_0, Pi)       attentioned inputs              `xi`
    c_pi              (Pi,)              their prefactor, of `prefactor` `scale`
    X_pi              (P, N_0, Pi)       c_pi xi^pi, scaled inputs
    A, alpha          (n, n), (n,)       see `curvature`; n = P K        `A`, `alpha`

The second derivative of the energy in U, with $\alpha = (K+T)^{-1} Y$,
$A = (K+T)^{-1} - \alpha\alpha^T$ and $K_{ab}$ the derivative of the kernel in $U_{ab}$:

    $\partial^2 E / \partial U_{ab} \partial U_{cd} = -\mathrm{Tr}[A K_{ab} A K_{cd}]
        + (\alpha^T K_{ab} \alpha)(\alpha^T K_{cd} \alpha)$

The prefactor is put on U, so that inputs are kept once, as they were given; and sums
over features go by slabs of them, so that nothing as large as the inputs is copied.

U is symmetric: `curvature` is the (m, m) matrix of derivatives in its m = d (d + 1) / 2
entries with a >= b, each changed together with its mirror image, rows of U one after
the other.
"""

import math
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from statmech_attn.bpkr import hessian_free
from statmech_attn.bpkr.hessian_free import SLAB


MEMORY_LIMIT = 2**32  # bytes that a form and its Newton step may take
ROWS = 4  # blocks of examples of a large symmetric kernel: 5/8 of the products


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
        """K(U) on the training examples.

        Args:
            U: order parameter U_1.
        """
        return contracted(self.blocks, U)

    def masked(self, known: Float[Array, " P"]) -> "PathKernels":
        """These kernels with input zero for the examples where `known` is 0, not 1.

        Args:
            known: 1 for the examples that stay, 0 for the others.
        """
        return PathKernels(self.blocks * known[:, None] * known)

    def curvature(self, A, alpha) -> Float[Array, "m m"]:
        """Second derivative of the energy.

        Args:
            A: the matrix (K + T)^-1 - alpha alpha^T.
            alpha: the vector (K + T)^-1 Y.
        """
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
        """K(U) on the training examples.

        Args:
            U: order parameter U_1.
        """
        return self_kernel(self.xi, with_prefactor(U, self.scale))

    def masked(self, known: Float[Array, " P"]) -> "PathFactors":
        """These factors with input zero for the examples where `known` is 0, not 1.

        Args:
            known: 1 for the examples that stay, 0 for the others.
        """
        return PathFactors(self.xi * known[:, None, None], self.scale)

    def curvature(self, A, alpha) -> Float[Array, "m m"]:
        """Second derivative of the energy, through M_ab = X_a^T A X_b.

        Tr[A K_ab A K_cd] = <M_bc, M_ad> and M_ba = M_ab^T, so the M_ab with a >= b are
        enough.  Their symmetric and antisymmetric parts, kept as vectors with the same
        scalar products, do not mix.

        Args:
            A: the matrix (K + T)^-1 - alpha alpha^T.
            alpha: the vector (K + T)^-1 Y.
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


def cross_kernel(
    left: Float[Array, "P N_0 Pi"], right: Float[Array, "Q N_0 Pi"], U
) -> Float[Array, "m n"]:
    """K(x, x') between two sets of scaled attentioned inputs.

    Args:
        left: scaled attentioned inputs.
        right: scaled attentioned inputs.
        U: order parameter U_1; with `with_prefactor`, inputs need not be scaled.

    Example:
        >>> import jax.numpy as jnp
        >>> xi = jnp.ones((2, 3, 4))  # 2 examples, 3 features, 4 paths
        >>> cross_kernel(xi, xi, jnp.eye(4)).shape
        (2, 2)
    """
    width = slab_width(left.shape, U)
    if width >= left.shape[1]:
        return _part_kernel(left, right, U)
    return _summed(lambda x, y: (_part_kernel(x, y, U),), (left, right), width)[0]


def self_kernel(xi: Float[Array, "P N_0 Pi"], U) -> Float[Array, "n n"]:
    """K(x, x') of a set of scaled attentioned inputs with itself.

    Where they are many, blocks below the diagonal alone are computed.

    Args:
        xi: scaled attentioned inputs.
        U: order parameter U_1, symmetric; with `with_prefactor`, inputs need not be
            scaled.

    Example:
        >>> import jax.numpy as jnp
        >>> self_kernel(jnp.ones((2, 3, 4)), jnp.eye(4)).tolist()
        [[12.0, 12.0], [12.0, 12.0]]
    """
    width = slab_width(xi.shape, U)
    if width >= xi.shape[1]:
        return _part_kernel(xi, xi, U)
    U = (U + U.T) / 2  # the derivative in U is symmetric then
    P, outputs = xi.shape[0], U.shape[0] // xi.shape[2]
    ends = [P * block // ROWS for block in range(ROWS + 1)]
    blocks = list(zip(ends, ends[1:]))

    def rows(x):
        return tuple(_part_kernel(x[a:b], x[:b], U) for a, b in blocks)

    below = [
        jnp.pad(row, ((0, 0), (0, (P - b) * outputs)))
        for row, (_, b) in zip(_summed(rows, (xi,), width), blocks)
    ]
    K = jnp.concatenate(below)
    return jnp.tril(K) + jnp.tril(K, -1).T


def slab_width(shape: tuple[int, ...], U: Array) -> int:
    """Features whose inputs times U are no more than `SLAB` numbers, at least one.

    Example:
        >>> import jax.numpy as jnp
        >>> slab_width((2**13, 768, 2**8), jnp.eye(2**8))
        4
    """
    P, _, paths = shape
    return max(1, SLAB // (P * paths * (U.shape[0] // paths) ** 2))


def _summed(kernels: Callable, inputs: tuple[Array, ...], width: int):
    """Sum of kernels over slabs of features; a gradient computes each slab anew."""
    n_inputs = inputs[0].shape[1]
    last = n_inputs - n_inputs % width

    @jax.checkpoint
    def add(total, first):
        of = partial(jax.lax.dynamic_slice_in_dim, slice_size=width, axis=1)
        part = kernels(*(of(x, first) for x in inputs))
        return jax.tree.map(jnp.add, total, part), None

    total = kernels(*(x[:, last:] for x in inputs))  # of no features it is zero
    return jax.lax.scan(add, total, jnp.arange(0, last, width))[0]


@jax.jit
def _part_kernel(left, right, U) -> Float[Array, "m n"]:
    """`cross_kernel` of some features."""
    n_left, n_paths = left.shape[0], left.shape[2]
    U = _by_output(U, n_paths)
    outputs = U.shape[1]
    through = jnp.einsum("pia,akbl->pklib", left, U)
    through = through.reshape(n_left * outputs**2, -1)
    K = through @ right.reshape(right.shape[0], -1).T
    K = K.reshape(n_left * outputs, outputs, -1)
    return jnp.swapaxes(K, 1, 2).reshape(n_left * outputs, -1)


def with_prefactor(
    U: Float[Array, "d d"], scale: Float[Array, " Pi"]
) -> Float[Array, "d d"]:
    r"""$c_\pi U_{\pi\pi'} c_{\pi'}$: the prefactor of both inputs, put on U.

    Args:
        U: order parameter U_1, or a matrix with its indices.
        scale: prefactor by path.

    Example:
        >>> import jax.numpy as jnp
        >>> with_prefactor(jnp.ones((2, 2)), jnp.array([2.0, 3.0])).tolist()
        [[4.0, 6.0], [6.0, 9.0]]
    """
    c = jnp.repeat(scale, U.shape[0] // scale.shape[0])
    return c[:, None] * U * c


def cross_operator(
    test: Float[Array, "Q N_0 Pi"],
    train: Float[Array, "P N_0 Pi"],
    scale: Float[Array, " Pi"],
    *,
    outputs: int = 1,
    memory_limit: int = MEMORY_LIMIT,
) -> tuple[Callable[[Array], Array], int]:
    """K(x, x') between two sets of attentioned inputs as a function of U.

    Returns:
        The function, from path-path kernels where they fit and save work, and the bytes
        that one call takes.

    Raises:
        ValueError: one call takes more than `memory_limit`.
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


def path_path(
    left: Float[Array, "Q N_0 Pi"], right: Float[Array, "P N_0 Pi"]
) -> Float[Array, "Pi Pi Q P"]:
    """Path-path kernels between two sets of scaled attentioned inputs."""
    n_paths = left.shape[2]
    of_left = _by_path(left)
    of_right = of_left if left is right else _by_path(right)
    blocks = (of_left @ of_right.T).reshape(n_paths, -1, n_paths, right.shape[0])
    return jnp.swapaxes(blocks, 1, 2)


def _by_path(xi: Float[Array, "P N_0 Pi"]) -> Float[Array, "PiP N_0"]:
    return jnp.moveaxis(xi, 2, 0).reshape(-1, xi.shape[1])


def self_path_path(xi: Float[Array, "Q N_0 Pi"]) -> Float[Array, "Pi Pi Q 1"]:
    """Path-path kernels of every input with itself."""
    return jnp.einsum("pia,pib->abp", xi, xi)[..., None]


def contracted(
    blocks: Float[Array, "Pi Pi Q P"], U: Float[Array, "d d"]
) -> Float[Array, "m n"]:
    """K(x, x') from path-path kernels."""
    by_output = _by_output(U, blocks.shape[0])
    K = jnp.einsum("akbl,abpq->pkql", by_output, blocks)
    return K.reshape(blocks.shape[2] * by_output.shape[1], -1)


def own_variances(
    blocks: Float[Array, "Pi Pi Q 1"], U: Float[Array, "d d"]
) -> Float[Array, " m"]:
    """K(x, x) of every input and output, from `self_path_path`."""
    outputs = U.shape[0] // blocks.shape[0]
    K = contracted(blocks, U).reshape(-1, outputs, outputs)
    return jnp.diagonal(K, axis1=1, axis2=2).ravel()


def path_readout(
    xi: Float[Array, "P N_0 Pi"], U: Float[Array, "d d"], alpha: Float[Array, " n"]
) -> Float[Array, "K N_0 Pi"]:
    r"""$s_\pi = \sum_{\pi'} U_{\pi\pi'} X_{\pi'}^T \alpha$: the mean f is linear.

    $f(x) = \sum_\pi s_\pi \cdot \xi^\pi(x)$, $\alpha = (K + T)^{-1} Y$; scaled inputs,
    or any with `with_prefactor` of U.

    Example:
        >>> import jax.numpy as jnp
        >>> path_readout(jnp.ones((5, 3, 2)), jnp.eye(2), jnp.ones(5)).shape
        (1, 3, 2)
    """
    by_output = _by_output(U, xi.shape[2])
    alpha = alpha.reshape(xi.shape[0], -1)
    through = jnp.einsum("pib,pl->ibl", xi, alpha)
    return jnp.einsum("akbl,ibl->kia", by_output, through)


def prefactor(
    variance: float, n_inputs: int, shares: Float[np.ndarray, " Pi"]
) -> Float[np.ndarray, " Pi"]:
    r"""$\sigma_0 c_\pi / \sqrt{N_0}$: what attentioned inputs lack in the kernel.

    Args:
        variance: sigma_0^2.
        n_inputs: number N_0 of features.
        shares: of every path $1 / c_\pi^2$, the product of H_l over the layers that it
            passes through a head: the number of paths where no layer has a skip.

    Example:
        >>> import numpy as np
        >>> prefactor(1.0, 2, np.array([8.0])).tolist()
        [0.25]
    """
    return np.sqrt(variance / (n_inputs * shares))


def memory(n_examples, n_inputs, n_paths, outputs=1) -> dict[str, int]:
    """Bytes that each form and one Newton step in it take, at most.

    Example:
        >>> memory(100, 231, 4)["kernels"] < 2**23
        True
    """
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
    n_examples: int, n_inputs: int, outputs: int = 1, memory_limit: int = MEMORY_LIMIT
) -> int:
    """Largest number of attention paths whose saddle point fits in memory.

    Args:
        n_examples: number P of examples.
        n_inputs: number N_0 of features.
        outputs: number K of outputs.
        memory_limit: bytes that kernels and a Newton step may take.

    Example:
        >>> most_paths(2000, 768), most_paths(200, 64)
        (249, 1602)
    """

    def needed(n_paths: int) -> int:
        rank = n_inputs * n_paths
        shape = min(n_examples, rank), n_inputs, n_paths, outputs
        solving = min(*memory(*shape).values(), hessian_free.memory(*shape))
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
    """The kernels of attentioned inputs with a prefactor, "kernels" or "factors".

    Example:
        >>> import jax.numpy as jnp
        >>> path_kernels(jnp.ones((3, 2, 4)), jnp.ones(4), form="kernels").blocks.shape
        (4, 4, 3, 3)
    """
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

    Example:
        >>> import jax.numpy as jnp
        >>> xi = jnp.ones((3, 2, 4))
        >>> fitting_operator(xi, jnp.ones(4), 1, memory_limit=2**20).n_examples
        3
    """
    P, N_0, n_paths = xi.shape
    fitting = fits(P, N_0, n_paths, outputs, form=form, memory_limit=memory_limit)
    return path_kernels(xi, scale, form=fitting or "factors")


def fits(
    n_examples, n_inputs, n_paths, outputs, *, form=None, steps=1.0, memory_limit
) -> str | None:
    """Name of the cheaper form of which some Newton steps fit in memory, if any does.

    Args:
        form: the only one allowed, if given.
        steps: Newton steps whose memory the caller will take at once.
        memory_limit: bytes that the form and these steps may take.
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
    """Name of the cheaper form that fits in memory; an error where none does.

    Raises:
        ValueError: no form, or not the one asked for, fits into `memory_limit`.
    """
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


def _by_output(U, n_paths):
    outputs = U.shape[0] // n_paths
    return U.reshape(n_paths, outputs, n_paths, outputs)


def _split_outputs(A, alpha, n_examples):
    outputs = alpha.shape[0] // n_examples
    A = A.reshape(n_examples, outputs, n_examples, outputs)
    return A, alpha.reshape(n_examples, outputs)
