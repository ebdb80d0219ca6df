"""Verdicts on evidence, and the classifier of the paper."""

import jax
import jax.numpy as jnp

from statmech_attn import dynamics
from statmech_attn.dynamics import lyapunov_spectrum, paper_phase, PHASES
from statmech_attn.dynamics.motion.phases import decide


def test_a_cycle_with_the_exponents_of_another_stretch_is_not_reported():
    """The tail recurs, but the window was chaotic for most of its length."""
    blocks = jnp.where(jnp.arange(16) < 11, 0.13, -0.02)[:, None]
    spectrum = dynamics.Spectrum(
        exponents=jnp.array([0.083]),
        weighted=jnp.array([0.11]),
        stderr=jnp.array([0.018]),
        resolved=jnp.array(1),
        halves=jnp.array([[0.13], [-0.01]]),
        blocks=blocks,
        steps=jnp.array(2048),
        bounds=jnp.array([[0.11], [0.13], [-0.01]]),
    )
    found = dynamics.Evidence(
        recurrence_period=jnp.array(56),
        recurrence_error=jnp.array(0.0),
        positive=jnp.array(0),
        zeros=jnp.array(0),
        zero_one=jnp.array(0.0),
        broadband=jnp.array(1e-17),
        digits=jnp.array(1.2),
        frequency=jnp.array(0.1),
        frequency_error=jnp.array(1e-9),
        oriented=jnp.array(False),
        quarters=jnp.array(5.5),
        drift=jnp.array(1.8),
        finite=jnp.array(True),
    )
    judge = jax.jit(lambda *of: decide(of[0], of[1], dynamics.Criteria(), 4, False))
    verdict = judge(spectrum, found)
    assert PHASES[int(verdict[0])] in ("transient", "undetermined")
    assert int(verdict[1]) == 0


def test_the_papers_classifier_looks_at_one_sign_only():
    spectrum = lambda r: lyapunov_spectrum(
        lambda x: r * x * (1 - x), jnp.array(0.3), steps=2000, transient=500
    )
    names = [PHASES[int(paper_phase(spectrum(r)))] for r in (3.2, 3.9)]
    assert names == ["periodic", "chaotic"]
