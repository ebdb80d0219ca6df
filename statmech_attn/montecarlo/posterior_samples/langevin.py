r"""Underdamped Langevin dynamics of a log density, by diffrax.

    $dz = v\,dt, \qquad dv = -\gamma v\,dt + \nabla \ln p(z)\,dt + \sqrt{2\gamma}\,dW$

has $p(z)\, e^{-|v|^2/2}$ as its stationary law.  No step is refused, so steps of size h
sample a law with a bias.  QUICSORT (third order, two gradients a step; Foster, Lyons
and Oberhauser, arXiv:2101.03446) makes it -5 %, -0.4 % of the variance of an oscillator
at $h \omega$ = 1, 1/2; with as many gradients ALIGN (second order) makes it 5 %, 1 %.

    z, v              (n,)     position and velocity                     `z`, `v`
    gamma             ()       friction                                  `FRICTION`
    h                 ()       step size                                 `step_size`
    omega             ()       largest frequency of the potential        `stiffness`
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import diffrax
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float, Key

from statmech_attn.montecarlo.posterior_samples.nuts import Sampler, Transition


FRICTION = 1.0  # critical damping of a weight that keeps its prior is 2
TIME = 1.0  # between draws; such a weight turns by one radian
POWER_STEPS = 50  # of the power iteration: omega to about a percent


class LangevinState(NamedTuple):
    """State of one chain of Langevin dynamics."""

    z: Float[Array, " n"]
    v: Float[Array, " n"]
    key: Key[Array, ""]


def langevin(
    log_density: Callable[[Float[Array, " n"]], Float[Array, ""]], *, step_size: float
) -> Sampler:
    """Draws at equal distances in time along a trajectory.

    A step h is `step_size` at most: shortened so that steps end where a draw is taken.
    """
    steps = math.ceil(TIME / step_size)
    force = lambda z, args: -jax.grad(log_density)(z)

    def step(state: LangevinState) -> LangevinState:
        key, noise_key = jax.random.split(state.key)
        path = diffrax.UnsafeBrownianPath(
            state.z.shape, noise_key, levy_area=diffrax.SpaceTimeTimeLevyArea
        )
        terms = diffrax.MultiTerm(
            diffrax.UnderdampedLangevinDriftTerm(FRICTION, 1.0, force),
            diffrax.UnderdampedLangevinDiffusionTerm(FRICTION, 1.0, path),
        )
        solution = diffrax.diffeqsolve(
            terms,
            diffrax.QUICSORT(),
            0.0,
            TIME,
            TIME / steps,
            (state.z, state.v),
            saveat=diffrax.SaveAt(t1=True),
            adjoint=diffrax.ForwardMode(),
            max_steps=None,
        )
        assert solution.ys is not None
        z, v = solution.ys
        return LangevinState(z[0], v[0], key)

    def start(key, z) -> LangevinState:
        velocity_key, noise_key = jax.random.split(key)
        return LangevinState(z, jax.random.normal(velocity_key, z.shape), noise_key)

    def describe(state: LangevinState) -> Transition:
        energy = state.v @ state.v / 2 - log_density(state.z)
        gradients = jnp.asarray(2 * steps)
        unstable = ~jnp.isfinite(energy)
        size = jnp.asarray(TIME / steps)
        return Transition(state.z, energy, gradients, jnp.ones(()), unstable, size)

    return Sampler(start, step, describe)


def stiffness(
    log_density: Callable[[Float[Array, " n"]], Float[Array, ""]],
    z: Float[Array, " n"],
    key: Key[Array, ""],
) -> Float[Array, ""]:
    """Largest frequency: root of the largest |curvature|, by power iteration."""
    gradient = jax.grad(log_density)

    def turn(_, v):
        return jax.jvp(gradient, (z,), (v / jnp.linalg.norm(v),))[1]

    first = jax.random.normal(key, z.shape)
    return jnp.sqrt(jnp.linalg.norm(jax.lax.fori_loop(0, POWER_STEPS, turn, first)))
