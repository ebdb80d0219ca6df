r"""Network, parameters and state of the mean-field map (docs/theory/dmft.md, 1-2).

A network is fixed by its patterns, the context length C and the positional code;
$\beta$, $\gamma$ and $\epsilon$ are parameters, traced by JAX, so that a new value
never recompiles.  Any trailing axes of the parameters and of the state are batch
axes: the map is written with the batch last, which is what makes scans fast.

    W^alpha w_c            (4, M, S)   weighted patterns               `weighted`
    W^o                    (M, S)      output patterns                 `output`
    m^{alpha,PE}           (C, 4, M)   positional overlaps             `positional`
    m^v, m^k in the window (C, M, ..)  by slot = token time mod C      `v`, `k`
    A window               (C, M, ..)  A that draws the token of the slot  `attention`
    position of next token ()          token time mod C                `clock`
    tokens in the window   ()          grows from 1 to C               `tokens`
    <x>_c of the newest    (S, ..)     where spins may be copied       `means`

Storing the window by slot instead of by age means that a step overwrites one slot and
shifts nothing; attention does not depend on the order.
"""

import hashlib
from typing import Annotated, Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.core import Tracer
from jaxtyping import Array, Float, Int

from statmech_attn import presentation
from statmech_attn.batches import add_in_turns, add_products, require_double
from statmech_attn.dmft.patterns import Patterns
from statmech_attn.labels import Variable, Variables
from statmech_attn.options import Count, Means, NotNegatives, Numbers, WholeNumbers


MAX_WINDOW = 2**20  # numbers of an attention window
FEW = 8  # site classes, or patterns, over which sums are written out
RANGES = {  # of parameters
    "beta": (lambda x: x >= 0, "be >= 0"),
    "epsilon": (lambda x: (x >= 0) & (x < 1), "lie in [0, 1)"),
    "redrawn": (lambda x: (x > 0) & (x <= 1), "lie in (0, 1]"),
}
PARAMETERS = Variables(
    Variable("beta", "", "inverse temperature of the output", "1", "β"),
    Variable("gamma", "", "inverse temperature of attention", "1", "γ"),
    Variable("epsilon", "", "weight of the positional part", "1", "ε"),
    Variable("redrawn", "", "probability with which a spin is redrawn", "1", "Δ"),
)


class Network(eqx.Module):
    """A 1-bit attention network, whose parameters may vary; build with `network`.

    Attributes:
        weighted: semantic patterns times the fractions of the site classes.
        output: output patterns W^o by site class.
        positional: overlaps of the positional code with the patterns, by position.
        context: number C of tokens that attention reads.
        output_rank: rank of W^o: how many directions of A a token depends on.
        code_period: tokens after which the positional overlaps repeat: C, or 1 where
            they do not change.
    """

    weighted: Float[Array, "4 M S"]
    output: Float[Array, "M S"]
    positional: Float[Array, "C 4 M"]
    context: int = eqx.field(static=True)
    output_rank: int = eqx.field(static=True)  # of W^o: how much of A a token sees
    code_period: int = eqx.field(static=True)

    _shown = (
        Variable("patterns", "", "patterns", symbol="M", value="n_patterns"),
        Variable("classes", "", "site classes", symbol="S", value="n_classes"),
        Variable("context", "", "context length", "token", "C"),
        Variable("output_rank", "", "rank of the output patterns"),
        Variable("code_period", "", "period of the positional code", "token"),
    )
    __repr__, _repr_html_ = presentation.METHODS[:2]

    @property
    def file_attributes(self) -> dict[str, Any]:
        """Attributes by which files name it."""
        return network_attributes(self)

    @property
    def n_patterns(self) -> int:
        """Number M of patterns."""
        return self.output.shape[0]

    @property
    def n_classes(self) -> int:
        """Number S of site classes."""
        return self.output.shape[1]

    @property
    def dimension(self) -> int:
        """Number of Lyapunov exponents, M C."""
        return self.n_patterns * self.context

    def check_patterns(self, patterns: Patterns) -> None:
        """Raise `ValueError` unless the network was built from these patterns.

        Args:
            patterns: site classes of a network.

        Raises:
            ValueError: other patterns.
        """
        if not np.array_equal(patterns.semantic * patterns.fractions, self.weighted):
            raise ValueError(
                "patterns must be those that net was built from: give the argument of "
                "dmft.network."
            )


class Parameters(eqx.Module):
    """Control parameters, dimensionless; scalars or arrays of the batch shape.

    Attributes:
        beta: inverse temperature of the output.
        gamma: inverse temperature of attention.
        epsilon: weight of the positional code, in [0, 1).
        redrawn: probability with which a spin is redrawn, else copied, in (0, 1]; all
            spins are redrawn where there is none.
    """

    beta: Float[Array, "*batch"]
    gamma: Float[Array, "*batch"]
    epsilon: Float[Array, "*batch"]
    redrawn: Float[Array, "*batch"] | None = None

    _shown = tuple(PARAMETERS)
    __repr__, _repr_html_ = presentation.METHODS[:2]


class State(eqx.Module):
    """State of the map of any network of these sizes: attention window and clock.

    Attributes:
        v: value overlaps of the tokens in the window, by slot: token time mod C.
        k: key overlaps, likewise.
        attention: the vector A that draws the token of each slot.
        clock: position of the next token: its time mod C.
        tokens: number of tokens in the window, up to C.
        means: class means of the newest token, where spins may be copied.
    """

    v: Float[Array, "C M *batch"]
    k: Float[Array, "C M *batch"]
    attention: Float[Array, "C M *batch"]
    clock: Int[Array, ""]
    tokens: Int[Array, ""]
    means: Float[Array, "S *batch"] | None = None

    _shown = (
        Variable("newest", "pattern", "attention that draws the next token"),
        Variable("clock", "", "position of the next token", "token"),
        Variable("tokens", "", "tokens in the window", "token"),
    )
    __repr__, _repr_html_ = presentation.METHODS[:2]

    @property
    def newest(self) -> Float[Array, "M *batch"]:
        """The newest attention vector A_t, which draws the next token."""
        return jax.lax.dynamic_index_in_dim(self.attention, self.clock, 0, False)


def network(patterns: Patterns, *, context: Count) -> Network:
    """Build a network from its patterns and its context length.

    Args:
        patterns: site classes, as `load`, `from_matrices` or `random_segments` give
            them.
        context: number C of tokens that attention reads.

    Returns:
        The network, which does not change along a scan.

    Raises:
        ValueError: context < 1.
        RuntimeError: double precision is off.

    Example:
        >>> from statmech_attn.dmft import load
        >>> network(load("poclopez-pe2").patterns, context=4).dimension
        12
    """
    require_double()
    if context < 1:
        raise ValueError(f"context must be at least 1 token; got {context}.")
    if context * max(patterns.n_patterns, patterns.n_bits) > MAX_WINDOW:
        raise ValueError(
            f"context times patterns or positional bits must be at most {MAX_WINDOW}; "
            f"got {context} tokens, {patterns.n_patterns} patterns and "
            f"{patterns.n_bits} bits."
        )
    bits = positional_code(context, patterns.n_bits)
    n_bits = max(patterns.n_bits, 1)
    positional = np.einsum("cj,kaj->cka", bits, patterns.positional) / n_bits
    changes = np.any(positional != positional[:1])
    return Network(
        weighted=jnp.asarray(patterns.semantic * patterns.fractions, float),
        output=jnp.asarray(patterns.semantic[0], float),
        positional=jnp.asarray(positional, float),
        context=context,
        output_rank=int(np.linalg.matrix_rank(_gram(patterns))),
        code_period=context if changes else 1,
    )


def network_digest(net: Network) -> str:
    """SHA-256 of a network's patterns and context, for the attribute `network`."""
    digest = hashlib.sha256(str(net.context).encode())
    for array in (net.weighted, net.output, net.positional):
        array = np.ascontiguousarray(np.asarray(array, "<f8")) + 0.0
        digest.update(str(array.shape).encode() + array.tobytes())
    return digest.hexdigest()


def network_attributes(net: Network) -> dict[str, Any]:
    """Attributes by which files name their network: its digest and its context.

    Args:
        net: a network.

    Returns:
        The attributes `network` and `context`.

    Example:
        >>> from statmech_attn import dmft
        >>> net = dmft.network(dmft.load("poclopez-pe2").patterns, context=4)
        >>> network_attributes(net)["context"]
        4
    """
    return {"network": network_digest(net), "context": net.context}


def _gram(patterns: Patterns) -> Float[np.ndarray, "M M"]:
    """W^o W^oT over the classes that exist; small integers, so its rank is exact."""
    present = patterns.semantic[0][:, patterns.fractions > 0]
    return present @ present.T


def positional_code(context: int, n_bits: int) -> Float[np.ndarray, "C N_p"]:
    """N_p-bit binary code of t mod C, most significant bit first, 0 -> -1, 1 -> +1.

    A context longer than 2^N_p repeats the code.
    """
    shifts = np.arange(n_bits)[::-1]
    return 2.0 * ((np.arange(context)[:, None] >> shifts) & 1) - 1.0


def clock_period(network: Network, epsilon: float | Array) -> int:
    """Period of the external drive in tokens: C, or 1 when the code has no effect.

    Args:
        network: the network.
        epsilon: weight of the positional code, a number.

    Raises:
        ValueError: epsilon is traced by JAX.

    Example:
        >>> from statmech_attn import dmft
        >>> net = dmft.network(dmft.load("poclopez-pe2").patterns, context=4)
        >>> clock_period(net, 0.02), clock_period(net, 0.0)
        (4, 1)
    """
    if isinstance(epsilon, Tracer):
        raise ValueError("epsilon: whether it is zero must be known outside jax.jit.")
    return network.code_period if epsilon != 0 else 1


def parameters(
    beta: NotNegatives, gamma: Numbers, epsilon: Numbers, redrawn: Numbers | None = None
) -> Parameters:
    """Control parameters, checked and broadcast to one batch shape.

    Args:
        beta: inverse temperature of the output, >= 0; a number or an array.
        gamma: inverse temperature of attention.
        epsilon: weight of the positional code, in [0, 1).
        redrawn: probability with which a spin is redrawn, in (0, 1]; when omitted, all
            spins move at once.

    Returns:
        Arrays in double precision, all of the broadcast shape.

    Raises:
        ValueError: a value out of range or not finite.

    Inside `jax.vmap` and `jax.jit` the numbers are not known yet, and not checked.

    Example:
        >>> parameters([0.5, 1.5], 127.0, 0.02).gamma
        Array([127., 127.], dtype=float64)
    """
    require_double()
    values = {"beta": beta, "gamma": gamma, "epsilon": epsilon, "redrawn": redrawn}
    values = {name: x for name, x in values.items() if x is not None}
    if not any(isinstance(x, Tracer) for x in values.values()):
        for name, x in values.items():
            _require_allowed(name, np.asarray(x, float))
    # Arrays stay on their devices.
    of = jnp if any(isinstance(x, jax.Array) for x in values.values()) else np
    arrays = of.broadcast_arrays(*(of.asarray(x, float) for x in values.values()))
    return Parameters(**{k: jnp.asarray(x, float) for k, x in zip(values, arrays)})


def _require_allowed(name: str, value: Float[np.ndarray, "..."]) -> None:
    if not np.isfinite(value).all():
        raise ValueError(
            f"{name} must be finite; got {value[~np.isfinite(value)].flat[0]}."
        )
    allowed, words = RANGES.get(name, (np.isfinite, ""))
    outside = value[~allowed(value)]
    if outside.size:
        raise ValueError(f"{name} must {words}; got {outside.min():g}.")


def require_parallel(params: Parameters) -> None:
    """Refuse copied spins, which the attention window does not determine."""
    if params.redrawn is not None:
        raise ValueError(
            "redrawn: the attention window does not determine which spins are copied; "
            "take dmft.sequential."
        )


def window(state: State) -> Float[Array, "C M *batch"]:
    """Attention window z = (A_t, A_{t-1}, ..., A_{t-C+1}), newest first.

    Args:
        state: attention window and clock.

    Returns:
        The attention vectors, without the order of the ring buffer in which the state
        stores them.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> window(dmft.from_checkpoint(net, params, file)).shape
        (4, 3)
    """
    context = state.attention.shape[0]
    return state.attention[(state.clock - jnp.arange(context)) % context]


def token(
    net: Network,
    params: Parameters,
    attention: Annotated[Means, "M *batch"],
    clock: Annotated[WholeNumbers, ""],
) -> Float[Array, "4 M *batch"]:
    r"""Overlaps m^alpha_a of the token drawn from A at a position.

    $m^{\alpha,SE}_a = \sum_c w_c W^\alpha_{a,c} \tanh(\beta \sum_b W^o_{b,c} A_b)$,
    mixed with the positional overlap by epsilon.
    """
    return token_overlaps(net, params, drawn_means(net, params, attention), clock)


def drawn_means(
    net: Network, params: Parameters, attention
) -> Float[Array, "S *batch"]:
    r"""Class means $\tanh(\beta \sum_b W^o_{b,c} A_b)$ of redrawn spins."""
    return jnp.tanh(params.beta * contract(net.output.T, attention))


def next_means(
    net: Network,
    params: Parameters,
    attention: Annotated[Means, "M *batch"],
    before: Annotated[Means, "S *batch"] | None,
) -> Float[Array, "S *batch"]:
    r"""Class means of the next token, whose spins are redrawn or copied.

    $\langle x_{t+1} \rangle_c = (1 - \Delta) \langle x_t \rangle_c + \Delta
    \tanh h_c$ (docs/theory/dmft.md, 7).
    """
    fresh = drawn_means(net, params, attention)
    if params.redrawn is None:
        return fresh
    if before is None:
        raise ValueError(
            "state has no class means to copy; make it with parameters that have "
            "redrawn."
        )
    return fresh + (1 - params.redrawn) * (before - fresh)


def token_overlaps(
    net: Network,
    params: Parameters,
    means: Annotated[Means, "S *batch"],
    clock: Annotated[WholeNumbers, ""],
):
    """Overlaps (4, M, *batch) of a token with given class means (S, *batch).

    Args:
        net: the network, as `network` builds it.
        params: control parameters of any batch shape, as `parameters` makes them.
        means: means of a token by site class, (S, *batch).
        clock: position of the token.

    Returns:
        Overlaps by kind (o, v, q, k) and pattern.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> params = dmft.parameters(1.4, file.gamma, file.epsilon)
        >>> overlaps = token_overlaps(net, params, net.output[1], 0)
        >>> overlaps.shape
        (4, 3)
    """
    semantic = contract(net.weighted, means)
    positional = jax.lax.dynamic_index_in_dim(net.positional, clock, 0, False)
    positional = positional.reshape(positional.shape + (1,) * (semantic.ndim - 2))
    return (1 - params.epsilon) * semantic + params.epsilon * positional


def contract(matrix: Float[Array, "*rows n"], x: Float[Array, "n *rest"]):
    """Sum over the last axis of `matrix` and the first of `x`.

    Args:
        matrix: array whose last axis is summed over.
        x: array whose first axis is summed over.

    Returns:
        Array (*rows, *rest).

    Example:
        >>> import jax.numpy as jnp
        >>> contract(jnp.ones((2, 3)), jnp.ones((3, 5))).shape
        (2, 5)
    """
    rows, trailing = matrix.shape[:-1], x.shape[1:]
    columns = jnp.moveaxis(matrix, -1, 0).reshape(
        x.shape[:1] + rows + (1,) * len(trailing)
    )
    add = add_products if len(x) <= FEW else add_in_turns
    return add(columns, x.reshape(x.shape[:1] + (1,) * len(rows) + trailing))
