"""Tables of a pruning study."""

from typing import Annotated, Literal

from pydantic import Field

from statmech_attn.options import Count, Positive, Seed
from statmech_attn.studies.tables import AnyTask, Table


class PruningNetwork(Table, frozen=True):
    """[network]: width and temperature at which heads are scored.

    Attributes:
        width: hidden width N.
        temperature: temperature T of the posterior.
    """

    width: Positive = 10.0
    temperature: Positive = 0.5


class PruningRun(Table, frozen=True):
    """[run]: draws of the exact law, counted for each chain, and random orders.

    The exact law costs most of the time, of which there is no forecast.

    Attributes:
        seed: seed of the exact law's chains and of random orders.
        exact: whether heads are scored by the exact law as well.
        draws: samples that each chain draws.
        warmup: steps of each chain before its first sample.
        chains: independent Markov chains.
        random_orders: random orders in which heads are pruned.
    """

    seed: Seed = 0
    exact: bool = False
    draws: Annotated[int, Field(ge=4)] = 250
    warmup: Count | None = None
    chains: Count = 4
    random_orders: Annotated[int, Field(ge=2, le=10_000)] = 20


class LearnedPruningStudy(AnyTask, frozen=True):
    """The mean network of a posterior without some of its heads.

    Attributes:
        network: width and temperature of the network.
    """

    kind: Literal["pruning"]
    network: PruningNetwork = PruningNetwork()
    run: PruningRun = PruningRun()
