r"""Fluctuations of N spins at a bifurcation (docs/theory/critical_fluctuations.md).

Linear noise diverges where a multiplier reaches the unit circle.  There the amplitude
of the critical mode obeys the normal form with noise, and its law has no free
parameter: with n real components and the noise of each of variance 2 D / N in an
iterate of the map,

    $p(r) \propto r^{n-1} \exp\big[\tfrac{N}{D}
        \big(\tfrac12 \mu r^2 - \tfrac14 a r^4\big)\big],$  $\mu = m\,\delta p$

at Neimark-Sacker (n = 2, r = |z|), doubling and pitchfork (n = 1, r of either sign).
At a fold a state is left at the rate

    $\pi^{-2} (D b^2 / N)^{1/3} / [\mathrm{Ai}^2(\chi) + \mathrm{Bi}^2(\chi)],$
    $\chi = -\epsilon\,(N^2 / D^2 b)^{1/3},$  $\epsilon = s\,\delta p$

per iterate, which is that of Kramers far from it, and $\sqrt{\epsilon b}/\pi$ beyond.
Its amplitude grows on the way out: b > 0.

    a, or |b|      of the normal form               `coefficient`
    m, or s        change with the parameter        `growth`
    D              diffusion of the amplitude       `diffusion`
    l              its unit, (D/aN)^{1/4}           `length`
"""

from dataclasses import replace
from typing import Annotated, Any

import equinox as eqx
import numpy as np
from annotated_types import Gt
from jaxtyping import Complex, Float
from scipy.special import airy, erf

from statmech_attn import presentation
from statmech_attn.arguments import checks
from statmech_attn.dmft.noise.critical_mode import critical_mode
from statmech_attn.dmft.stroboscopic_map import StroboscopicMap
from statmech_attn.dynamics.continuation import NormalForm, Problem, SpecialPoint
from statmech_attn.labels import Variable
from statmech_attn.options import Numbers


ESCAPES = "fold", "transcritical"
SPREAD = 0.25  # standard deviation of a logit of the attention, at most
APART = 1e-6  # of other multipliers, from the unit circle
NEAR = 0.1  # of the critical multiplier: distances and rates per iterate at most
DEPTH = 160.0  # weights below e^(-DEPTH / 4) of the largest are left out
NODES, WEIGHTS = np.polynomial.legendre.leggauss(128)


class CriticalFluctuations(eqx.Module):
    """Law of the critical amplitude of N spins at one bifurcation.

    The amplitude is that of `NormalForm`: the state is $x_0 + \\xi q$, or
    $x_0 + 2 \\mathrm{Re}(z q)$ at Neimark-Sacker.  Arguments of methods broadcast.

    Attributes:
        kind: name of the bifurcation.
        value: of the free parameter at it.
        components: real components n of the amplitude.
        coefficient: that keeps the amplitude bounded, a > 0; |b| at a fold.
        growth: rate m of the critical multiplier in the parameter, negative where the
            new orbit is below; s at a fold, positive where no state is above.
        diffusion: D, half of N times the variance of a component's noise per iterate.
        steps: tokens of an iterate.
        score: change of a logit of the attention with the amplitude, the largest.
        overlap: change of the semantic output overlaps, token after token.
        x: coordinates of the cycle at the bifurcation.
        vector, adjoint: right and left critical vectors q and p.
        drift: slope of the cycle in the parameter; NaN at a fold, which has none.
    """

    kind: str
    value: float
    components: int
    coefficient: float
    growth: float
    diffusion: float
    steps: int
    score: float
    overlap: Complex[np.ndarray, "steps M"] | None
    x: Float[np.ndarray, " d"]
    vector: Complex[np.ndarray, " d"]
    adjoint: Complex[np.ndarray, " d"]
    drift: Float[np.ndarray, " d"]

    _shown = (
        Variable("kind", "", "bifurcation"),
        Variable("value", "", "parameter", symbol="p"),
        Variable("coefficient", "", "coefficient of the normal form", symbol="a"),
        Variable("growth", "", "rate of the multiplier in the parameter", symbol="m"),
        Variable("diffusion", "", "diffusion of the amplitude", symbol="D"),
        Variable("components", "", "real components of the amplitude", symbol="n"),
        Variable("steps", "", "tokens of an iterate", "token"),
        Variable("score", "", "change of a logit with the amplitude", symbol="s"),
        Variable("least_spins", "", "spins from which it holds", symbol="N"),
        Variable(
            "overlap",
            "token pattern",
            "change of the overlaps with the amplitude",
            line=False,
        ),
        Variable("x", "coordinate", "a point of the cycle", line=False),
        Variable("vector", "coordinate", "right critical vector", line=False),
        Variable("adjoint", "coordinate", "left critical vector", line=False),
        Variable("drift", "coordinate", "slope of the cycle", line=False),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @property
    def least_spins(self) -> float:
        """Number of spins from which the theory holds at the bifurcation."""
        spread, rate = self._spread_and_rate(self.value, 1)
        powers = (3, 3) if self.kind in ESCAPES else (4, 2)
        least = (spread / SPREAD) ** powers[0], (rate / NEAR) ** powers[1]
        return float(np.ceil(max(least)))

    @checks
    def density(
        self, amplitude: Numbers, value: Numbers, n_spins: Annotated[Numbers, Gt(0)]
    ):
        """Stationary density of r = |z| >= 0, or of the amplitude of either sign.

        Args:
            amplitude: where.
            value, n_spins: parameter and number of spins.

        Raises:
            ValueError: a fold, or outside the limits of the theory.
        """
        self._require_limits(value, n_spins)
        kappa, length = self._kappa(value, n_spins), self.length(n_spins)
        y = np.asarray(amplitude) / length
        weight = np.abs(y) ** (self.components - 1) * np.exp(_exponent(y, kappa))
        total = _integrals(kappa, self.components)[0]
        return np.where((y >= 0) | (self.components == 1), weight / total / length, 0.0)

    @checks
    def mean_square(self, value: Numbers, n_spins: Annotated[Numbers, Gt(0)]):
        """Mean of the squared amplitude.

        Args:
            value, n_spins: parameter and number of spins.

        Raises:
            ValueError: a fold, or outside the limits of the theory.
        """
        self._require_limits(value, n_spins)
        total, second = _integrals(self._kappa(value, n_spins), self.components)
        return self.length(n_spins) ** 2 * second / total

    @checks
    def overlap_variance(self, value: Numbers, n_spins: Annotated[Numbers, Gt(0)]):
        """Variance of the semantic output overlaps of every token, (steps, M, *batch).

        The part of the critical mode, beside which all other noise is of order 1/N.

        Args:
            value, n_spins: parameter and number of spins.

        Raises:
            ValueError: a fold, a map without overlaps, or outside the limits.
        """
        if self.overlap is None:
            raise ValueError("problem must be of a network to have overlaps.")
        share = self.components * np.abs(self.overlap) ** 2
        return np.multiply.outer(share, self.mean_square(value, n_spins))

    @checks
    def rounding(self, n_spins: Annotated[Numbers, Gt(0)]):
        r"""Distance in the parameter over which the bifurcation is rounded.

        Where $|\mu| = (a D / N)^{1/2}$, or the barrier of a fold is 4/3 D/N.

        Args:
            n_spins: number of spins.
        """
        noise, speed = self.diffusion / np.asarray(n_spins, float), abs(self.growth)
        if self.kind == "fold":
            return (noise**2 * self.coefficient) ** (1 / 3) / speed
        if self.kind == "transcritical":
            return 2 * (noise * self.coefficient**2) ** (1 / 3) / speed
        return np.sqrt(self.coefficient * noise) / speed

    @checks
    def length(self, n_spins: Annotated[Numbers, Gt(0)]):
        """Unit of the amplitude at the bifurcation, (D / a N)^{1/4}, 1/3 at a fold.

        Args:
            n_spins: number of spins.
        """
        ratio = self.diffusion / (self.coefficient * np.asarray(n_spins, float))
        return ratio ** (1 / 3 if self.kind in ESCAPES else 1 / 4)

    @checks
    def holds(self, value: Numbers, n_spins: Annotated[Numbers, Gt(0)]):
        """Whether the theory holds at a parameter and a number of spins.

        Args:
            value, n_spins: parameter and number of spins.
        """
        spread, rate = self._spread_and_rate(value, n_spins)
        return (spread <= SPREAD) & (rate <= NEAR)

    @checks
    def passage_time(
        self,
        value: Numbers,
        n_spins: Annotated[Numbers, Gt(0)],
        start: float,
        end: float,
    ):
        """Mean time in tokens from one amplitude beside a fold to a larger one.

        Args:
            value, n_spins: parameter and number of spins.
            start, end: amplitudes, in units of `length`.

        Raises:
            ValueError: no fold, or outside the limits.
        """
        if self.kind != "fold":
            raise ValueError(f"passage_time must be that of a fold; got a {self.kind}.")
        self._require_limits(value, n_spins, bounded=False)
        kappa = np.asarray(self._kappa(value, n_spins))[..., None]
        high = 3 + (12 * np.maximum(-kappa, 0)) ** 0.25
        s = high * (NODES + 1) / 2
        ends = erf(s * (end - s**2 / 2)) - erf(s * (start - s**2 / 2))
        weight = WEIGHTS * high / 2 * np.exp(-kappa * s**2 - s**6 / 12)
        total = np.sqrt(np.pi) * (weight * ends).sum(-1)
        return total * self.steps / (self.coefficient * self.length(n_spins))

    @checks
    def escape_rate(self, value: Numbers, n_spins: Annotated[Numbers, Gt(0)]):
        """Rate per token at which the state beside a fold is left, 1 / mean time.

        Args:
            value, n_spins: parameter and number of spins.

        Raises:
            ValueError: no fold or transcritical point, or outside the limits.
        """
        if self.kind not in ESCAPES:
            raise ValueError(
                f"escape_rate must be that of a fold; the orbit at a {self.kind} stays."
            )
        self._require_limits(value, n_spins, bounded=False)
        noise, b = self.diffusion / np.asarray(n_spins, float), self.coefficient
        chi = -self._drive(value) / (noise**2 * b) ** (1 / 3)
        decaying, _, growing, _ = airy(chi)
        rate = (noise * b**2) ** (1 / 3) / (np.pi**2 * (decaying**2 + growing**2))
        return rate / self.steps

    @checks
    def amplitude(self, x: Numbers, value: float | None = None):
        """Amplitude of states, (d, *batch), of the map: complex at Neimark-Sacker.

        Args:
            x: coordinates of the map; of a network the window at clock 0, ravelled.
            value: of the parameter at which they were seen; at the bifurcation when
                omitted.  Beside a fold there is no cycle to count from: NaN.
        """
        moved_on = 0.0 if value is None else (value - self.value) * self.drift
        centre = self.x + moved_on
        moved = np.tensordot(self.adjoint.conj(), np.asarray(x), 1)
        z = moved - self.adjoint.conj() @ centre
        return z if self.components == 2 else z.real

    def _control(self, value):
        return self.growth * (np.asarray(value, float) - self.value)

    def _drive(self, value):
        """The constant term of the normal form at a fold, or of the one like it."""
        control = self._control(value)
        return control if self.kind == "fold" else -(control**2) / 4 / self.coefficient

    def _kappa(self, value, n_spins):
        """Distance in units of the rounding."""
        return self._control(value) / (self.coefficient * self.length(n_spins) ** 2)

    def _spread_and_rate(self, value, n_spins):
        """What must be small: the spread of a logit, and rates per iterate."""
        length, a = self.length(n_spins), self.coefficient
        if self.kind in ESCAPES:
            size = np.sqrt(length**2 + np.abs(self._drive(value)) / a)
            return self.score * size, 2 * a * size
        total, second = _integrals(self._kappa(value, n_spins), self.components)
        size = length * np.sqrt(self.components * second / total)
        rate = np.maximum(a * length**2, np.abs(self._control(value)))
        return self.score * size, rate

    def _require_limits(self, value, n_spins, *, bounded: bool = True):
        if bounded and self.kind in ESCAPES:
            raise ValueError(
                f"kind: every state at a {self.kind} is left, so that none is "
                "stationary; take escape_rate."
            )
        if not np.all(self.holds(value, n_spins)):
            spread, rate = map(np.max, self._spread_and_rate(value, n_spins))
            raise ValueError(
                "n_spins must be larger, or value nearer: a logit spreads by up to "
                f"{spread:.2g} (at most {SPREAD}) and the multiplier changes by "
                f"{rate:.2g} (at most {NEAR}); at {self.value:.6g} the theory holds "
                f"from {self.least_spins:.3g} spins on."
            )


def critical_fluctuations(
    problem: Problem, special: SpecialPoint, noise: Numbers | None = None
) -> CriticalFluctuations:
    """Law of the fluctuations at a bifurcation that continuation has found.

    Args:
        problem: on whose branch it was found, of `dmft.strobe(net, epsilon)` or of any
            other map.
        special: the bifurcation.
        noise: covariance (d, d) of the noise of one iterate times N; that of the spins
            when omitted.

    Returns:
        `CriticalFluctuations`: densities, mean squares, rounding and rates of escape.

    Raises:
        ValueError: no bifurcation of a known kind, one at which no state is stationary,
            or a map of another kind without noise.

    Example:
        >>> import jax.numpy as jnp
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dynamics import continuation
        >>> signs = [[[1]], [[-1]], [[1]], [[1]]]  # one pattern, W^v = -W^o
        >>> net = dmft.network(dmft.site_classes(signs), context=1)
        >>> parameters = {"beta": 0.5, "gamma": 1.0, "epsilon": 0.0}
        >>> turn = dmft.strobe(net, 0.0)
        >>> problem = continuation.Problem(turn, jnp.zeros(1), parameters, "beta")
        >>> rest = continuation.follow_cycle(problem, jnp.zeros(1), 0.5, within=(0, 2))
        >>> law = critical_fluctuations(problem, rest.run().special[0])
        >>> law.kind, round(law.coefficient, 6), round(law.diffusion, 6)
        ('period_doubling', 0.333333, 0.5)
        >>> f"{law.mean_square(1.0, 10**6):.4g}"
        '0.0008279'
    """
    form = _known_form(special)
    components = 2 if form.name == "neimark_sacker" else 1
    critical = np.append(np.sort(np.abs(special.multipliers))[::-1], 0.0)[components]
    if critical > 1 - APART:
        raise ValueError(
            "special must have no other multiplier on the unit circle or outside it; "
            f"got moduli of up to {np.abs(special.multipliers).max():.6g}."
        )
    overlap, score, steps = None, 0.0, 1
    if noise is not None:
        p = form.adjoint
        square = np.real(p.conj() @ _covariance(noise, len(p)) @ p)
    elif isinstance(turn := problem.map, StroboscopicMap):
        mode = critical_mode(turn, problem, special.x, special.value, form)
        square, overlap, steps = mode.noise, mode.overlap, len(mode.overlap)
        score = float(np.abs(mode.score).max())
    else:
        raise ValueError("noise must be given for a map that is no dmft.strobe.")
    sign = -1 if form.name == "period_doubling" else 1
    return CriticalFluctuations(
        kind=form.name,
        value=float(special.value),
        components=components,
        coefficient=abs(form.coefficient),
        growth=float(sign * form.speed.real),
        diffusion=float(square / components / 2),
        steps=steps,
        score=score,
        overlap=overlap,
        x=special.x,
        vector=np.asarray(form.vector, complex),
        adjoint=np.asarray(form.adjoint, complex),
        drift=form.drift,
    )


def _covariance(noise: Numbers, size: int) -> Float[np.ndarray, "d d"]:
    """The covariance of a noise, which has no negative eigenvalue but by rounding."""
    noise = np.asarray(noise, float)
    symmetric = noise.shape == (size, size) and np.allclose(noise, noise.T)
    sizes = np.linalg.eigvalsh(noise) if symmetric else np.zeros(1)
    if sizes[0] < -1e-12 * sizes[-1] or sizes[-1] <= 0:
        raise ValueError(
            f"noise must be a covariance matrix ({size}, {size}), symmetric and with "
            "no negative eigenvalue, that is not zero."
        )
    return noise


def _known_form(special: SpecialPoint) -> NormalForm:
    """The normal form, where it tells what happens; at a fold with b > 0."""
    form = special.form
    if form is None:
        raise ValueError(
            f"special must be a bifurcation of a known kind; got {special.kind}."
        )
    if form.resonance:
        raise ValueError(
            f"special must be no strong resonance; got one of order {form.resonance}."
        )
    if form.degenerate:
        raise ValueError("special must have a normal form that is not degenerate.")
    if form.criticality == "subcritical":
        raise ValueError(
            f"special must be supercritical: at a subcritical {form.name} no "
            "amplitude is stationary."
        )
    if form.name in ESCAPES and form.coefficient < 0:
        return replace(
            form,
            coefficient=-form.coefficient,
            speed=-form.speed,
            vector=-form.vector,
            adjoint=-form.adjoint,
        )
    return form


def _exponent(y, kappa) -> Any:
    """kappa y^2 / 2 - y^4 / 4 less its largest value."""
    return np.minimum(kappa, 0) ** 2 / 4 - (y**2 - kappa) ** 2 / 4


def _integrals(kappa, components):
    """Total weight, over both signs of a real amplitude, and that times <y^2>."""
    kappa = np.asarray(kappa, float)[..., None]
    low = np.sqrt(np.maximum(kappa - np.sqrt(DEPTH), 0))
    high = np.sqrt(kappa + np.sqrt(np.minimum(kappa, 0) ** 2 + DEPTH))
    y = low + (high - low) * (NODES + 1) / 2
    weight = WEIGHTS * (high - low) / 2 * np.exp(_exponent(y, kappa))
    weight = weight * (y if components == 2 else 2)
    return weight.sum(-1), (weight * y**2).sum(-1)
