r"""Stationary states and the capacity (docs/theory/extensive.md, section 4).

A network without positional code that stays with its condensed patterns has constant
overlaps, and two-time arrays that depend on the lag.  Since the weights sum to one, A =
m^v, and the recursion of section 2 is a map of

    A              (M,)      attention vector
    S(lag)         (L + 1,)  correlations of the value overlaps; S(L) at longer lags;
                             of one token of context S(0) alone matters
    S^{qk}(lag)    (C,)      correlations of queries with keys, which set the weights

whose fixed points are continued in any parameter; a fold is where retrieval ends.

At rest, for static spins of identical patterns without thermal noise, all responses add
up: S = 1/(1 - g)^2 in place of S = 1 + g^2 S.  The self-interaction then leaves many
states, of which the one without remanence, $x = \mathrm{sgn}(m \xi + \phi)$, is taken:
that of D. J. Amit, H. Gutfreund and H. Sompolinsky, PRL 55, 1530 (1985).
"""

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree
from jaxtyping import Array, Float

from statmech_attn import presentation
from statmech_attn.dmft.extensive.closed_recursion import COARSE, FINE
from statmech_attn.dmft.extensive.ensembles import Ensemble, K, O, Q, V
from statmech_attn.dmft.extensive.gaussian import mean_and_slope, product, Rule, rule
from statmech_attn.dmft.extensive.loaded_network import Cells, cells, LoadedNetwork
from statmech_attn.dmft.network import Network
from statmech_attn.dynamics import continuation
from statmech_attn.labels import Variable
from statmech_attn.options import Interval, Means, WholeNumber


PARAMETERS = ("alpha", "beta", "gamma")
SETTLING = 1000  # iterations from the start towards the fixed point
SMALLEST_STEP = 1e-10  # of the settled state
RANGE = 4.0  # largest factor by which a parameter is followed
RETRIEVED = 1e-3  # smallest overlap of a state that retrieves


class NoRetrieval(RuntimeError):
    """No stationary state with an overlap was reached."""


class Stationary(eqx.Module):
    """A map whose fixed points are the stationary states, for `continuation`.

    Attributes:
        net: condensed patterns and context.
        ensemble: of the other patterns.
        sites: cells of the sites.
        quadrature: of two fields.
        lags: largest lag L that is told from an infinite one.
        at_rest: whether spins are static.
    """

    net: Network
    ensemble: Ensemble
    sites: Cells
    quadrature: Rule
    lags: int = eqx.field(static=True)
    at_rest: bool = eqx.field(static=True)

    def __call__(self, state: dict, parameters: dict) -> dict:
        """One step of the state {A, S, S_qk} at parameters alpha, beta and gamma."""
        if self.at_rest:
            return self._resting(state, parameters)
        C_lags, lag = self.net.context, jnp.arange(self.lags + 1)
        alpha, temperature = parameters["alpha"], 1 / parameters["beta"]
        weights = jax.nn.softmax(parameters["gamma"] * alpha * state["S_qk"])
        age = np.arange(C_lags)
        passed = jnp.einsum(
            "d,e,lde->l",
            weights,
            weights,
            self._at(state["S"], lag[:, None, None] - age[:, None] + age),
        )
        sigma, a = jnp.sqrt(alpha * passed[0]), state["A"] @ self.sites.output
        spin, slope = mean_and_slope(a, temperature, sigma)
        g = slope @ self.sites.share
        connected = product(
            self.quadrature,
            (a, a),
            (temperature, temperature),
            (sigma, sigma),
            alpha * passed[1:, None],
        )
        C = jnp.append(1.0, (spin**2 + connected) @ self.sites.share)
        S = C + g**2 * passed if self.ensemble.is_cycle else C
        return {
            "A": self.sites.weighted[V] @ spin,
            "S": S,
            "S_qk": self._queries_with_keys(C, S, g, weights),
        }

    def _queries_with_keys(self, C, S, g, weights) -> Float[Array, " C"]:
        """S^{qk} at the lags of the window."""
        age, rho = np.arange(self.net.context), self.ensemble.correlations
        if self.ensemble.is_cycle:
            return self._at(S, age)
        lag = age[:, None]
        back = self._at(C, lag - 1 - age) @ weights
        ahead = self._at(C, lag + 1 + age) @ weights
        attended = self._at(C, lag[..., None] - lag + age) @ weights @ weights
        return (
            rho[Q, K] * self._at(C, age)
            + g * rho[Q, O] * rho[V, K] * back
            + g * rho[Q, V] * rho[K, O] * ahead
            + g**2 * rho[Q, O] * rho[K, O] * attended
        )

    def _at(self, values, lag):
        """Values at lags of either sign; beyond the largest they are constant."""
        return values[jnp.minimum(abs(lag), self.lags)]

    def _resting(self, state: dict, parameters: dict) -> dict:
        sigma = jnp.sqrt(parameters["alpha"] * state["S"][0])
        a = state["A"] @ self.sites.output
        spin, slope = mean_and_slope(a, 0.0, sigma)
        S = (1 - slope @ self.sites.share) ** -2
        static = lambda name: jnp.full_like(state[name], S)
        A = self.sites.weighted[V] @ spin
        return {"A": A, "S": static("S"), "S_qk": static("S_qk")}


class StationaryState(eqx.Module):
    """A state of constant overlaps; `problem` and `state` go to `continuation`.

    Attributes:
        A: attention vector.
        S: correlations of the value overlaps by lag.
        S_qk: correlations of query with key overlaps by age.
        problem: the map of which it is a fixed point, with its free parameter.
    """

    A: Float[Array, " M"]
    S: Float[Array, " lags"]
    S_qk: Float[Array, " C"]
    problem: continuation.Problem

    _shown = (
        Variable("A", "pattern", "attention vector"),
        Variable("S", "lag", "correlations of the value overlaps", symbol="S^{vv}"),
        Variable("S_qk", "age", "correlations of query with key", symbol="S^{qk}"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def state(self) -> dict:
        """The fixed point as a state of the map."""
        return {"A": self.A, "S": self.S, "S_qk": self.S_qk}


class Capacity(eqx.Module):
    """Where retrieval ends on a branch of stationary states.

    Attributes:
        value: of the free parameter at the fold.
        error: of the last Newton step and of rounding; those of the lags and of
            quadrature show where fewer are told apart, and where it is `coarse`.
        overlap: attention vector A at the fold.
        noise: multiplier of noise in the correlations there, at fixed overlaps; stable
            below one.
        free: name of the free parameter.
        branch: the stationary states.
    """

    value: float
    error: float
    overlap: Float[np.ndarray, " M"]
    noise: float
    free: str = eqx.field(static=True)
    branch: continuation.Solution

    _shown = (
        Variable("free", "", "free parameter"),
        Variable("value", "", "end of retrieval", error="error"),
        Variable("overlap", "pattern", "overlaps at the end", symbol="A"),
        Variable("noise", "", "multiplier of noise in the correlations"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


@presentation.knows_given
def stationary(
    problem: LoadedNetwork,
    start: Means,
    *,
    free: str = "alpha",
    lags: WholeNumber | None = None,
    at_rest: bool = False,
    coarse: bool = False,
) -> StationaryState:
    """The stationary state that the network settles in, ready to be continued.

    Args:
        problem: with an ensemble that `is_closed`, or, at rest, identical patterns
            without thermal noise; of one beta and without positional code.
        start: mean of the first token in every site class.
        free: parameter to be continued: alpha, beta or gamma.
        lags: largest lag that is told from an infinite one; 8 (C - 1) when omitted.
        at_rest: static spins.
        coarse: integrate with the coarser rule, whose difference is an error.

    Returns:
        The state, and the problem that `dynamics.continuation.follow_cycle` takes.

    Raises:
        ValueError: the recursion does not close, a parameter that is none, beta that
            changes, or a positional code.
        NoRetrieval: the iteration does not settle.

    Example:
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=1)
        >>> problem = extensive.loaded_network(
        ...     net, extensive.cycle(), alpha=0.2, beta=np.inf)
        >>> round(float(extensive.stationary(problem, [1.0]).A[0]), 6)
        0.966326
    """
    check_stationary(problem, free, at_rest=at_rest)
    sites, context = cells(problem.net, start), problem.net.context
    lags = chosen_lags(problem, lags)
    quadrature = rule(*(COARSE if coarse else FINE))
    step = Stationary(problem.net, problem.ensemble, sites, quadrature, lags, at_rest)
    parameters = {name: getattr(problem, name) for name in PARAMETERS}
    state = {
        "A": sites.weighted[V] @ sites.start,
        "S": jnp.ones(lags + 1),
        "S_qk": jnp.ones(context),
    }
    # Equal tokens stay so without thermal noise, but unstably: begin with others.
    state["S"] = state["S"].at[1:].set(1.0 if at_rest else 0.9)
    state = settle(step, state, parameters)
    return StationaryState(
        problem=continuation.Problem(step, state, parameters, free), **state
    )


def settle(step, state: dict, parameters: dict) -> dict:
    """Iterate a map (state, parameters) -> state until its state stays."""
    state, change = _settled(step, state, parameters)
    if not change < SMALLEST_STEP:
        raise NoRetrieval(
            f"stationary state: {SETTLING} iterations leave a change of {change:.1g}; "
            "start nearer to it, or at a smaller alpha."
        )
    return state


@eqx.filter_jit
def _settled(step, state: dict, parameters: dict):
    def change(carry):
        _, difference, count = carry
        return (difference >= SMALLEST_STEP) & (count < SETTLING)

    def iterate(carry):
        state, _, count = carry
        after = step(state, parameters)
        moved = jax.tree.map(lambda x, y: jnp.abs(x - y).max(), state, after)
        return after, jnp.max(jnp.stack(jax.tree.leaves(moved))), count + 1

    state, difference, _ = jax.lax.while_loop(change, iterate, (state, jnp.inf, 0))
    return state, difference


def capacity(
    problem: LoadedNetwork,
    start: Means,
    *,
    free: str = "alpha",
    at_rest: bool = False,
    lags: WholeNumber | None = None,
    coarse: bool = False,
    within: Interval | None = None,
    settings: continuation.Settings | None = None,
) -> Capacity:
    """Where the stationary state ends in a fold, by continuation.

    Args:
        problem: at whose parameters retrieval is stationary.
        start: mean of the first token in every site class.
        free: parameter that is increased: alpha, beta or gamma.
        at_rest: static spins of identical patterns, as in a Hopfield network.
        lags: largest lag that is told from an infinite one; 8 (C - 1) when omitted.
        coarse: integrate with the coarser rule, whose difference is an error.
        within: range in which the parameter is followed; from a quarter to four times
            its value when omitted.
        settings: of the continuation.

    Returns:
        The fold, with the branch up to it.

    Raises:
        ValueError: as for `stationary`.
        NoRetrieval: the iteration does not settle, or loses the pattern.
        RuntimeError: the branch has no fold.

    Example:
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> net = dmft.network(dmft.site_classes(np.ones((4, 1, 1))), context=1)
        >>> problem = extensive.loaded_network(
        ...     net, extensive.cycle(), alpha=0.2, beta=np.inf)
        >>> round(extensive.capacity(problem, [1.0]).value, 5)
        0.26906
    """
    settled = stationary(
        problem, start, free=free, lags=lags, at_rest=at_rest, coarse=coarse
    )
    return followed_to_fold(settled, "A", within, settings)


def followed_to_fold(
    settled,
    overlap: str,
    within: Interval | None,
    settings: continuation.Settings | None,
) -> Capacity:
    """Follow a state to the fold where it ends.

    `overlap` is the name of the overlaps in the state; `within` is from a quarter to
    four times the free parameter for None.
    """
    problem = settled.problem
    value = float(problem.parameters[problem.free])
    if not jnp.abs(settled.state[overlap]).max() > RETRIEVED:
        raise NoRetrieval(
            f"stationary state: at {problem.free} = {value:g} no pattern is retrieved."
        )
    branch = continuation.follow_cycle(
        problem,
        settled.state,
        value,
        within=within or (value / RANGE, value * RANGE),
        settings=settings,
    )
    for point in branch:
        folds = [special for special in point.special if special.kind == "fold"]
        if folds:
            state = problem.unravel(jnp.asarray(folds[0].x))
            return Capacity(
                folds[0].value,
                folds[0].error,
                np.asarray(state[overlap]),
                noise_multiplier(problem, state, overlap, folds[0].value),
                problem.free,
                branch.solution,
            )
    raise RuntimeError(
        f"stationary state: the branch in {problem.free} has no fold before it ended "
        f"({branch.reason})."
    )


def noise_multiplier(
    problem: continuation.Problem, state: dict, overlap: str, value: float
) -> float:
    """Factor by which noise in the correlations grows in a token, at fixed overlaps.

    It is the largest size of a multiplier; below one the correlations are stable.
    """
    fixed, noisy = eqx.partition(state, {name: name == overlap for name in state})
    parameters = {**problem.parameters, problem.free: jnp.asarray(value)}
    flat, unravel = ravel_pytree(noisy)

    def after(x):
        state = eqx.combine(fixed, unravel(x))
        image = problem.map(state, parameters)
        return ravel_pytree({n: image[n] for n in image if n != overlap})[0]

    return float(np.abs(np.linalg.eigvals(jax.jacfwd(after)(flat))).max())


def chosen_lags(problem: LoadedNetwork, lags: int | None = None) -> int:
    """The largest lag whose effect can be told from that of an infinite one.

    As given, or 8 (C - 1) for None.
    """
    longest = problem.net.context - 1
    if lags is None:
        return 8 * longest
    if lags < longest:
        raise ValueError(f"lags must be at least C - 1 = {longest}; got {lags}.")
    return lags


def check_stationary(
    problem: LoadedNetwork, free: str = "alpha", *, at_rest: bool = False
) -> None:
    """Refuse networks whose stationary states this theory lacks, for `stationary`."""
    if free not in PARAMETERS:
        raise ValueError(f"free must be one of {', '.join(PARAMETERS)}; got {free!r}.")
    if problem.beta.ndim:
        raise ValueError("beta must be one number in a stationary state.")
    if problem.epsilon != 0:
        raise ValueError(
            f"epsilon must be 0 in a stationary state; got {float(problem.epsilon):g}."
        )
    is_identical = not problem.ensemble.is_cycle and np.all(
        problem.ensemble.correlations == 1
    )
    if at_rest and not (is_identical and np.isinf(problem.beta) and free != "beta"):
        raise ValueError("at rest patterns must be identical() and beta infinite.")
    if not at_rest and not problem.ensemble.is_closed:
        raise ValueError(
            "ensemble: stationary states are known for cycle() and ov = 0, or at rest."
        )
