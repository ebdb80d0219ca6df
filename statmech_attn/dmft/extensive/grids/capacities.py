"""Where retrieval ends, over context windows and temperatures.

A point is a context and a choice of parameters.  Its capacity is the fold of `capacity`
or `moving_capacity`, from the largest alpha tried that has a retrieval state.
"""

import itertools
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from statmech_attn.dmft.extensive.ensembles import Ensemble
from statmech_attn.dmft.extensive.grids.options import Retrieval
from statmech_attn.dmft.extensive.grids.points import (
    LOADED,
    LoadedPoints,
    ParameterValues,
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
from statmech_attn.dmft.network import Network, network
from statmech_attn.dmft.patterns import Patterns
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import FAILURE, Tick


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


class Capacities(LoadedPoints):
    """Where retrieval ends, over the context, beta and gamma.

    Args:
        net: condensed patterns and context, as `dmft.network` builds it.
        patterns: the condensed ones, from which the network was built.
        ensemble: of the alpha N other patterns.
        retrieval: what is retrieved, and how its end is found.
        contexts: lengths C of the window in tokens; that of the network when omitted.
        beta: inverse temperature of the output, infinite for deterministic spins; a
            number, which is no axis of the result, or several.
        gamma: inverse temperature of attention, likewise.

    Raises:
        ValueError: a value out of range, or an ensemble without such states.

    Example:
        >>> from statmech_attn import dmft
        >>> from statmech_attn.dmft import extensive
        >>> patterns = dmft.site_classes(np.ones((4, 1, 1)))
        >>> points = extensive.Capacities(
        ...     dmft.network(patterns, context=1), patterns, extensive.cycle(),
        ...     beta=np.inf)
        >>> points.compute().capacity.values.round(5)
        array([0.26906])
    """

    title = "capacity"
    variables = VARIABLES

    def __init__(
        self,
        net: Network,
        patterns: Patterns,
        ensemble: Ensemble,
        retrieval: Retrieval = Retrieval(),
        *,
        beta: ParameterValues,
        gamma: ParameterValues = 0.0,
        contexts: Sequence[int] | None = None,
    ):
        super().__init__(net, ensemble, retrieval.row, {"beta": beta, "gamma": gamma})
        self.patterns, self.retrieval = patterns, retrieval
        contexts = [net.context] if contexts is None else list(contexts)
        if len(set(contexts)) < len(contexts):
            raise ValueError(f"contexts must be distinct; got {contexts}.")
        self.axes = {"context": contexts, **self._grid}
        self._start = np.asarray(net.output[retrieval.row])
        for context, corner in itertools.product(contexts, self.corners()):
            problem = self._posed(context, corner, retrieval.begin)
            if retrieval.moving:
                check_moving(problem)
            else:
                check_stationary(problem, at_rest=retrieval.at_rest)
            chosen_lags(problem, retrieval.lags)

    def _posed(
        self, context: int, values: dict[str, float], alpha: float
    ) -> LoadedNetwork:
        net = network(self.patterns, context=context)
        return loaded_network(net, self.ensemble, alpha=alpha, **values)

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, float]:
        tick(0.0)
        context = self.axes["context"][self.index(number)["context"]]
        values = self.parameters(number)
        lags = chosen_lags(self._posed(context, values, 0), self.retrieval.lags)
        fold = self._fold(context, values, lags)
        error = fold.error
        if context > 1 and not self.retrieval.at_rest:
            half = lags // 2  # no fewer than the window has
            other_lags = half if half >= context - 1 else 2 * lags
            compared = self._fold(context, values, other_lags, coarse=True)
            error += abs(fold.value - compared.value)
        return {
            "capacity": fold.value,
            "capacity_error": error,
            "retrieved_overlap": float(abs(fold.overlap).max()),
            "noise_multiplier": fold.noise,
        }

    def _fold(
        self, context: int, values: dict[str, float], lags: int, coarse: bool = False
    ) -> Capacity:
        """The end of retrieval, from the largest alpha that has such a state."""
        for halvings in range(HALVINGS):
            alpha = self.retrieval.begin / 2**halvings
            problem = self._posed(context, values, alpha)
            choices = {"lags": lags, "coarse": coarse, "within": (alpha / 4, HIGHEST)}
            try:
                if self.retrieval.moving:
                    return moving_capacity(problem, **choices)
                at_rest = self.retrieval.at_rest
                return capacity(problem, self._start, at_rest=at_rest, **choices)
            except NoRetrieval:
                continue
        least = self.retrieval.begin / 2 ** (HALVINGS - 1)
        raise RuntimeError(f"no pattern is retrieved down to alpha = {least:.1g}.")
