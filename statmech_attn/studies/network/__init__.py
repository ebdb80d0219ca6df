"""Studies of a network: trajectories, diagrams, continuation, basins, simulations."""

from statmech_attn.kinds import Kind


_HERE, _SUMMARY = __name__, "statmech_attn.cli.texts.dynamics_summary"

TRAJECTORY = Kind(
    "trajectory",
    table=f"{_HERE}.tables:TrajectoryStudy",
    work=f"{_HERE}.trajectory:work",
    batched=True,
    variables="statmech_attn.dmft.along_beta.trajectories:VARIABLES",
    summary=f"{_SUMMARY}:TRAJECTORY",
    pictures="network.trajectory",
    rows="beta time",
)
RESPONSE = Kind(
    "response",
    table=f"{_HERE}.tables:ResponseStudy",
    work=f"{_HERE}.response:work",
    variables="statmech_attn.studies.network.response:VARIABLES",
    summary=f"{_SUMMARY}:RESPONSE",
    pictures="network.response",
    rows="spectrum",
)
BIFURCATION = Kind(
    "bifurcation",
    table=f"{_HERE}.tables:BifurcationStudy",
    work=f"{_HERE}.bifurcation:work",
    batched=True,
    variables=f"{_HERE}.bifurcation:VARIABLES",
    summary=f"{_SUMMARY}:BIFURCATION",
    pictures="dynamics.bifurcation dynamics.phases dynamics.sweeps",
    rows="section_count phase",
)
CONTINUATION = Kind(
    "continuation",
    table=f"{_HERE}.continuation_table:ContinuationStudy",
    work=f"{_HERE}.continuation:work",
    variables=f"{_HERE}.continuation:VARIABLES",
    summary=f"{_SUMMARY}:CONTINUATION",
    pictures="dynamics.continuation",
    rows="branch point",
    padding="arclength",
)
FINITE_SIZE = Kind(
    "finite-size",
    table=f"{_HERE}.continuation_table:FiniteSizeStudy",
    work=f"{_HERE}.finite_size:work",
    variables="statmech_attn.montecarlo.finite_networks.finite_size:VARIABLES",
    summary=f"{_SUMMARY}:FINITE_SIZE",
    pictures="network.size_scaling",
    rows="beta",
)
BASINS = Kind(
    "basins",
    table=f"{_HERE}.tables:BasinsStudy",
    work=f"{_HERE}.basins:work",
    variables=f"{_HERE}.basins:VARIABLES",
    summary=f"{_SUMMARY}:BASINS",
    pictures="dynamics.basins",
    rows="count",
    padding="count",
)
MONTE_CARLO = Kind(
    "monte-carlo",
    table=f"{_HERE}.tables:MonteCarloStudy",
    work=f"{_HERE}.monte_carlo:work",
    batched=True,
    variables="statmech_attn.montecarlo.finite_networks.dataset:VARIABLES",
    pictures="network.comparison",
    rows="n_spins beta time",
)
