"""Order-parameter studies: saddle points over widths and temperatures."""

from statmech_attn.bpkr import saddle_points
from statmech_attn.studies import learning
from statmech_attn.studies.bpkr_tables import OrderParameterStudy


VARIABLES = saddle_points.VARIABLES


def work(study: OrderParameterStudy) -> saddle_points.SaddlePoints:
    """The saddle points that a study asks for.

    Raises:
        ValueError: impossible settings, in one line.
    """
    task, network = learning.learning(study.task), study.network
    grid, options = learning.grid(network), study.run.model_dump()
    return saddle_points.SaddlePoints(
        task, grid, variances=network.variances, **options
    )
