"""Lyapunov exponents of flows, per unit of time."""

from collections.abc import Callable
from dataclasses import replace

import equinox as eqx
import jax.numpy as jnp
from jaxtyping import Array, Float, PyTree

from statmech_attn import presentation
from statmech_attn.dynamics.exponents.lyapunov import BLOCKS, lyapunov_spectrum
from statmech_attn.dynamics.exponents.spectrum import Spectrum
from statmech_attn.dynamics.maps.flows import flow, UNIT_OF_TIME
from statmech_attn.options import Count, NotNegative, Positive, WholeNumber


@presentation.knows_given
def flow_spectrum(
    field: Callable[..., Float[Array, " d"]],
    state: Float[Array, " d"],
    parameters: PyTree = None,
    *,
    time: Positive,
    transient: NotNegative = 0.0,
    interval: Positive = 0.25,
    substeps: Count = 10,
    exponents: WholeNumber | None = None,
    blocks: Count = BLOCKS,
) -> Spectrum:
    """Lyapunov spectrum of x' = field(x) in nats per unit time.

    Args:
        field: autonomous vector field of the state, or of (state, parameters).
        state: where the orbit starts.
        parameters: of the field, a tree of arrays; none when omitted.
        time: length of the window, in the units of the flow.
        transient: time before the window.
        interval: time between orthonormalisations; short enough that no column is
            lost in between (lost ones are reported, not hidden).
        substeps: solver steps within an interval.
        exponents: how many leading exponents; all when omitted.
        blocks: number of blocks for errors, a multiple of 4.

    Returns:
        `Spectrum` whose exponents, errors, halves and blocks are per unit time; `steps`
        counts intervals, and `window` is their time.

    Raises:
        ValueError: a time is not finite, `time` or `interval` is not positive, or
            `transient` is negative.

    Example:
        >>> import jax.numpy as jnp
        >>> spiral = lambda x: jnp.stack([-0.1 * x[0] - x[1], x[0] - 0.1 * x[1]])
        >>> spectrum = flow_spectrum(spiral, jnp.array([1.0, 0.0]), time=100.0)
        >>> [round(float(x), 6) for x in spectrum.exponents]
        [-0.1, -0.1]
    """
    spectrum = lyapunov_spectrum(
        flow(field, time=interval, substeps=substeps),
        state,
        parameters,
        steps=max(round(time / interval), 1),
        transient=round(transient / interval),
        exponents=exponents,
        blocks=blocks,
    )
    return per_unit_time(spectrum, interval)


@presentation.knows_given
def per_unit_time(
    spectrum: Spectrum, interval: Positive, stderr: NotNegative = 0.0
) -> Spectrum:
    """The spectrum of a map over `interval`, in nats per unit time of its flow.

    Of a section it is the mean time of a return, `Returns.mean`, which has an error.

    Args:
        spectrum: Lyapunov spectrum.
        interval: time of one step of the map.
        stderr: standard error of this time, of which the errors have their share.

    Returns:
        The spectrum with exponents, errors, halves and blocks over `interval`.

    Raises:
        ValueError: the interval is not positive and finite.

    Example:
        >>> import jax.numpy as jnp
        >>> from statmech_attn.dynamics import flow, lyapunov_spectrum
        >>> decay = flow(lambda x: -x, time=0.5, substeps=10)
        >>> spectrum = lyapunov_spectrum(decay, jnp.array([1.0]), steps=256)
        >>> round(float(per_unit_time(spectrum, 0.5).exponents[0]), 6)
        -1.0
    """
    names = ("exponents", "weighted", "stderr", "halves", "blocks", "bounds", "log_det")
    rates = lambda s: tuple(
        value for name in names if (value := getattr(s, name)) is not None
    )
    scaled = tuple(x / interval for x in rates(spectrum))
    in_time = replace(spectrum, unit=UNIT_OF_TIME, interval=float(interval))
    result = eqx.tree_at(rates, in_time, scaled)
    if stderr == 0:
        return result
    exponents = result.exponents
    share = jnp.where(jnp.isfinite(exponents), exponents, jnp.nan) * stderr / interval
    return eqx.tree_at(lambda s: s.stderr, result, jnp.hypot(result.stderr, share))
