r"""Posterior of all weights of the attention network (docs/theory/bpkr_weights.md, 8).

    $\ln p(z | Y) = -\frac12 |z|^2 - \frac1{2T} \sum_{\mu k} (f_k(x_\mu) - Y_{\mu k})^2$
                    + const.,
    $f_k(x) = \sum_{\pi i} \xi^\pi_i(x)\, s_{\pi k i}$,
    $s_{\pi k} = \sigma_0 V_0^T w_{\pi k} / \sqrt{N_1 N_0 |\Pi|}$

(with skip connections $c_\pi$ for $1 / \sqrt{|\Pi|}$, `bpkr.forward_paths`)

in whitened weights z, all N(0, 1) a priori.  Attention needs no weight that is learned,
so everything before $\xi$ is done once, and the token axis never appears again.  Of the
rest the paths are contracted from the readout down, w first, then s, then f.

    z                 (n,)               whitened weights                 `z`
    V_0               (N_1, R)           in the basis of the inputs       `V_0`
    basis             (N_0, N_0)         principal axes of all training
                                         xi^pi; the first R span them     `basis`
    X                 (P, R, Pi)         xi in this basis, scaled         `inputs`
    w_pi              (Pi K, N_1)        effective weights                `w`
    b_l               (L,)               skip connections, None without   `skip`

With an activation every path passes a nonlinear block after its attention (section 11):
$f_k(x) = N_1^{-1/2} \sum_\pi c_\pi w_{\pi k} \cdot \phi(\sigma_0 V_0 \xi^\pi(x) /
\sqrt{N_0})$.

V_0 acts on the R dimensions that the training inputs span.  In the others it keeps its
prior, of which the labels say nothing: it is drawn, not sampled.
"""

import math

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Key

from statmech_attn import bpkr
from statmech_attn.bpkr import prior, Problem, Weights


ACTIVATIONS = {"relu": jax.nn.relu, "erf": jax.scipy.special.erf}
MOST_WEIGHTS = 2**31  # 16 GiB a state in double precision
RANK_TOLERANCE = 1e-12  # singular values below this share of the largest are zero


class WeightPosterior(eqx.Module):
    """Density of the whitened weights; build with `posterior`."""

    inputs: Float[Array, "P R Pi"]
    Y: Float[Array, "P *K"]
    basis: Float[Array, "N_0 N_0"]
    scale: Float[Array, " Pi"]  # prefactor of the inputs
    skip: prior.Skip
    temperature: float
    shapes: tuple[tuple[int, ...], ...] = eqx.field(static=True)  # V_0, V_1 ... V_L, a
    variances: tuple[float, ...] = eqx.field(static=True)
    activation: str | None = eqx.field(static=True, default=None)
    shares: tuple[float, ...] = eqx.field(static=True, default=())  # 1 / c_pi^2

    @property
    def dimension(self) -> int:
        """Number of whitened weights."""
        return sum(math.prod(shape) for shape in self.shapes)

    @property
    def free_directions(self) -> int:
        """Input dimensions in which V_0 keeps its prior, N_0 - R."""
        return self.basis.shape[0] - self.inputs.shape[1]

    def with_traced_temperature(self) -> "WeightPosterior":
        """This posterior with its temperature as an array: one compilation for all.

        For `loss_terms` and what does not depend on the temperature.
        """
        temperature = jnp.asarray(self.temperature)
        return eqx.tree_at(lambda p: p.temperature, self, temperature)

    def log_density(self, z: Float[Array, " n"]) -> Float[Array, ""]:
        """Log of prior times likelihood, normalised as densities of z and of Y."""
        misfit = self.training_outputs(z) - self.Y
        constant = z.size * math.log(2 * math.pi)
        constant += misfit.size * math.log(2 * math.pi * self.temperature)
        return -(z @ z + (misfit**2).sum() / self.temperature + constant) / 2

    def loss_terms(self, z: Float[Array, " n"]) -> tuple[Array, Array]:
        """What the log density is minus the sum of, up to a constant: data, prior."""
        misfit = self.training_outputs(z) - self.Y
        return (misfit**2).sum() / (2 * self.temperature), z @ z / 2

    def training_outputs(self, z: Float[Array, " n"]) -> Float[Array, "P *K"]:
        """f on the training inputs."""
        w, V_0 = self._effective(z)
        return self._outputs(w, V_0, self.inputs)

    def order_parameters(self, z: Float[Array, " n"]):
        """(U_1, ..., U_L) and U_a of the network at z."""
        return bpkr.order_parameters(self._scaled(self._whitened(z)))

    def weights(self, z: Float[Array, " n"], key: Key[Array, ""] | None = None):
        """The network at z; a key draws V_0 in its free directions, if it has any."""
        weights = self._scaled(self._whitened(z))
        V_0 = math.sqrt(self.variances[0]) * self._completed(weights.V_0, key)
        return weights._replace(V_0=V_0 @ self.basis.T)

    def rotated_inputs(self, xi_test) -> Float[Array, "Q N_0 Pi"]:
        """New attentioned inputs, made ready for `predict` once."""
        xi_test = bpkr.check_test(xi_test, self.basis.shape[0], self.inputs.shape[2])
        return along(xi_test * self.scale, self.basis)

    def predict(
        self,
        z: Float[Array, " n"],
        inputs: Float[Array, "Q N_0 Pi"],
        key: Key[Array, ""] | None = None,
    ) -> Float[Array, "Q *K"]:
        """f of the network at z on `rotated_inputs`; key as in `weights`."""
        w, V_0 = self._effective(z)
        return self._outputs(w, self._completed(V_0, key), inputs)

    def draw_prior(self, key: Key[Array, ""]) -> Float[Array, " n"]:
        """Whitened weights before any label is seen."""
        return jax.random.normal(key, (self.dimension,))

    def draw_start(self, key: Key[Array, ""]) -> Float[Array, " n"]:
        r"""Weights from the prior, V_0 then from its law given the others and Y.

        The prior draw of V_0, corrected by what its outputs and fresh label noise
        $\sqrt T \epsilon$ lack from Y (Matheron's rule):
        $V_0 \mathrel{+}= \sum_{\mu\pi k} w_{\pi k} \xi^\pi_\mu v_{\mu k}$ with
        $v = (K + T)^{-1} (Y - f - \sqrt T \epsilon)$.
        """
        prior_key, noise_key = jax.random.split(key)
        z = self.draw_prior(prior_key)
        if self.activation is not None:  # then f is not linear in V_0
            return z
        w, V_0 = self._effective(z)
        K = bpkr.cross_kernel(self.inputs, self.inputs, w @ w.T)
        half = bpkr.inverse_cholesky(K + self.temperature * jnp.eye(K.shape[0]))
        noise = jax.random.normal(noise_key, self.Y.shape)
        lacking = self.Y - self.training_outputs(z)
        lacking = lacking - math.sqrt(self.temperature) * noise
        v = half.T @ (half @ lacking.ravel())
        v = v.reshape(self.inputs.shape[0], -1)
        s = jnp.einsum("pia,pk->aki", self.inputs, v).reshape(w.shape[0], -1)
        return z.at[: V_0.size].add((w.T @ s).ravel())

    def _effective(self, z) -> tuple[Float[Array, "PiK N_1"], Float[Array, "N_1 R"]]:
        """w_pi over sqrt(N_1), and whitened V_0.

        All standard deviations are one factor before every path; a skip, which lacks
        that of its layer, is divided by it.
        """
        weights, sigma = self._whitened(z), np.sqrt(self.variances)
        skip = tuple(
            None if b is None else b / s for b, s in zip(self.skip, sigma[1:-1])
        )
        scale = math.sqrt(math.prod(self.variances[1:]) / self.shapes[0][0])
        return scale * bpkr.effective_weights(weights._replace(skip=skip)), weights.V_0

    def _scaled(self, weights: Weights) -> Weights:
        """Values and readout with their standard deviations."""
        sigma = np.sqrt(self.variances)
        V = tuple(s * v for s, v in zip(sigma[1:-1], weights.V, strict=True))
        return Weights(weights.V_0, V, sigma[-1] * weights.a, self.skip)

    def _outputs(self, w, V_0, inputs) -> Float[Array, "Q *K"]:
        n_paths = inputs.shape[2]
        if self.activation is not None:
            phi = ACTIVATIONS[self.activation]
            c = 1 / np.sqrt(self.shares)
            by_path = c[:, None, None] * w.reshape(n_paths, -1, w.shape[1])
            hidden = phi(jnp.einsum("pia,ni->apn", inputs, V_0))
            f = jnp.einsum("apn,akn->pk", hidden, by_path)
            return f.reshape(inputs.shape[:1] + self.Y.shape[1:])
        s = (w @ V_0).reshape(n_paths, -1, V_0.shape[1])
        f = jnp.einsum("pia,aki->pk", inputs, s)
        return f.reshape(inputs.shape[:1] + self.Y.shape[1:])

    def _completed(self, V_0, key) -> Float[Array, "N_1 N_0"]:
        if not self.free_directions:
            return V_0
        if key is None:
            raise ValueError(
                f"the training inputs leave {self.free_directions} dimensions of V_0 "
                "to the prior: give a key to draw them."
            )
        free = jax.random.normal(key, (V_0.shape[0], self.free_directions))
        return jnp.concatenate([V_0, free], axis=1)

    def _whitened(self, z) -> Weights:
        parts, used = [], 0
        for shape in self.shapes:
            size = math.prod(shape)
            parts.append(z[used : used + size].reshape(shape))
            used += size
        return Weights(parts[0], tuple(parts[1:-1]), parts[-1])


def posterior(
    problem: Problem, *, reduced: bool = True, activation: str | None = None
) -> WeightPosterior:
    """The posterior of all weights of a learning problem."""
    problem.check_finite_width("weight space")
    if isinstance(problem.xi, bpkr.Kernels):
        raise ValueError(
            "weight space needs attentioned inputs; this problem was given kernels."
        )
    if activation is not None and activation not in ACTIVATIONS:
        raise ValueError(
            f"activation must be one of {', '.join(ACTIVATIONS)}; got {activation!r}."
        )
    shares = prior.path_shares(problem.heads, problem.skip)
    # The factor c_pi stands after a nonlinear block.
    scale = problem.scale * (1 if activation is None else np.sqrt(shares))
    if reduced:
        axes, rank = principal_axes(problem.xi)
    else:
        rank = problem.xi.shape[1]
        axes = jnp.eye(rank)
    inputs = along(problem.xi * scale, axes[:, :rank])
    widths = [int(n) for n in problem.widths]
    shapes = [(widths[0], rank)]
    shapes += [(H, n, m) for H, n, m in zip(problem.heads, widths[1:], widths)]
    shapes += [problem.Y.shape[1:] + (widths[-1],)]
    if sum(math.prod(shape) for shape in shapes) > MOST_WEIGHTS:
        raise ValueError(
            f"networks of width {widths[0]:.6g} have more weights than {MOST_WEIGHTS} "
            "(16 GiB), which is the most that can be sampled or trained."
        )
    return WeightPosterior(
        inputs,
        problem.Y,
        axes,
        scale,
        problem.skip,
        float(problem.temperature),
        tuple(shapes),
        tuple(float(v) for v in problem.variances),
        activation,
        tuple(shares.tolist()),
    )


def along(inputs: Float[Array, "P N_0 Pi"], axes) -> Float[Array, "P R Pi"]:
    """Scaled attentioned inputs along the columns of `axes`."""
    return jnp.einsum("pia,ij->pja", inputs, axes)


def principal_axes(xi: Float[Array, "P N_0 Pi"]) -> tuple[Array, int]:
    """Orthogonal axes, the strongest first, and the number that the inputs span."""
    flat = jnp.swapaxes(xi, 1, 2).reshape(-1, xi.shape[1])
    strengths, axes = right_singular_vectors(flat)
    rank = int((strengths > RANK_TOLERANCE * strengths[0]).sum())
    return axes, max(rank, 1)


@jax.jit
def right_singular_vectors(X: Float[Array, "m n"]) -> tuple[Array, Array]:
    """Singular values of X, and all n right singular vectors as columns.

    Those of R in X = Q R, so that memory is O(m n + n^2) however many rows there are.
    The Gram matrix X^T X would lose half of the digits that the rank is read from.
    """
    R = jnp.linalg.qr(X, mode="r")
    _, strengths, axes = jnp.linalg.svd(R, full_matrices=True)
    return strengths, axes.T
