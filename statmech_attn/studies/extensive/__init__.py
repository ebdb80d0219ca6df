"""Studies of patterns growing with N: theory, simulation and capacity."""

from statmech_attn.kinds import Kind


_HERE, _SUMMARY = __name__, "statmech_attn.cli.texts.extensive_summary"

ORDER_PARAMETERS = Kind(
    "extensive",
    table=f"{_HERE}.tables:ExtensiveStudy",
    work=f"{_HERE}.computations:order_parameters",
    variables="statmech_attn.dmft.extensive.grids.order_parameters:VARIABLES",
    summary=f"{_SUMMARY}:THEORY",
    pictures="network.extensive",
    rows="noise_std",
)
SAMPLES = Kind(
    "extensive-simulation",
    table=f"{_HERE}.tables:ExtensiveSimulationStudy",
    work=f"{_HERE}.computations:samples",
    variables="statmech_attn.montecarlo.finite_networks.extensive_samples:VARIABLES",
    summary=f"{_SUMMARY}:SIMULATION",
    pictures="network.extensive",
    rows="A_mean",
)
CAPACITIES = Kind(
    "capacity",
    table=f"{_HERE}.tables:CapacityStudy",
    work=f"{_HERE}.computations:capacities",
    variables="statmech_attn.dmft.extensive.grids.capacities:VARIABLES",
    summary=f"{_SUMMARY}:CAPACITIES",
    pictures="network.extensive",
    rows="capacity",
)
