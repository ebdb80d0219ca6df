"""NUTS as a sequence of states, so that a run can be cut anywhere (needs numpyro).

numpyro's `MCMC` keeps all draws of a run in memory and cannot be taken up in the middle
of the warm-up.  Its kernel can: the state carries the adaptation of the step size along
with position and random key.

The mass matrix is the unit matrix, not adapted: the weights are whitened, and labels
constrain directions that turn with the other weights and lie along no axis.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from jaxtyping import Array, Bool, Float, Int, Key


class Transition(NamedTuple):
    """The last step of a Markov chain: position, energy, acceptance.

    Attributes:
        z: coordinates after the transition.
        energy: Hamiltonian at its start.
        leapfrog_steps: gradients that it took.
        acceptance: mean acceptance probability.
        diverging: whether the energy error diverged.
        step_size: step size of the integrator.
    """

    z: Float[Array, " n"]
    energy: Float[Array, ""]
    leapfrog_steps: Int[Array, ""]
    acceptance: Float[Array, ""]
    diverging: Bool[Array, ""]
    step_size: Float[Array, ""]


class Sampler(NamedTuple):
    """A Markov chain as functions of one chain's state."""

    start: Callable[[Key[Array, ""], Float[Array, " n"]], Any]
    step: Callable[[Any], Any]
    describe: Callable[[Any], Transition]


def nuts(
    log_density: Callable[[Float[Array, " n"]], Float[Array, ""]],
    *,
    warmup: int,
    step_size: float,
) -> Sampler:
    """The No-U-Turn sampler with unit masses.

    The first `warmup` steps adapt the step size, from `step_size` on.
    """
    from numpyro.infer import NUTS  # optional: only sampling needs it

    kernel = NUTS(
        potential_fn=lambda z: -log_density(z),
        step_size=step_size,
        adapt_mass_matrix=False,
    )

    def describe(state) -> Transition:
        return Transition(
            state.z,
            state.energy,
            state.num_steps,
            state.accept_prob,
            state.diverging,
            state.adapt_state.step_size,
        )

    return Sampler(
        start=lambda key, z: kernel.init(key, warmup, z),
        step=lambda state: kernel.sample(state, (), {}),
        describe=describe,
    )
