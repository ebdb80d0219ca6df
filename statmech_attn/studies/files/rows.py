"""Kinds of file that no study file asks for: comparisons, and what scripts write."""

from statmech_attn.kinds import Kind


_RECORDS = "statmech_attn.studies.files.records"
_COMPARISON = "statmech_attn.comparison"
_SUMMARY = "statmech_attn.cli.texts.dynamics_summary"

DIAGRAM = Kind(
    "diagram",
    variables="statmech_attn.dynamics.diagrams:VARIABLES",
    summary=f"{_SUMMARY}:BIFURCATION",
    pictures="dynamics.bifurcation dynamics.phases network.loads",
    rows="section_count phase",
)
HYSTERESIS = Kind(
    "hysteresis",
    variables="statmech_attn.dynamics.along_parameter.hysteresis:VARIABLES",
    summary=f"{_SUMMARY}:HYSTERESIS",
    pictures="dynamics.basins",
    rows="number",
)
TRAJECTORIES = Kind(
    "comparison",
    variables=f"{_COMPARISON}.trajectories:VARIABLES",
    summary=f"{_SUMMARY}:COMPARISON",
    pictures="network.comparison",
    rows="largest_z",
)
POSTERIORS = Kind(
    "comparison",
    variables=f"{_COMPARISON}.posteriors:VARIABLES",
    summary="statmech_attn.cli.texts.learning_summary:ESTIMATES",
    pictures="learning.order_parameters",
    rows="verdict",
    dimension="estimate",
)
EXTENSIVE = Kind(
    "comparison",
    variables=f"{_COMPARISON}.extensive:VARIABLES",
    summary="statmech_attn.cli.texts.extensive_summary:COMPARED",
    pictures="network.extensive",
    rows="verdict",
    dimension="observable",
)
HEAD_SCORES = Kind(
    "head-scores",
    variables="statmech_attn.bpkr.heads.scores:VARIABLES",
    summary="statmech_attn.cli.texts.learning_summary:HEAD_SCORES",
    pictures="learning.head_scores",
    rows="head_score",
)
ABLATION = Kind(
    "ablation",
    variables="statmech_attn.bpkr.heads.ablation:VARIABLES",
    summary="statmech_attn.cli.texts.learning_summary:ABLATION",
    pictures="learning.ablation",
    rows="loss_gained",
)
RUNNING_LYAPUNOV = Kind(
    "running-lyapunov",
    variables=f"{_RECORDS}:RUNNING_LYAPUNOV",
    summary=f"{_SUMMARY}:BIFURCATION",
    pictures="dynamics.lyapunov",
    rows="beta",
)
CHAOS_INDICATORS = Kind(
    "chaos-indicators",
    variables=f"{_RECORDS}:CHAOS_INDICATORS",
    pictures="dynamics.indicators",
    rows="beta",
)
COVARIANT_VECTORS = Kind(
    "covariant-vectors",
    variables="statmech_attn.dynamics.exponents.covariant_vectors:VARIABLES",
    pictures="dynamics.covariant_vectors",
    rows="covariant_exponent",
)
COVARIANT_DIAGRAM = Kind(
    "covariant-diagram",
    variables="statmech_attn.dynamics.exponents.covariant_vectors:ALONG",
    pictures="dynamics.covariant_vectors",
    rows="smallest_angle",
)
UNSTABLE_CYCLES = Kind(
    "unstable-cycles",
    variables="statmech_attn.dynamics.unstable_cycles:VARIABLES",
    pictures="dynamics.unstable_cycles",
    rows="cycle",
    padding="point",
)
PLANE_BASINS = Kind(
    "plane-basins",
    variables="statmech_attn.dynamics.attractors.plane_basins:VARIABLES",
    pictures="dynamics.plane_basins",
    rows="basin",
)
CAPACITY_SPINS = Kind(
    "capacity-spins",
    variables=f"{_RECORDS}:THRESHOLDS",
    pictures="network.extensive",
    rows="threshold",
)
CROSSTALK_SPINS = Kind(
    "crosstalk-spins",
    variables=f"{_RECORDS}:MOTION",
    pictures="network.loads",
    rows="motion",
)
