"""Networks with alpha N patterns over their parameters, as points that survive a kill.

`OrderParameters` and `capacities` are theory; spins are `montecarlo.ExtensiveSamples`.
"""

import itertools
import math
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from statmech_attn.dmft.extensive.ensembles import Ensemble
from statmech_attn.dmft.extensive.grids.options import Recall
from statmech_attn.dmft.extensive.loaded_network import (
    loaded_network,
    LoadedNetwork,
    require_overlap,
)
from statmech_attn.dmft.network import Network, network_digest, PARAMETERS
from statmech_attn.labels import Variable, Variables
from statmech_attn.reporting import size
from statmech_attn.scan import Arrays, lacking, Points


LARGEST = 4 * 2**30  # bytes of a result that are kept in memory
ONE_TIME = {  # dimensions beside time, words, symbol
    "m_o_se": ("pattern", "semantic output overlap", "m^{o,SE}"),
    "A": ("pattern", "attention", "A"),
    "weights": ("age", "attention weight", "p_d"),
}
TWO_TIMES = {
    "C": ("correlation of the spins", "C"),
    "S": ("correlation of the value overlaps of the other patterns", "S^{vv}"),
    "G": ("response of a token to a field on the token after time_2", "G"),
    "S_qk": (
        "correlation of query overlaps with key overlaps at time_2, other patterns",
        "S^{qk}",
    ),
    "self_interaction": ("self-interaction of a spin through the other patterns", "Γ"),
    "noise": ("covariance of the crosstalk", "V"),
}
MEASURED = (*ONE_TIME, "C", "S")  # by spins, and compared with them
LOADED = Variables(
    Variable("alpha", "", "patterns per spin besides those of the network", "1", "α"),
    *(row for row in PARAMETERS if row.name != "redrawn"),
)
SCANNED = tuple(row.name for row in LOADED)
_TOKEN = "token step, 0 is the start"
TIMES = Variables(
    Variable("time", "time", _TOKEN, "token", "t"),
    Variable("time_2", "time_2", _TOKEN, "token", "t'"),
    Variable("pattern", "pattern", "pattern of the network", "1", "a"),
    Variable("age", "age", "age of the token that is read, 0 the newest", "token", "d"),
)
ParameterValues = float | Sequence[float] | np.ndarray


def label(name: str) -> tuple[str, str, str]:
    """Dimensions, words and symbol of an order parameter."""
    if name in ONE_TIME:
        last, words, symbol = ONE_TIME[name]
        return f"time {last}", words, symbol
    return "time time_2", *TWO_TIMES[name]


def require_pattern(net: Network, row: int) -> None:
    """Refuse a pattern that the network has not."""
    if row >= net.n_patterns:
        raise ValueError(
            f"row must be below the number of patterns, {net.n_patterns}; got {row}."
        )


def corners(grid: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Parameters at the ends of their ranges."""
    ends = [(np.min(x).item(), np.max(x).item()) for x in grid.values()]
    for corner in sorted(set(itertools.product(*ends))):
        yield dict(zip(grid, corner))


class TimedPoints(Points):
    """Order parameters in time over choices of parameters, of theory or spins."""

    def __init__(
        self,
        net: Network,
        ensemble: Ensemble,
        recall: Recall,
        parameters: Mapping[str, ParameterValues],
    ):
        require_pattern(net, recall.row)
        self.net, self.ensemble, self.recall = net, ensemble, recall
        self._grid = {n: np.atleast_1d(x).astype(float) for n, x in parameters.items()}
        self.axes = self._grid
        self.single = tuple(n for n, x in parameters.items() if np.ndim(x) == 0)
        self._start = recall.overlap * np.asarray(net.output[recall.row])
        for corner in corners(self._grid):
            self._posed(corner)
        require_overlap(net, self._start)

    @property
    def choices(self) -> int:
        """Number of choices of parameters."""
        return math.prod(map(len, self._grid.values()))

    def parameters(self, number: int) -> dict[str, float]:
        """Parameters of a point by name."""
        place = self.index(number)
        return {name: float(x[place[name]]) for name, x in self._grid.items()}

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        return lacking(arrays, *(name for name in arrays if "_by_" not in name))

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Order parameters that are kept."""

    @property
    def compared(self) -> list[str]:
        """Variables that theory and simulation both have."""
        return [n for n in MEASURED if n in ONE_TIME or self.recall.two_times]

    def problem(self, number: int) -> LoadedNetwork:
        """The network of a point."""
        return self._posed(self.parameters(number))

    def _posed(self, values: dict[str, float]) -> LoadedNetwork:
        return loaded_network(self.net, self.ensemble, **values)

    def stored_numbers(self) -> int:
        """Numbers of a point for each of which one is kept."""
        n = self.recall.steps + 1
        pairs = sum(name in TWO_TIMES for name in self.names)
        return n * (2 * self.net.n_patterns + self.net.context + n * pairs)

    def require_memory(self, copies: int) -> None:
        """Refuse a result that fills the memory."""
        needed = 8 * copies * self.choices * self.stored_numbers()
        if needed > LARGEST:
            raise ValueError(
                f"steps: this result needs {size(needed)} of memory, more than "
                f"{size(LARGEST)}; take fewer steps or points, or two_times = false."
            )

    def coordinates(self) -> dict[str, Any]:
        n = self.recall.steps + 1
        return {
            "time": np.arange(n),
            "time_2": np.arange(n),
            "pattern": np.arange(1, self.net.n_patterns + 1),
            "age": np.arange(self.net.context),
        }

    def attributes(self) -> dict[str, Any]:
        start = f"overlap {self.recall.overlap:g} with pattern {self.recall.row + 1}"
        return {
            "kind": self.title,
            "network": network_digest(self.net),
            "ensemble": self.ensemble.description,
            "context": self.net.context,
            "start": start,
        }
