r"""
Writing a kind of study as a plug-in
====================================

:doc:`03_own_network` found that networks with random patterns differ much from one draw
to the next.  What is *typical*?  No kind of study of the package answers that: scans
vary parameters, not the draw.  This tutorial writes a new kind of study, ``ensemble``,
in which a point is a network.  It then has everything that the kinds of the package
have: checked study files, chunks that survive interruptions, job arrays,
self-describing files, ``info``, ``figure``, and a schema for editors.
"""

# %%
# What can be asked: the tables
# -----------------------------
#
# The tables of the study file are declared as classes.  Types and limits are checked as
# written, before anything is computed; the sentences in the docstring become help
# texts.

from typing import Literal

import jax
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.figure import Figure

import statmech_attn
from statmech_attn import dmft, dynamics, plotting
from statmech_attn.cli import Summary
from statmech_attn.kinds import Kind, KINDS
from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import Points
from statmech_attn.studies import Count, Positive, Seed, StudyTable, Table


statmech_attn.setup()


class EnsembleRun(Table):
    """[run] of an ensemble.

    Attributes:
        seed: of the first network; the others follow.
        networks: number of networks.
        beta: inverse temperature of the outputs.
        gamma: inverse temperature of attention.
        transient (token): steps before anything is averaged.
        steps (token): first window of the exponents.
    """

    seed: Seed = 0
    networks: Count = 24
    beta: Positive = 2.2
    gamma: Positive = 127.0
    transient: Count = 2000
    steps: Count = 2000


class EnsembleStudy(StudyTable):
    """Networks with random patterns.

    Attributes:
        run: numerical choices.
    """

    kind: Literal["ensemble"]
    run: EnsembleRun = EnsembleRun()

    @property
    def seeds(self) -> dict[str, int]:
        return {"run": self.run.seed}


# %%
# What is computed: the points
# ----------------------------
#
# Axes say how many points there are, and a row has the numbers of one of them.  The
# only rule is that a row depends on nothing but the study and the *number* of its
# point: then chunks can be computed anywhere, in any order, and again.  Here the number
# gives the seed of the network.
#
# Networks of one shape share their compiled programs, so that only the first is slow.
#
# The variables of the file are declared with their words, units and symbols; they are
# what a reader of the file, ``info`` and the axes of figures show.

VARIABLES = Variables(
    Variable("phase", "network", "phase", "1", "phase", flags=dynamics.PHASES),
    Variable(
        "largest", "network", "largest Lyapunov exponent", "nat/token", "λ_1", group=""
    ),
    Variable(
        "largest_stderr", "network", "its standard error", "nat/token", "δλ_1", group=""
    ),
    Variable("network", "network", "seed of the network", "1", "n"),
)


class Ensemble(Points):
    """A point is a network with patterns of its own seed."""

    title = "networks"
    variables = VARIABLES
    numbers = ("largest",)

    def __init__(self, study):
        self.settings = study.run
        self.axes = {"network": study.run.seed + np.arange(study.run.networks)}

    def row(self, number, tick, folder):
        """The phase and largest exponent of a network."""
        run = self.settings
        key = jax.random.key(run.seed + number)
        patterns = dmft.random_segments(key, n_patterns=3, n_segments=3, n_bits=2)
        network = dmft.network(patterns, context=4)
        parameters = dmft.parameters(run.beta, run.gamma, 0.02)
        verdict = dynamics.classify(
            dmft.system(network),
            dmft.from_row(network, parameters, 0),
            parameters,
            transient=run.transient,
            steps=run.steps,
            exponents=1,
            max_doublings=2,
        )
        spectrum = verdict.spectrum
        return {
            "phase": np.int8(verdict.phase),
            "largest": spectrum.exponents[0],
            "largest_stderr": spectrum.stderr[0],
        }

    def attributes(self):
        return {"kind": "ensemble"}


# %%
# What is shown
# -------------
#
# A summary for ``info`` and pictures for ``figure`` are functions of the finished data
# set.


def counts(dataset):
    """How many networks have which phase."""
    for code, word in enumerate(dynamics.PHASES):
        count = int((dataset.phase == code).sum())
        if count:
            yield f"{word}: {count} of {dataset.network.size} networks"


def exponents(dataset):
    """The largest exponents in order, with their errors, coloured by phase."""
    figure = Figure(figsize=(plotting.SINGLE, 2.5), layout="constrained")
    axis = figure.subplots()
    ordered = dataset.sortby("largest")
    for code in np.unique(ordered.phase):
        rank = np.flatnonzero(ordered.phase == code)
        y, error = ordered.largest.values[rank], ordered.largest_stderr.values[rank]
        word = dynamics.PHASES[int(code)]
        look = {"color": plotting.PHASE_COLOURS[word], "label": word}
        axis.errorbar(rank, y, error, fmt="o", ms=3, lw=0.8, **look)
    axis.axhline(0, color="k", lw=0.5)
    axis.set_xlim(-1, dataset.network.size)
    axis.set(xlabel="rank of the network", ylabel=r"$\lambda_1$ (nat/token)")
    axis.legend()
    return figure


SUMMARY = Summary(counts, "phase")
PICTURES = (plotting.Picture("exponents", exponents),)

# %%
# One row
# -------
#
# A row of the table of kinds names all parts.  In an installed distribution the parts
# are texts such as ``"ensembles.work:Ensemble"``, so that nothing is imported
# before it is needed, and an entry point leads to the row:
#
# .. code-block:: toml
#
#     [project.entry-points."statmech_attn.kinds"]
#     ensemble = "ensembles:KIND"
#
# In a notebook the parts may be the objects themselves, and ``KINDS.add`` makes the row
# known.

KIND = Kind(
    "ensemble",
    table=EnsembleStudy,
    work=Ensemble,
    variables=VARIABLES,
    summary=SUMMARY,
    pictures=PICTURES,
)
KINDS.add(KIND)

# %%
# Use it
# ------
#
# From here on it is a kind like any other.  A mistake in a study is refused in one
# line:

try:
    statmech_attn.run({"kind": "ensemble", "run": {"network": 12}})
except ValueError as error:
    print(error)

# %%
# A valid study runs, and its result can be summarised and drawn.

with plt.rc_context(plotting.SETTINGS):
    result = statmech_attn.run(
        {"kind": "ensemble", "run": {"networks": 24}}, progress=False
    )
    print(result.statmech.describe())
    picture = result.statmech.plot()["exponents"]
picture

# %%
# The file has units, descriptions and provenance without further work, and a run on a
# cluster gives the same values to the last bit (:doc:`11_cluster`).

print(result.largest.attrs["long_name"], "in", result.largest.attrs["unit_name"])
chaotic = int((result.largest > 3 * result.largest_stderr).sum())
share = chaotic / result.network.size
low, high = dynamics.wilson(chaotic, result.network.size)
print(f"λ_1 is beyond three errors above zero in a share of {share:.0%} of networks,")
print(f"between {low:.0%} and {high:.0%}, one standard error of the count")

# %%
# Chaos, as in the published network, is not typical at this :math:`\beta` and
# :math:`\gamma`.  The interval is Wilson's interval of a binomial share; more networks
# make it narrower, and their number is now one entry of a study file.
#
# Where to go next
# ----------------
#
# * :doc:`/plugins` shows the same as an installable distribution, and how to add a task
#   for the Bayesian theory or a sampler of weights.
# * :doc:`/scans` says what a kind must respect, and what it gets for that.
