"""Rows on verdicts: what an orbit must and must not be called."""

import jax
import jax.numpy as jnp

from statmech_attn.dynamics import catalogue, classify, PHASES, System
from statmech_attn.validation.rows import Measurement, Row


LOGISTIC = {
    "r=2.5": (2.5, "fixed"),
    "r=2": (2.0, "fixed"),
    "r=3, marginal": (3.0, "undetermined"),
    "r=3.2": (3.2, "periodic"),
    "r=3.5": (3.5, "periodic"),
    "r=3.83": (3.83, "periodic"),
    "r=3.9": (3.9, "chaotic"),
    "r=4": (4.0, "chaotic"),
}
DELAYED = {
    "a=1.9": (1.9, "fixed"),
    "a=2.01": (2.01, "quasiperiodic"),
    "a=2.27": (2.27, "chaotic"),
}


def of_family(name, step, parameter, start, cases, source) -> Row:
    """Verdicts on a map at several values of a parameter, its only one."""
    values, words = zip(*cases.values(), strict=True)

    def measure():
        at = lambda value: classify(
            catalogue.at(step, **{parameter: value}), jnp.array(start)
        )
        verdicts = jax.vmap(at)(jnp.array(values))
        return Measurement([PHASES[int(code)] for code in verdicts.phase])

    return Row(name, tuple(cases), measure, words, source, unit="phase")


def _forced():
    observe = lambda z: jnp.stack([z[0], jnp.cos(2 * jnp.pi * z[1])])
    at = lambda sigma: classify(
        System(catalogue.at(catalogue.forced, sigma=sigma), observe),
        jnp.array([0.5, 0.1]),
        max_doublings=2,
    )
    verdicts = jax.vmap(at)(jnp.array([0.5, 1.5]))
    smooth, strange = (jax.tree.map(lambda x: x[i], verdicts) for i in (0, 1))
    hint = "strange nonchaotic" in strange.explain()
    return Measurement(
        [
            PHASES[int(smooth.phase)],
            "open" if not bool(strange.settled) else PHASES[int(strange.phase)],
            "strange or marginal" if hint else "no hint",
        ]
    )


def _coupled():
    verdict = classify(catalogue.coupled_logistic, jnp.array([0.3, 0.31]))
    return Measurement([PHASES[int(verdict.phase)]])


def _rotation():
    """A rigid rotation by the golden mean, seen through its cosine."""
    observe = lambda x: jnp.cos(2 * jnp.pi * x)[None]
    rotation = System(lambda x: (x + catalogue.GOLDEN) % 1.0, observe)
    verdict = classify(rotation, jnp.array(0.1))
    return Measurement([float(verdict.rotation_number)])


ROWS = (
    of_family("logistic phases", catalogue.logistic, "r", 0.3, LOGISTIC, "closed form"),
    of_family(
        "delayed logistic phases", catalogue.delayed_logistic, "a", (0.4, 0.5), DELAYED,
        "Neimark-Sacker at a=2",
    ),
    Row("forced tanh phases", ("σ=0.5", "σ=1.5, strange nonchaotic", "its reason"),
        _forced, ("quasiperiodic", "open", "strange or marginal"),
        "Grebogi et al., Physica D 13, 261 (1984)", unit="phase"),
    Row("coupled logistic phase", ("ε=0.1",), _coupled, ("hyperchaotic",),
        "ln 2 + ln 0.8 > 0 across", unit="phase"),
    # The golden mean and its complement are one frequency of a sampled cosine.
    Row("golden rotation", ("frequency",), _rotation, (1 - catalogue.GOLDEN,),
        "(√5-1)/2", tolerance=1e-7, unit="1/step"),
)  # fmt: skip
