"""Susceptibilities and spectra of a network along beta, as points that survive a kill.

A point is a value of beta; one whose orbit has no linear response has no numbers, and
the file says why.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import jax
import numpy as np

from statmech_attn.dmft.along_beta.trajectories import along_beta
from statmech_attn.dmft.network import (
    Network,
    network_attributes,
    PARAMETERS,
    Parameters,
    State,
)
from statmech_attn.dmft.noise.fluctuations import OBSERVABLES
from statmech_attn.dmft.noise.response import check_names, response
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import FAILURE, Points, Tick


EACH = "beta frequency observable pattern"
VARIABLES = Variables(
    Variable("susceptibility_real", EACH, "susceptibility, real part", "1", "Re χ"),
    Variable("susceptibility_imag", EACH, "its imaginary part", "1", "Im χ"),
    Variable("spectrum", EACH, "spectrum of the noise, times N", "1", "N S", group=""),
    Variable("temperature", EACH, "effective temperature", "1", "T_eff"),
    Variable("period", "beta", "period of the orbit", "token", "p"),
    Variable("multiplier", "beta", "largest modulus of a multiplier", "1", "|μ|"),
    Variable("frequency", "frequency", "angular frequency", "rad / token", "ω"),
    Variable("observable", "observable", "observable", "1", flags=OBSERVABLES),
    Variable("pattern", "pattern", "pattern", "1", "a"),
    FAILURE,
    PARAMETERS,
)  # fmt: skip


class Responses(Points):
    """Linear response and linear noise of the orbits of a network along beta.

    Args:
        net: the network, as `dmft.network` builds it.
        grid: `beta` with several values, and numbers `gamma`, `epsilon` and, where
            not all spins are redrawn, `redrawn`.
        start: parameters of many points -> their states, with the points on the last
            axis.
        frequencies: of the field, in radians per token.
        field, pattern, transient, longest: as in `dmft.response`.
        about: attributes of the file.

    Raises:
        ValueError: a grid that makes no sense, or a pattern that there is not.

    Example:
        >>> from statmech_attn import dmft
        >>> file = dmft.load("poclopez-pe2")
        >>> net = dmft.network(file.patterns, context=file.context)
        >>> grid = {"beta": [1.0, 1.2], "gamma": file.gamma, "epsilon": file.epsilon}
        >>> points = Responses(
        ...     net, grid, lambda params: dmft.from_checkpoint(net, params, file),
        ...     frequencies=[0.0, 0.3], longest=16)
        >>> points.compute().spectrum.sizes
        Frozen({'beta': 2, 'frequency': 2, 'observable': 5, 'pattern': 3})
    """

    title = "response"
    variables = VARIABLES
    numbers = ("spectrum",)

    def __init__(
        self,
        net: Network,
        grid: Mapping[str, Any],
        start: Callable[[Parameters], State],
        *,
        frequencies,
        field: str = "v",
        pattern: int = 0,
        transient: int = 20_000,
        longest: int = 1024,
        about: Mapping[str, Any] = {},
    ):
        axes, starts = along_beta(grid, start)
        check_names(net, field, pattern, OBSERVABLES)
        self.net, self.frequencies = net, np.asarray(frequencies, float)
        self.field, self.pattern = field, pattern
        self.transient, self.longest = transient, longest
        self.axes = {"beta": axes.values[0], **{n: [x] for n, x in axes.fixed.items()}}
        self.single = tuple(axes.fixed)
        self.params = axes.points()
        self.state = starts(self.params, np.zeros(len(axes.values[0]), int))
        self.about = about

    def row(self, number: int, tick: Tick, folder: Path | None) -> dict[str, Any]:
        of_point = lambda x: x[..., number] if np.ndim(x) else x
        params, state = jax.tree.map(of_point, (self.params, self.state))
        result = response(
            self.net,
            params,
            state,
            frequencies=self.frequencies,
            field=self.field,
            pattern=self.pattern,
            transient=self.transient,
            longest=self.longest,
        )
        return {
            "susceptibility_real": np.real(result.susceptibility),
            "susceptibility_imag": np.imag(result.susceptibility),
            "spectrum": result.spectrum,
            "temperature": result.temperature,
            "period": result.period,
            "multiplier": result.multiplier,
        }

    def coordinates(self) -> dict[str, Any]:
        return {
            "frequency": self.frequencies,
            "observable": np.arange(len(OBSERVABLES), dtype=np.int8),
            "pattern": np.arange(1, self.net.n_patterns + 1),
        }

    def attributes(self) -> dict[str, Any]:
        return {
            **super().attributes(),
            **network_attributes(self.net),
            "field": self.field,
            "field_pattern": self.pattern + 1,
            "start": "given",
            **self.about,
        }
