r"""Depth of a network as time (docs/theory/depth.md, section 1).

A network of L layers with weights of their own is a map with a clock, h -> F_l(h).
With the Jacobian $J = DF_L \cdots DF_1 = U \Sigma V^T$ at an input, its exponents are

    $\lambda_j = \frac1L \ln \Sigma_{jj}$

in nats per layer.  The first k columns of V, pushed through the layers and
orthonormalised after each, end as those of U, so that the logarithms that Gram-Schmidt
leaves, $\ln |R_{jj}^{(l)}|$, add up to $L \lambda_j$ without remainder.
"""

from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dynamics.exponents.finite_time import error_of_mean
from statmech_attn.dynamics.exponents.frames import EPS
from statmech_attn.dynamics.exponents.lyapunov import frame_size
from statmech_attn.dynamics.maps.orthonormal import safe_log
from statmech_attn.dynamics.maps.systems import (
    as_system,
    BatchedResult,
    call,
    of_each,
    require_like,
    shape_of_step,
    System,
)
from statmech_attn.dynamics.maps.tracing import forward_only
from statmech_attn.labels import Variable


LAYER = "layer"
TOGETHER = 16  # inputs that are computed side by side


class _Layers(eqx.Module):
    """A step with a clock, which says the number of the layer.

    Layers that differ in their arrays alone are one, whose arrays are chosen.
    """

    steps: tuple[Callable[..., Any], ...]
    stacked: Any
    count: int = eqx.field(static=True)

    def __call__(self, state, parameters=None):
        h, number = state
        if self.stacked is None:
            of_one = lambda step: lambda h: call(step, h, parameters)
            h = jax.lax.switch(number, [of_one(step) for step in self.steps], h)
        else:
            arrays = jax.tree.map(lambda x: x[number], self.stacked)
            h = call(eqx.combine(arrays, self.steps[0]), h, parameters)
        return h, (number + 1) % self.count


def layered(layers: Sequence[Callable[..., Any] | System]) -> System:
    """A network of different layers as a system with a clock.

    Args:
        layers: systems or their steps, h -> h or (h, parameters) -> h, in their order.
            All take the same parameters.

    Returns:
        A system whose state is a pair: h, and the number of the next layer as an
        integer, from 0.  The first layer follows the last one.

    Raises:
        ValueError: no layers.

    Example:
        >>> import jax.numpy as jnp
        >>> network = layered([lambda h: 2 * h, lambda h: h + 1])
        >>> h, number = network.step((jnp.array([1.0]), jnp.array(0)))
        >>> h.tolist(), int(number)
        ([2.0], 1)
    """
    steps = tuple(as_system(layer).step for layer in layers)
    if not steps:
        raise ValueError("layers must hold at least one layer.")
    arrays, others = zip(*(eqx.partition(step, eqx.is_array) for step in steps))
    forms = [jax.tree.map(jnp.shape, x) for x in arrays]
    count, stacked = len(steps), None
    if all(eqx.tree_equal(x, (forms[0], others[0])) for x in zip(forms, others)):
        stacked, steps = jax.tree.map(lambda *x: jnp.stack(x), *arrays), others[:1]
    return System(
        _Layers(steps, stacked, count),
        drive_period=count,
        clock=lambda state: state[1],
        unit=LAYER,
    )


class DepthExponents(BatchedResult):
    """Exponents of all layers of a network over many inputs, in nats per layer.

    NaN where rounding hides a direction, or where the state diverged.

    Attributes:
        growth: of the leading directions of every input, layer by layer.
        unit: what a step is.
    """

    growth: Float[Array, "inputs layers k *batch"]
    unit: str = eqx.field(static=True, default=LAYER)

    own_axes = ("growth", 3)
    _shown = (
        Variable(
            "depth_exponent",
            "input exponent",
            "exponent of an input",
            "nat / {unit}",
            "λ_i^{(L)}",
            value="values",
            line=False,
        ),
        Variable(
            "mean",
            "exponent",
            "average over the inputs",
            "nat / {unit}",
            "⟨λ_i⟩",
            error="stderr",
        ),
        Variable(
            "spread",
            "exponent",
            "standard deviation over the inputs",
            "nat / {unit}",
            "σ(λ_i)",
        ),
        Variable(
            "layer_growth",
            "layer exponent",
            "growth in a layer",
            "nat / {unit}",
            "g_l",
            value="by_layer",
            error="by_layer_stderr",
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    @of_each
    def values(self) -> Float[Array, "inputs k *batch"]:
        """Exponents of every input."""
        return jnp.mean(self.growth, axis=1)

    @property
    @of_each
    def mean(self) -> Float[Array, "k *batch"]:
        """Average over the inputs."""
        return jnp.mean(self.values, axis=0)

    @property
    @of_each
    def spread(self) -> Float[Array, "k *batch"]:
        """Unbiased standard deviation over the inputs."""
        return jnp.std(self.values, axis=0, ddof=1)

    @property
    @of_each
    def stderr(self) -> Float[Array, "k *batch"]:
        """Standard error of the average over the inputs."""
        return error_of_mean(self.values)

    @property
    @of_each
    def by_layer(self) -> Float[Array, "layers k *batch"]:
        """Growth in every layer, averaged over the inputs."""
        return jnp.mean(self.growth, axis=0)

    @property
    @of_each
    def by_layer_stderr(self) -> Float[Array, "layers k *batch"]:
        """Its standard error."""
        return error_of_mean(self.growth)


@forward_only
def depth_exponents(
    layers: Sequence[Callable[..., Any] | System],
    inputs: Float[Array, "inputs ..."],
    parameters: PyTree = None,
    *,
    exponents: int = 1,
) -> DepthExponents:
    """Finite-time exponents of a network whose layers are the steps; under `vmap` too.

    They are those of the Jacobian of all layers together, whose largest singular value
    says what the most sensitive small change of an input becomes.

    Args:
        layers: as of `layered`.
        inputs: states before the first layer, on the first axis; at least two.
        parameters: of all layers.
        exponents: how many leading exponents.

    Returns:
        `DepthExponents`, in nats per layer.

    Raises:
        ValueError: no layers, fewer than two inputs, a layer that changes the form of
            its input, or more exponents than coordinates.

    Example:
        >>> import jax.numpy as jnp
        >>> layers = [lambda h: 2 * h, lambda h: h[::-1] * jnp.array([1.0, 3.0])]
        >>> depth = depth_exponents(layers, jnp.ones((4, 2)), exponents=2)
        >>> jnp.exp(2 * depth.mean).round(6).tolist()
        [6.0, 2.0]
    """
    require_double()
    inputs = jnp.asarray(inputs)
    if not inputs.ndim or len(inputs) < 2:
        raise ValueError("inputs must be at least two, on the first axis.")
    network = layered(layers)
    first = (inputs[0], jnp.array(0))
    map = network.at(parameters)
    require_like(shape_of_step(map.step, first), first)
    k = frame_size(map, first, exponents)
    return DepthExponents(_growth(map, inputs, layers=len(layers), k=k))


@eqx.filter_jit
def _growth(map, inputs, *, layers, k) -> Float[Array, "inputs layers k"]:
    def of_one(h):
        start = (h, jnp.array(0))
        units = jnp.eye(h.size)
        push = lambda _, pair: map.push(*pair)
        _, jacobian = jax.lax.fori_loop(0, layers, push, (start, units))
        _, sizes, directions = jnp.linalg.svd(jacobian)

        def layer(pair, _):
            state, frame = map.push(*pair)
            frame, lengths = jnp.linalg.qr(frame)
            return (state, frame), safe_log(jnp.abs(jnp.diagonal(lengths)))

        start = (start, directions[:k].T)
        growth = jax.lax.scan(layer, start, None, length=layers)[1]
        hidden = sizes[:k] <= h.size * EPS * sizes[0]
        return jnp.where(hidden, jnp.nan, growth)

    return jax.lax.map(of_one, inputs, batch_size=TOGETHER)
