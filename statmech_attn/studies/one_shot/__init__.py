"""Studies of one-shot image classification: networks, and theory on their heads."""

from statmech_attn.kinds import Kind, TaskKind
from statmech_attn.studies import learning


_HERE = __name__

TASK = TaskKind(
    "one-shot",
    table=f"{_HERE}.trained_tables:RestartTask",
    draw=f"{_HERE}.examples:learning",
)
ORDER_PARAMETER = learning.ORDER_PARAMETER._replace(
    task=TASK.name, table=f"{_HERE}.trained_tables:OneShotOrderParameterStudy"
)
TRAINING = Kind(
    "training",
    task=TASK.name,
    table=f"{_HERE}.tables:OneShotTrainingStudy",
    work=f"{_HERE}.training:work",
    variables="statmech_attn.training.one_shot_networks:VARIABLES",
    summary="statmech_attn.cli.texts.learning_summary:NETWORKS",
    pictures="learning.training_history",
    rows="restart",
    dimension="test_set",
)
PRUNING = learning.PRUNING._replace(
    task=TASK.name,
    table=f"{_HERE}.trained_tables:PruningStudy",
    work=f"{_HERE}.pruning:work",
)
