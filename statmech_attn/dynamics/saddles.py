r"""Pseudo-orbits on chaotic saddles, and what a saddle's dimension is.

Orbits leave a saddle at the rate $\kappa$; a state on its stable set never does, and
one with a lifetime of T steps is about $e^{-\lambda_1 T}$ from this set.  A state whose
lifetime falls to T is moved by a random vector so short that it lives for longer
(stagger), and then followed until its lifetime is T again (step): a pseudo-orbit of any
length with small jumps (Sweet, Nusse, Yorke, Phys. Rev. Lett. 86, 2261, 2001).  With
one expanding direction, the entropy of the orbits that stay is what is not lost, and
the saddle has the information dimension $D_u$ along it and $D_s$ across (Kantz,
Grassberger, Physica D 17, 75, 1985; Hunt, Ott, Yorke, Phys. Rev. E 54, 4819, 1996)

    $h = \lambda_1 - \kappa$,   $D_u = h / \lambda_1$,
    $D_s = J + (h - \sum_{j=2}^{J+1} |\lambda_j|) / |\lambda_{J+2}|$

with J the largest number for which the sum is at most h.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Key, PyTree

from statmech_attn import presentation
from statmech_attn.batches import require_double
from statmech_attn.dynamics.pseudo_orbits import exponents_along, Recorder
from statmech_attn.dynamics.starts import start_of_each
from statmech_attn.dynamics.systems import as_system, lane_axes, System
from statmech_attn.dynamics.tracing import untraced
from statmech_attn.dynamics.transients import EscapeRate
from statmech_attn.labels import STEP, Variable
from statmech_attn.options import require_least


LANES = 256  # states that are tried at once
TRIES = 64  # times LANES, after which no state beside one lives for long enough
DECADES = 14.0  # below the largest jump, of the lengths that are tried


class Saddle(NamedTuple):
    """A pseudo-orbit on a chaotic saddle.

    Attributes:
        states: coordinates of its states, (n, d); all that there are if it ended.
        staggers: number of jumps.
        largest: length of the largest jump, over 1 + the largest coordinate.
        exponents: along it, the largest first; none of too few states.
        stderr: their standard errors.
        complete: False where no state was found that lives for long enough.
        unit: what a step is.
    """

    states: np.ndarray
    staggers: int
    largest: float
    exponents: np.ndarray
    stderr: np.ndarray
    complete: bool
    unit: str = STEP

    _shown = (
        Variable("complete", "", "followed to its end"),
        Variable(
            "lyapunov",
            "exponent",
            "Lyapunov exponents on the saddle",
            "nat / {unit}",
            "λ_i",
            value="exponents",
            error="stderr",
        ),
        Variable("staggers", "", "jumps", symbol="n"),
        Variable("largest", "", "largest jump", symbol="δ"),
        Variable(
            "states", "time coordinate", "states on the saddle", symbol="x", line=False
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    def dimension(self, rate: EscapeRate) -> tuple[float, float]:
        """Information dimension by Kantz and Grassberger, and its standard error.

        NaN with more than one positive exponent, and where the rate exceeds the
        exponent, or more exponents are needed.

        Args:
            rate: at which orbits leave the saddle, of `escape_rate`.

        Example:
            >>> import jax, jax.numpy as jnp
            >>> third = lambda x: 3 * jnp.minimum(x, 1 - x)  # on the middle-third set
            >>> inside = lambda x: (x >= 0) & (x <= 1)
            >>> on_set = stagger_and_step(third, jnp.array(0.3), inside, steps=500,
            ...                           lifetime=20, key=jax.random.key(0))
            >>> rate = EscapeRate(jnp.log(1.5), 0.0, 1, 1.0, 0.0, 0.0)
            >>> bool(abs(on_set.dimension(rate)[0] - jnp.log(2) / jnp.log(3)) < 1e-9)
            True
        """
        center = np.append(self.exponents, rate.rate)
        value = lambda x: kantz_grassberger(x[:-1], x[-1])
        shifts = np.diag(np.append(self.stderr, rate.stderr))
        changes = [value(center + shift) - value(center) for shift in shifts]
        return value(center), float(np.linalg.norm(changes))


@untraced
def stagger_and_step(
    system: Callable[..., PyTree] | System,
    start: PyTree,
    inside: Callable[[PyTree], Any],
    parameters: PyTree = None,
    *,
    steps: int,
    lifetime: int,
    key: Key[Array, ""],
    size: float = 1e-3,
    exponents: int | None = None,
) -> Saddle:
    """A pseudo-orbit of any length on the chaotic saddle of a region.

    Args:
        system: a `System`, or its step: state -> state, or with parameters
            (state, parameters) -> state.
        start: a state of the region, from which longer lived ones are sought.
        inside: state -> bool, a region that almost all orbits leave.
        parameters: of the system.
        steps: of the pseudo-orbit.
        lifetime: steps for which all of its states stay inside, at least.
        key: of the jumps.
        size: of the largest jump that is tried, over 1 + the largest coordinate.
        exponents: how many along it, all when omitted.

    Returns:
        `Saddle`: the pseudo-orbit, its jumps and exponents.

    Raises:
        ValueError: no state that lives for so long is found from the start, the start
            is outside, or numbers that make no sense.

    Example:
        >>> import jax.numpy as jnp
        >>> tent = lambda x: 3 * jnp.minimum(x, 1 - x)
        >>> inside = lambda x: (x >= 0) & (x <= 1)
        >>> saddle = stagger_and_step(tent, jnp.array(0.3), inside, steps=500,
        ...                           lifetime=20, key=jax.random.key(0))
        >>> bool(abs(saddle.exponents[0] - jnp.log(3)) < 1e-9), saddle.largest < 1e-3
        (True, True)
    """
    require_double()
    require_least(1, steps=steps, lifetime=lifetime)
    if not 0 < size < np.inf:
        raise ValueError(f"size must be positive and finite; got {size}.")
    system = as_system(system)
    state = start_of_each(start, None, np.zeros(1, int))
    system.check(state, parameters)
    trials = _Trials(system, parameters, inside, lifetime)
    state, key = trials.longest_lived(state, key)
    begin, tracked, jumps = _one(state), [], []
    while sum(map(len, tracked)) < steps:
        state, jump, remaining, key = trials.staggered(state, key, size)
        if remaining <= 0:
            break
        jumps += [jump] * (jump > 0)
        begin = begin if tracked else _one(state)
        while remaining > 0:
            record = trials.record(state, remaining, np.inf)
            state, count = record.state, int(record.count)
            tracked.append(np.asarray(record.states)[:count, :, 0])
            remaining -= count
    dimension = len(np.asarray(trials.vectors(state)))
    states = np.concatenate([np.empty((0, dimension)), *tracked])[:steps]
    return Saddle(
        states,
        len(jumps),
        max(jumps, default=0.0),
        *exponents_along(system, begin, states, parameters, exponents=exponents),
        len(states) == steps,
        system.unit,
    )


def kantz_grassberger(exponents: np.ndarray, rate: float) -> float:
    """Information dimension of a saddle with one expanding direction.

    Args:
        exponents: on the saddle, the largest first.
        rate: at which orbits leave it.

    Example:
        >>> round(kantz_grassberger(np.log([3.0, 0.1]), np.log(1.5)), 4)
        0.932
    """
    entropy, others = exponents[0] - rate, -exponents[1:]
    if not entropy >= 0 or (others < 0).any():
        return np.nan
    rest = entropy - np.append(0.0, np.cumsum(others))
    whole = int((rest[1:] >= 0).sum())
    across = whole + rest[whole] / others[whole] if whole < len(others) else np.nan
    return float(entropy / exponents[0] + (across if len(others) else 0.0))


class _Trials(Recorder):
    """States beside one, and for how long each of them stays inside."""

    def __init__(self, system: System, parameters: PyTree, inside, lifetime: int):
        super().__init__(system, parameters)
        self._inside, self.lifetime = inside, lifetime
        self._try = jax.jit(self._tried)

    def _tried(self, state: PyTree, key, size) -> "_Trial":
        """The longest lived of some states beside one, and one that lives on."""
        direction, length, choice, key = jax.random.split(key, 4)
        x = self.vectors(state)
        random = jax.random.normal(direction, (x.shape[0], LANES))
        random /= jnp.abs(random).max(axis=0)
        decades = jax.random.uniform(length, (LANES,), maxval=DECADES)
        jump = (size * 10.0**-decades).at[0].set(0.0)
        vectors = x + (1 + jnp.abs(x).max()) * jump * random
        states = self._placed(state, vectors)
        within = jax.vmap(self._inside, in_axes=(lane_axes(states),))

        def goes_on(carry):
            _, alive, time = carry
            return jnp.any(alive) & (jnp.max(time) < 2 * self.lifetime)

        def step(carry):
            states, alive, time = carry
            alive &= within(states)
            states = self.system.steps(states, self.parameters)
            return states, alive, time + alive

        everyone = jnp.ones(LANES, bool), jnp.zeros(LANES, int)
        time = jax.lax.while_loop(goes_on, step, (states, *everyone))[2]
        gained = time - self.lifetime
        # Lengths have equal chances per decade, survivors a chance that grows with
        # their length: as of tries of even density along the expanding direction, whose
        # survivors have the natural measure.
        score = jnp.log(jump) + jax.random.gumbel(choice, (LANES,))
        score = jnp.where(gained > 0, score.at[0].set(jnp.inf), -jnp.inf)
        i, longest = jnp.argmax(score), jnp.argmax(time)
        at = lambda i: jax.lax.dynamic_slice_in_dim(vectors, i, 1, axis=1)
        return _Trial(key, at(i), jump[i], gained[i], at(longest), time[longest])

    def longest_lived(self, state: PyTree, key) -> tuple[PyTree, Any]:
        """A state whose lifetime is long enough, from better and better ones; a key.

        Raises:
            ValueError: none is found.
        """
        longest = -1
        for _ in range(TRIES):
            trial = self._try(state, key, 1.0)
            key = trial.key
            if trial.time > longest:
                longest = int(trial.time)
                state = self.placed(state, trial.longest)
            if longest > self.lifetime:
                return state, key
        raise ValueError(
            f"no state beside the start stays inside for {self.lifetime} steps; the "
            f"longest of {TRIES * LANES} stays for {max(longest, 0)}."
        )

    def staggered(self, state: PyTree, key, size: float):
        """A state that lives on, its distance, the steps until not, and a key."""
        for _ in range(TRIES):
            trial = self._try(state, key, size)
            key = trial.key
            if trial.left > 0:
                moved = self.placed(state, trial.vector) if trial.jump else state
                return moved, float(trial.jump), int(trial.left), key
        return state, 0.0, 0, key


class _Trial(NamedTuple):
    """One state that lives on, if `left` is positive, and the longest lived one."""

    key: Any
    vector: Any  # (d, 1)
    jump: Any
    left: Any  # steps until it has its lifetime left, and no more
    longest: Any  # (d, 1)
    time: Any  # its lifetime


def _one(state: PyTree) -> PyTree:
    """The only state on the last axis."""
    return jax.tree.map(lambda x: x[..., 0] if x.ndim else x, state)
