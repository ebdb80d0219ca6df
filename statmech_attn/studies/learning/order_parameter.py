"""Order-parameter studies: saddle points over widths and temperatures."""

from statmech_attn.bpkr import saddle_points
from statmech_attn.studies.learning import tasks
from statmech_attn.studies.learning.tables import OrderParameterStudy


def work(study: OrderParameterStudy) -> saddle_points.SaddlePoints:
    """The saddle points that a study asks for."""
    task, network = tasks.learning(study.task), study.network
    grid, options = tasks.grid(network), study.run.model_dump()
    return saddle_points.SaddlePoints(
        task, grid, variances=network.variances, **options
    )
