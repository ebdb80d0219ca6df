"""Rows on alignment and finite-time exponents."""

import jax.numpy as jnp
import numpy as np

from statmech_attn.dynamics import (
    catalogue,
    covariant_vectors,
    finite_time_exponents,
    flow,
    gali,
    orbit,
    zero_one,
)
from statmech_attn.statistics import standard_error
from statmech_attn.validation.rows import Measurement, Row


POINTS = 20_000
SKEW = 0.3  # of the tent
OBLIQUE = np.array([[3.0, 1.0], [2.0, 1.0]])


def _circle():
    angle = 2 * jnp.pi * catalogue.GOLDEN * jnp.arange(POINTS)
    return jnp.stack([jnp.cos(angle), jnp.sin(angle)], axis=1)


def _cat_alignment():
    alignment = gali(catalogue.cat, jnp.array([0.1, 0.234]), samples=50)
    return Measurement([float(alignment.rate()[0])])


def _oblique():
    """Angles along an orbit of a cat map whose matrix is not symmetric."""
    cat = lambda x: (jnp.asarray(OBLIQUE) @ x) % 1
    vectors = covariant_vectors(cat, jnp.array([0.1, 0.234]), steps=100)
    return Measurement([float(vectors.angles.min()), float(vectors.angles.max())])


def _standard_torus():
    alignment = gali(
        catalogue.at(catalogue.standard, k=0.5), jnp.array([0.4, 0.2]), samples=1000
    )
    return Measurement([float(alignment.power(0.1)[0])])


def _henon_heiles():
    """GALI_2 .. GALI_4 on a torus of the time map over one unit of time."""
    step = flow(catalogue.henon_heiles, time=1.0, substeps=5)
    start = catalogue.henon_heiles_start(0.55, 0.0)
    alignment = gali(step, start, order=4, samples=2000)
    return Measurement([float(x) for x in alignment.power(0.3)])


def _tent_growth():
    """Mean and diffusion of the growth: independent factors at every step."""
    growth = finite_time_exponents(
        catalogue.skew_tent, jnp.array(0.123), window=64, count=8000
    )
    _, spread, error = growth.diffusion()
    errors = [float(growth.stderr[0]), float(error[0, 0])]
    return Measurement([float(growth.mean[0]), float(spread[0, 0])], errors)


def _logistic_growth():
    """n^2 Var of ln|f^n'|/n at r = 4, where the growth is ln 2 and a difference."""
    growth = finite_time_exponents(
        catalogue.logistic, jnp.array(0.3), window=64, count=8000
    )
    moved = (np.asarray(growth.values[:, 0]) - np.log(2)) ** 2 * 64**2
    # Neighbouring windows share an end, which the error takes in through pairs.
    pairs = moved.reshape(-1, 2).mean(axis=1)
    return Measurement([float(moved.mean())], [float(standard_error(pairs))])


def _zero_one():
    chaos = orbit(catalogue.logistic, jnp.array(0.3), samples=1000)
    return Measurement([float(zero_one(x)) for x in (_circle(), chaos)])


ENTROPY = -SKEW * np.log(SKEW) - (1 - SKEW) * np.log(1 - SKEW)
DIFFUSION = SKEW * (1 - SKEW) * np.log((1 - SKEW) / SKEW) ** 2
# ln GALI swings about its law by 0.5 to 0.7 on this torus.  The error of a slope over
# 1400 such samples, spread by 0.335 in ln n, is 0.055; three of them.
HEILES = 3 * 0.7 / (np.sqrt(1400) * 0.335)
# Directions (1, y) with y = -1 ± sqrt(3), of products 1 + y y' = -1.
ANGLE = np.arccos(1 / np.sqrt((5 - 2 * np.sqrt(3)) * (5 + 2 * np.sqrt(3))))
SKOKOS = "Skokos et al., Physica D 231, 30 (2007)"
ROWS = (
    Row("skew tent growth", ("mean", "n Var"), _tent_growth, (ENTROPY, DIFFUSION),
        "independent factors"),
    Row("logistic r=4 growth", ("n² Var",), _logistic_growth, (np.pi**2 / 6,),
        "2 Var ln|sin| = π²/6", unit="nat²"),
    # Exact at every step once the vectors have forgotten their start.
    Row("cat map alignment", ("rate of GALI_2",), _cat_alignment,
        (-2 * np.log((3 + np.sqrt(5)) / 2),), "λ_2 - λ_1", tolerance=1e-10),
    Row("cat map, covariant vectors", ("smallest angle", "largest"), _oblique,
        (ANGLE, ANGLE), "eigenvectors", tolerance=1e-10, unit="rad"),
    # A shear: corrections of relative order 1/n, over n = 10^3 to 10^4.
    Row("standard map, torus", ("power of GALI_2",), _standard_torus, (-2.0,), SKOKOS,
        tolerance=0.05, unit="1"),
    Row("Henon-Heiles, torus", ("power of GALI_2", "of GALI_3", "of GALI_4"),
        _henon_heiles, (0.0, -2.0, -4.0), SKOKOS, tolerance=HEILES, unit="1"),
    # K is a correlation over 100 shifts, whose standard error without any trend is
    # 1/sqrt(100), before the median over the frequencies.
    Row("0-1 test", ("rotation", "logistic r=4"), _zero_one, (0.0, 1.0),
        "Gottwald & Melbourne (2009)", tolerance=0.1, unit="1"),
)  # fmt: skip
