r"""Rows on Lyapunov exponents of maps and flows.

Statistical rows take their errors from 64 blocks.  A deterministic row says where its
tolerance comes from; exponents that are exact at every step differ by rounding only.
"""

import jax
import jax.numpy as jnp
import numpy as np

from statmech_attn.dynamics import (
    catalogue,
    driven_flow,
    flow,
    flow_spectrum,
    lyapunov_spectrum,
    per_unit_time,
    returns,
    section,
    Spectrum,
)
from statmech_attn.statistics import standard_error
from statmech_attn.validation.rows import Measurement, Row, SPROTT


BLOCKS = 64
LANES = 16  # orbits of a flow side by side
EXACT = 1e-12  # rounding of logarithms averaged over 10^4 to 10^5 steps
LABELS = tuple(f"λ_{i}" for i in range(1, 9))
PER_TIME = "nat/time"
POINT = (0.1, 0.2)
STEPS = 300_000
SHORT, TRANSIENT = 40_000, 1000  # steps of rows without statistics
POLES = 2 * np.log(SHORT) / SHORT  # of averages of ln|cos| over a rotation


def of_map(
    name, step, reference, source, *, start=POINT, error=1e-4, steps=STEPS
) -> Row:
    """A row of a map whose exponents are averages over chaos."""

    def measure():
        spectrum = lyapunov_spectrum(
            step, jnp.array(start), steps=steps, transient=TRANSIENT, blocks=BLOCKS
        )
        return sampled(spectrum, len(reference))

    return Row(name, LABELS[: len(reference)], measure, reference, source, error)


def of_flow(
    name,
    field,
    reference,
    source,
    *,
    start,
    time,
    interval=0.25,
    substeps=20,
    error=1e-4,
) -> Row:
    """A row of an autonomous flow, in nats per unit time."""
    step = lambda: flow(field, time=interval, substeps=substeps)
    return _of_flow(name, step, interval, reference, source, start, time, error)


def of_driven_flow(name, field, reference, source, *, start, time) -> Row:
    """A row of a flow with drive period 2 pi, from its stroboscopic map."""
    period = 2 * np.pi
    step = lambda: driven_flow(field, period=period, substeps=40)
    return _of_flow(name, step, period, reference, source, start, time, 1e-4)


def _of_flow(name, step, interval, reference, source, start, time, error) -> Row:
    """Exponents of the map over `interval`, in lanes that start close together.

    Side by side they cost little more than one orbit; the chaos separates them during
    the transient.
    """

    def measure():
        apart = 1e-3 * jnp.arange(LANES)[:, None]
        spectrum = jax.vmap(
            lambda state: lyapunov_spectrum(
                step(),
                state,
                steps=round(time / interval / LANES),
                transient=round(100 / interval),
                blocks=BLOCKS // LANES,
                exponents=len(reference),
            )
        )(jnp.array(start) + apart)
        return sampled(per_unit_time(spectrum, interval), len(reference))

    labels = LABELS[: len(reference)]
    return Row(name, labels, measure, reference, source, error, unit=PER_TIME)


def _rossler_section():
    """The exponent per return over the mean time of a return, in lanes as of a flow.

    The mean time has a relative error of 10^-4, far below that of the exponent.
    """
    returning = section(flow(catalogue.rossler, time=0.5, substeps=20), (1, 0.0))
    count = 1400 // LANES  # returns of 5.86 units of time: as long as the flow's row
    starts = jnp.array([1.0, 1.0, 0.0]) + 1e-3 * jnp.arange(LANES)[:, None]
    orbits = jax.vmap(
        lambda state: returns(returning, state, samples=count, transient=100)
    )(starts)
    spectrum = jax.vmap(
        lambda state: lyapunov_spectrum(
            returning, state, steps=count, blocks=BLOCKS // LANES, exponents=1
        )
    )(orbits.points[:, -1])
    return sampled(per_unit_time(spectrum, float(orbits.times.mean())), 1)


def exact(name, step, reference, source, *, start=POINT, tolerance=EXACT) -> Row:
    """A row whose average has no statistical error."""

    def measure():
        spectrum = lyapunov_spectrum(
            step, jnp.array(start), steps=SHORT, transient=TRANSIENT
        )
        return Measurement([float(x) for x in spectrum.exponents[: len(reference)]])

    labels = LABELS[: len(reference)]
    return Row(name, labels, measure, reference, source, tolerance=tolerance)


def sampled(found: Spectrum, count: int) -> Measurement:
    """The leading exponents over all blocks, and of all lanes where there are some."""
    blocks = np.asarray(found.blocks)
    blocks = blocks.reshape(-1, blocks.shape[-1])[:, :count]
    errors = standard_error(blocks, 0)
    return Measurement(blocks.mean(axis=0).tolist(), errors.tolist(), len(blocks))


def _marginal():
    """Logistic map at r = 3: the growth over a window, not a rate.

    Near the fixed point f^2 takes d to d - 18 d^3, so d falls like t^(-1/2) and its
    derivative like t^(-3/2): ln of the growth from t_1 to t_2 is -(3/2) ln(t_2/t_1).
    The tolerance is 6 d(t_1), the odd term of ln|f'| at the window's ends, plus t_0/t_1
    with the t_0 < 100 steps that the orbit takes to come near.
    """
    spectrum = lyapunov_spectrum(
        catalogue.at(catalogue.logistic, r=3.0),
        jnp.array(0.3),
        steps=SHORT,
        transient=TRANSIENT,
    )
    return Measurement([float(spectrum.exponents[0]) * SHORT])


def _lorenz_96():
    """The divergence of the field is -N at every point."""
    start = 8.0 + jnp.sin(jnp.arange(5.0))
    spectrum = flow_spectrum(
        catalogue.lorenz_96, start, time=40.0, interval=0.1, substeps=4
    )
    return Measurement([float(spectrum.exponents.sum())])


C = catalogue
FIRST = TRANSIENT + SHORT // 16  # t_1 of the marginal point, after aligning
CHAOTIC_MAPS = (
    of_map("logistic r=4", C.logistic, (np.log(2),), "ln 2", start=0.3, error=0.0),
    of_map(
        "skew tent a=0.3", C.skew_tent,
        (-0.3 * np.log(0.3) - 0.7 * np.log(0.7),), "entropy of (a, 1-a)", start=0.123,
        error=0.0,
    ),
    of_map(
        "Gauss map", C.gauss, (np.pi**2 / (6 * np.log(2)),), "π²/(6 ln 2)",
        start=0.2357, error=0.0,
    ),
    of_map("Henon", C.henon, (0.41922, -1.62319), SPROTT),
    of_map("Lozi", C.lozi, (0.47023, -1.16338), SPROTT, start=(-0.1, 0.1)),
    of_map("Ikeda", C.ikeda, (0.50760, -0.71832), SPROTT, start=(0.0, 0.0)),
    of_map(
        "delayed logistic a=2.27", C.delayed_logistic, (0.18312, -1.24199),
        SPROTT, start=(0.001, 0.001),
    ),
    of_map("Tinkerbell", C.tinkerbell, (0.18997, -0.52091), SPROTT, start=(0.0, 0.5)),
    of_map("Burgers", C.burgers, (0.12076, -0.22136), SPROTT, start=(-0.1, 0.1)),
    of_map("Holmes cubic", C.holmes, (0.59458, -2.20402), SPROTT, start=(1.6, 0.0)),
    of_map(
        "coupled logistic ε=0.4", C.at(C.coupled_logistic, epsilon=0.4),
        (np.log(2), np.log(2) + np.log(0.2)), "ln 2 + ln|1-2ε| across",
        start=(0.3, 0.3), error=0.0,
    ),
)  # fmt: skip
EXACT_MAPS = (
    exact("logistic r=2.5", C.at(C.logistic, r=2.5), (-np.log(2),), "ln|2-r|",
          start=0.3),
    exact("logistic r=3.2", C.at(C.logistic, r=3.2), (np.log(0.16) / 2,),
          "ln|4+2r-r²|/2", start=0.3),
    exact("logistic r=2", C.at(C.logistic, r=2.0), (-np.inf,), "superstable",
          start=0.5),
    Row("logistic r=3, marginal", ("ln growth",), _marginal,
        (-1.5 * np.log((FIRST + SHORT) / FIRST),), "d' = d - 18 d^3",
        tolerance=6 / np.sqrt(18 * FIRST) + 1.5 * 100 / FIRST, unit="nat"),
    exact("tent, slope 1.9", C.tent, (np.log(1.9),), "ln slope", start=0.123),
    exact("cat map", C.cat, tuple(np.log((3 + np.sqrt(5)) / 2) * np.array([1, -1])),
          "±ln((3+√5)/2)", start=(0.1, 0.234)),
    # The expanding direction is (1, s), |s| < 7: its length at the two ends, ln 7 each.
    exact("Kaplan-Yorke map", C.kaplan_yorke, (np.log(2), np.log(0.2)),
          "triangular Jacobian", tolerance=2 * np.log(7) / SHORT),
    # A window of n steps is at most ln n/(2 ln 1.618) blocks of Fibonacci lengths of
    # the golden rotation.  Each adds at most ln 2 and a bounded term to the sum of
    # ln|2cos|, the closest pole -ln n: 2 ln n allows 2 for every block.
    exact("forced tanh σ=0.5", C.at(C.forced, sigma=0.5), (0.0, np.log(0.5)),
          "<ln|2cos|> = 0", start=(0.0, 0.1), tolerance=POLES),
    exact("forced tanh σ=0.9", C.at(C.forced, sigma=0.9), (0.0, np.log(0.9)),
          "<ln|2cos|> = 0", start=(0.0, 0.1), tolerance=POLES),
    # Truncation of the solver, steps of 0.025 and order 8: 10^-11 measured at N = 8.
    Row("Lorenz 96, N=5", ("sum of λ",), _lorenz_96, (-5.0,), "divergence -N",
        tolerance=1e-6, unit=PER_TIME),
)  # fmt: skip
FLOWS = (
    of_flow("Lorenz", C.lorenz, (0.9056, 0.0, -14.5723), SPROTT,
            start=(1.0, 1.0, 20.0), time=6_000.0, substeps=10),
    of_flow("Rossler", C.rossler, (0.0714, 0.0, -5.3943), SPROTT,
            start=(1.0, 1.0, 0.0), time=8_000.0, interval=0.5),
    Row("Rossler, section y=0", LABELS[:1], _rossler_section, (0.0714,), SPROTT, 1e-4,
        unit=PER_TIME),
    of_flow("quadratic jerk", C.quadratic_jerk, (0.0551, 0.0, -2.0721), SPROTT,
            start=(0.0, 0.0, 1.0), time=8_000.0, interval=0.5, substeps=10),
    of_flow("Halvorsen", C.halvorsen, (0.7899, 0.0, -4.5999), SPROTT,
            start=(-5.0, 0.0, 0.0), time=6_000.0, substeps=10),
    # 0.16, 0.03, 0, -39 bits per unit time.
    of_flow("hyperchaotic Rossler", C.hyper_rossler,
            tuple(np.log(2) * np.array([0.16, 0.03, 0.0])),
            "Wolf et al., Physica D 16, 285 (1985)", start=(-10.0, -6.0, 0.0, 10.0),
            time=6_000.0, interval=0.2, substeps=20, error=0.005 * np.log(2)),
    of_driven_flow("Ueda", C.ueda, (0.1034, -0.1534), SPROTT, start=(2.5, 0.0),
                   time=20_000.0),
    of_driven_flow("Duffing, two wells", C.duffing, (0.1571, -0.4071), SPROTT,
                   start=(0.2, 0.0), time=20_000.0),
)  # fmt: skip
ROWS = CHAOTIC_MAPS + EXACT_MAPS + FLOWS
