"""Studies of a system of one's own: any map or flow in Python."""

from statmech_attn.kinds import Kind, SYSTEM
from statmech_attn.studies import network


_HERE = __name__

TRAJECTORY = Kind(
    "trajectory",
    task=SYSTEM,
    table=f"{_HERE}.tables:SystemTrajectoryStudy",
    work=f"{_HERE}.trajectory:work",
    batched=True,
    variables="statmech_attn.dynamics.along_parameter.trajectories:VARIABLES",
    pictures="network.systems",
    dimension="observable",
)
BIFURCATION = network.BIFURCATION._replace(
    task=SYSTEM,
    table=f"{_HERE}.tables:SystemDiagramStudy",
    work=f"{_HERE}.bifurcation:work",
)
CONTINUATION = network.CONTINUATION._replace(
    task=SYSTEM,
    table=f"{_HERE}.tables:SystemContinuationStudy",
    work=f"{_HERE}.continuation:work",
)
BASINS = network.BASINS._replace(
    task=SYSTEM,
    table=f"{_HERE}.tables:SystemBasinsStudy",
    work=f"{_HERE}.basins:work",
    variables=f"{_HERE}.basins:VARIABLES",
    dimension="observable",
)
