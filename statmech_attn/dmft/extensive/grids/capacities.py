"""Where retrieval ends, over context windows and temperatures.

A point is a context and a choice of parameters.  Its capacity is the fold of `capacity`
or `moving_capacity`, from the largest alpha tried that has a retrieval state.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from statmech_attn.dmft.extensive.ensembles import Ensemble
from statmech_attn.dmft.extensive.grids.options import Retrieval
from statmech_attn.dmft.extensive.grids.points import (
    corners,
    LOADED,
    ParameterValues,
    require_pattern,
)
from statmech_attn.dmft.extensive.loaded_network import loaded_network, LoadedNetwork
from statmech_attn.dmft.extensive.moving_recall import check_moving, moving_capacity
from statmech_attn.dmft.extensive.stationary import (
    Capacity,
    capacity,
    check_stationary,
    chosen_lags,
    NoRetrieval,
)
from statmech_attn.dmft.network import Network, network, network_digest
from statmech_attn.dmft.patterns import Patterns
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import FAILURE, over, Scan, Tick


HALVINGS = 8  # of alpha, in search of a retrieval state
HIGHEST = 2.0  # alpha to which the capacity is sought
SCANNED = ("beta", "gamma")
VARIABLES = Variables(
    Variable(
        "capacity",
        "context",
        "largest alpha of retrieval",
        "1",
        "α_c",
        "_error",
        group="",
        note="error: of half or twice as many lags and a coarser rule, and of the fold",
    ),
    Variable(
        "retrieved_overlap", "context", "overlap where retrieval ends", "1", "m_c"
    ),
    Variable(
        "noise_multiplier",
        "context",
        "multiplier of noise in the correlations where retrieval ends, stable below 1",
        "1",
        "μ_C",
    ),
    Variable("context", "context", "length of the context window", "token", "C"),
    FAILURE,
    *(row for row in LOADED if row.name in SCANNED),
)


def capacities(
    net: Network,
    patterns: Patterns,
    ensemble: Ensemble,
    retrieval: Retrieval = Retrieval(),
    *,
    beta: ParameterValues,
    gamma: ParameterValues = 0.0,
    contexts: Sequence[int] | None = None,
) -> Scan:
    """Where retrieval ends, over the context, beta and gamma.

    Args:
        net: condensed patterns and context, as `dmft.network` builds it.
        patterns: the condensed ones, from which the network was built.
        ensemble: of the alpha N other patterns.
        retrieval: what is retrieved, and how its end is found.
        beta: inverse temperature of the output, infinite for deterministic spins; a
            number, which is no axis of the result, or several.
        gamma: inverse temperature of attention, likewise.
        contexts: lengths C of the window in tokens; that of the network when omitted.

    Returns:
        The points, of a file of the kind capacity.

    Raises:
        ValueError: a value out of range, or an ensemble without such states.

    Example:
        >>> import numpy as np
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> patterns = dmft.site_classes(np.ones((4, 1, 1)))
        >>> points = extensive.capacities(
        ...     dmft.network(patterns, context=1), patterns, extensive.cycle(),
        ...     beta=np.inf)
        >>> points.compute().capacity.values.round(5)
        array([0.26906])
    """
    require_pattern(net, retrieval.row)
    contexts = [net.context] if contexts is None else contexts
    grid: dict[str, Any] = {"context": contexts}
    grid |= {"beta": np.asarray(beta, float), "gamma": np.asarray(gamma, float)}
    posed, start = partial(_posed, patterns, ensemble), np.asarray(net.output)
    scan = over(
        partial(_row, posed=posed, start=start[retrieval.row], retrieval=retrieval),
        grid,
        variables=VARIABLES,
        numbers=("capacity", "capacity_error", "retrieved_overlap", "noise_multiplier"),
        kind="capacity",
        about={"network": network_digest(net), "ensemble": ensemble.description},
    )
    for corner in corners(scan.axes):
        problem = posed(corner, retrieval.begin)
        if retrieval.moving:
            check_moving(problem)
        else:
            check_stationary(problem, at_rest=retrieval.at_rest)
        chosen_lags(problem, retrieval.lags)
    return scan


def _posed(
    patterns: Patterns, ensemble: Ensemble, values: Mapping[str, Any], alpha: float
) -> LoadedNetwork:
    net = network(patterns, context=int(values["context"]))
    parameters = {name: float(values[name]) for name in SCANNED}
    return loaded_network(net, ensemble, alpha=alpha, **parameters)


def _row(
    point: Mapping[str, Any], tick: Tick, posed: Any, start: Any, retrieval: Retrieval
) -> dict[str, float]:
    tick(0.0)
    context, problem = int(point["context"]), partial(posed, point)
    lags = chosen_lags(problem(0.0), retrieval.lags)
    fold = _fold(problem, start, retrieval, lags)
    error = fold.error
    if context > 1 and not retrieval.at_rest:
        half = lags // 2  # no fewer than the window has
        other_lags = half if half >= context - 1 else 2 * lags
        compared = _fold(problem, start, retrieval, other_lags, coarse=True)
        error += abs(fold.value - compared.value)
    return {
        "capacity": fold.value,
        "capacity_error": error,
        "retrieved_overlap": float(abs(fold.overlap).max()),
        "noise_multiplier": fold.noise,
    }


def _fold(
    problem: Any, start: Any, retrieval: Retrieval, lags: int, coarse: bool = False
) -> Capacity:
    """The end of retrieval, from the largest alpha that has such a state."""
    for halvings in range(HALVINGS):
        alpha = retrieval.begin / 2**halvings
        choices = {"lags": lags, "coarse": coarse, "within": (alpha / 4, HIGHEST)}
        try:
            if retrieval.moving:
                return moving_capacity(problem(alpha), **choices)
            at_rest = retrieval.at_rest
            return capacity(problem(alpha), start, at_rest=at_rest, **choices)
        except NoRetrieval:
            continue
    least = retrieval.begin / 2 ** (HALVINGS - 1)
    raise RuntimeError(f"no pattern is retrieved down to alpha = {least:.1g}.")
