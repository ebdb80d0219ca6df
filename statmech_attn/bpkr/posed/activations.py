r"""Path-path kernels given by the user, and those of nonlinear blocks (section 11).

With kernels $\kappa_{\pi\pi'}(x, x')$ in place of attentioned inputs the theory takes

    $K(x, x') = \sum_{\pi\pi'} U_{\pi\pi'} \, \kappa_{\pi\pi'}(x, x')$

which is exact for $\kappa_{\pi\pi'} = (\sigma_0^2 / N_0) c_\pi c_{\pi'}
\xi^\pi \cdot \xi^{\pi'}$, the linear network, and a heuristic for others.  Built in are
those of a nonlinear block that every path passes after its attention,

    $f(x) = \frac{1}{\sqrt{N_1}} \sum_\pi c_\pi w_\pi \cdot
            \phi(\sigma_0 V_0 \xi^\pi(x) / \sqrt{N_0})$,
    $\kappa_{\pi\pi'}(x, x') = c_\pi c_{\pi'} \langle \phi(u) \phi(v) \rangle$

with (u, v) normal, of mean zero and the covariance of the linear kernels without c:

    relu    $\frac{\sqrt{s t}}{2 \pi} [\sin \theta + (\pi - \theta) \cos \theta]$,
            $\cos \theta = r / \sqrt{s t}$   (Cho and Saul, NIPS 2009)
    erf     $\frac{2}{\pi} \arcsin \frac{2 r}{\sqrt{(1 + 2 s) (1 + 2 t)}}$
            (Williams, NIPS 1996)
    linear  $r$

    r = <u v>         (Pi, Pi, Q, P)     between pairs of paths     `r`
    s = <u^2>, t = <v^2>                 of the first and the second
"""

import math
from collections.abc import Callable, Sequence
from typing import Literal

import equinox as eqx
import jax.numpy as jnp
import numpy as np
from jax.tree_util import Partial
from jaxtyping import Array, Float

from statmech_attn.arguments import checks
from statmech_attn.batches import require_double
from statmech_attn.bpkr.posed import kernels, prior as sizes_of
from statmech_attn.bpkr.posed.kernels import contracted
from statmech_attn.options import Numbers, Positive


SYMMETRIC = 1e-8  # entries of training kernels differ by no more, over the largest


class Kernels(eqx.Module):
    """Kernels of all pairs of paths, in place of attentioned inputs.

    Args:
        blocks: kappa (|Pi|, |Pi|, Q, P) between Q inputs and the P training examples.
        own: kappa (|Pi|, |Pi|, Q) of every input with itself; of the training examples
            it stands in `blocks` and is omitted.
        linear: whether they are those of a linear network, for which the theory is no
            heuristic.

    Raises:
        ValueError: shapes that disagree, or values that are not finite.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> from statmech_attn.bpkr import Problem
        >>> train = Kernels(jnp.ones((1, 1, 1, 1)))
        >>> problem = Problem(train, [1.0], heads=(1,), width=10, temperature=1.0)
        >>> round(float(problem.theory(jnp.eye(1)).predict(train).mean[0]), 12)
        0.5
    """

    blocks: Float[Array, "Pi Pi Q P"]
    own: Float[Array, "Pi Pi Q"]
    linear: bool = eqx.field(static=True)

    @checks
    def __init__(
        self, blocks: Numbers, own: Numbers | None = None, *, linear: bool = False
    ):
        require_double()
        blocks = jnp.asarray(blocks, float)
        if blocks.ndim != 4 or blocks.shape[0] != blocks.shape[1] or not blocks.size:
            raise ValueError(
                "kernels must have shape (paths, paths, Q, P), P the number of "
                f"training examples; got {blocks.shape}."
            )
        if own is None:
            if blocks.shape[2] != blocks.shape[3]:
                raise ValueError(
                    "own: kernels between other inputs and the training examples need "
                    f"those of every input with itself, {blocks.shape[:3]}."
                )
            own = jnp.diagonal(blocks, axis1=2, axis2=3)
        own = jnp.asarray(own, float)
        if own.shape != blocks.shape[:3]:
            raise ValueError(
                f"own must have shape {blocks.shape[:3]}, kernels of every input with "
                f"itself; got {own.shape}."
            )
        for name, values in (("kernels", blocks), ("own", own)):
            if not np.isfinite(values).all():
                raise ValueError(f"{name} must be finite; they hold NaN or infinity.")
        self.blocks, self.own, self.linear = blocks, own, linear

    @property
    def shape(self) -> tuple[int, int, int]:
        """(Q, 0, |Pi|): as attentioned inputs of which no features are known."""
        return self.blocks.shape[2], 0, self.blocks.shape[0]

    def check_training(self, n_paths: int) -> None:
        """Refuse what are no kernels of training examples.

        Args:
            n_paths: number of attention paths.

        Raises:
            ValueError: another shape, or kernels that are not symmetric.
        """
        paths, _, rows, columns = self.blocks.shape
        if (paths, rows) != (n_paths, columns):
            raise ValueError(
                f"kernels of the training examples must have shape ({n_paths}, "
                f"{n_paths}, P, P), a row for each path; got {self.blocks.shape}."
            )
        mirrored = self.blocks.transpose(1, 0, 3, 2)
        off = float(jnp.abs(self.blocks - mirrored).max())
        if off > SYMMETRIC * float(jnp.abs(self.blocks).max()):
            raise ValueError(
                "kernels of the training examples must be symmetric, kappa_ab(x, x') = "
                f"kappa_ba(x', x); they differ by up to {off:.3g}."
            )

    def kernel(self, U: Float[Array, "d d"]) -> Float[Array, "m n"]:
        """K(x, x') between the inputs and the training examples.

        Args:
            U: order parameter U_1.
        """
        return contracted(self.blocks, U)

    def mean(self, U: Float[Array, "d d"], alpha: Float[Array, " n"]) -> Array:
        """k^T alpha of every input and output.

        Args:
            U: order parameter U_1.
            alpha: the vector (K + T)^-1 Y.
        """
        return self.kernel(U) @ alpha

    def own_blocks(self) -> Float[Array, "Pi Pi Q 1"]:
        """Kernels of every input with itself, for `own_variances`."""
        return self.own[..., None]

    def operator(
        self, *, outputs: int, memory_limit: int
    ) -> tuple[Callable[[Array], Array], int]:
        """K(x, x') as a function of U, and the bytes that one call takes.

        Args:
            outputs: number of outputs.
            memory_limit: bytes that may be taken.
        """
        _, _, n_test, n_train = self.blocks.shape
        call = 8 * outputs**2 * n_train * (3 * n_test + 6 * n_train)
        return Partial(contracted, self.blocks), call

    def masked(self, known: Float[Array, " P"]) -> "Kernels":
        """These kernels with input zero for training examples where `known` is 0.

        Args:
            known: 1 for the examples that stay, 0 for the others.
        """
        blocks = self.blocks * known[:, None] * known
        return Kernels(blocks, linear=self.linear)

    def beside(self, training: "Kernels") -> "Kernels":
        """These kernels without entries for masked training examples (`masked`).

        Args:
            training: kernels of the training examples.
        """
        is_example = (training.own != 0).any(axis=(0, 1))
        return Kernels(self.blocks * is_example, self.own, linear=self.linear)

    def along(self, basis: Float[Array, "P r"]) -> "Kernels":
        """Beside combinations of the training examples.

        Args:
            basis: these combinations, in columns.
        """
        return Kernels(self.blocks @ basis, self.own, linear=self.linear)

    def subset(self, indices) -> "Kernels":
        """Beside some of the training examples alone.

        Args:
            indices: of the training examples.
        """
        return Kernels(self.blocks[..., indices], self.own, linear=self.linear)

    def training_among(self, indices) -> "Kernels":
        """Kernels of some of the training examples.

        Args:
            indices: of the training examples.
        """
        blocks = self.blocks[:, :, indices][..., indices]
        return Kernels(blocks, linear=self.linear)


def relu(r, s, t):
    """<max(u, 0) max(v, 0)>: the arc-cosine kernel of degree one, over two."""
    size = jnp.sqrt(s * t)
    cosine = jnp.clip(r / jnp.where(size > 0, size, 1.0), -1.0, 1.0)
    angle = jnp.arccos(cosine)
    return size * (jnp.sin(angle) + (math.pi - angle) * cosine) / (2 * math.pi)


def erf(r, s, t):
    """<erf(u) erf(v)>: the arc-sine kernel."""
    cosine = 2 * r / jnp.sqrt((1 + 2 * s) * (1 + 2 * t))
    return 2 * jnp.arcsin(cosine) / math.pi


ACTIVATIONS = {"relu": relu, "erf": erf, "linear": lambda r, s, t: r}


def activation_kernels(
    activation: Literal["relu", "erf", "linear"],
    xi: Float[Array | np.ndarray, "Q N_0 Pi"],
    train: Float[Array | np.ndarray, "P N_0 Pi"] | None = None,
    *,
    heads: Sequence,
    skip: Sequence | Numbers | None = None,
    variance: Positive = 1.0,
) -> Kernels:
    """Kernels of a nonlinear block after the attention, at infinite width.

    Args:
        activation: "relu", "erf", or "linear", which gives the kernels that `Problem`
            makes of attentioned inputs.
        xi: attentioned inputs of the training examples, or of others.
        train: those of the training examples, where xi are others.
        heads: heads per layer (H_1, ..., H_L), or the heads themselves.
        skip: factors of the skip connections, as in `Problem`.
        variance: sigma_0^2, which is part of the kernels.

    Returns:
        Kernels of the training examples, or of the others beside them.

    Raises:
        ValueError: another activation, or inputs that do not fit the heads or one
            another.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> jax.config.update("jax_enable_x64", True)
        >>> kernels = activation_kernels("relu", jnp.ones((1, 1, 1)), heads=(1,))
        >>> kernels.blocks.ravel().tolist()  # <max(u, 0)^2> = 1/2
        [0.5]
    """
    counts = sizes_of.head_counts(heads)
    shares = sizes_of.path_shares(counts, sizes_of.skips(skip, len(counts)))
    inputs = [jnp.asarray(x, float) for x in (xi, xi if train is None else train)]
    for x in inputs:
        if x.ndim != 3 or x.shape[1:] != (inputs[1].shape[1], shares.size):
            raise ValueError(
                f"xi must have shape (P, N_0, {shares.size}), one column per path of "
                f"heads = {counts}, with one N_0; got {x.shape}."
            )
    factor = math.sqrt(variance / inputs[1].shape[1])
    scaled = inputs[0] * factor
    scaled_train = scaled if train is None else inputs[1] * factor
    phi = ACTIVATIONS[activation]
    s, t = (jnp.einsum("pia,pia->ap", x, x) for x in (scaled, scaled_train))
    c = 1 / np.sqrt(shares)
    cc = jnp.asarray(np.outer(c, c))
    r = kernels.path_path(scaled, scaled_train)
    blocks = cc[:, :, None, None] * phi(r, s[:, None, :, None], t[None, :, None, :])
    with_itself = kernels.self_path_path(scaled)[..., 0]
    with_itself = cc[:, :, None] * phi(with_itself, s[:, None], s[None])
    return Kernels(blocks, with_itself, linear=activation == "linear")
