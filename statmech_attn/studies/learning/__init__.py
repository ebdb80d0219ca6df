"""Studies of Bayesian learning: theory, sampling, training, and their tasks."""

from statmech_attn.kinds import EVERY, Kind, TaskKind


_HERE, _SUMMARY = __name__, "statmech_attn.cli.texts.learning_summary"

ORDER_PARAMETER = Kind(
    "order-parameter",
    task=EVERY,
    table=f"{_HERE}.tables:OrderParameterStudy",
    work=f"{_HERE}.work:order_parameter",
    variables="statmech_attn.bpkr.grids.saddle_points:VARIABLES",
    summary=f"{_SUMMARY}:ORDER_PARAMETERS",
    pictures=(
        "learning.order_parameters learning.several_sets learning.one_shot "
        "learning.head_scores"
    ),
    rows="action",
)
POSTERIOR = Kind(
    "posterior",
    task=EVERY,
    table=f"{_HERE}.tables:PosteriorStudy",
    work=f"{_HERE}.work:posterior",
    variables="statmech_attn.montecarlo.posterior_samples.posteriors:VARIABLES",
    summary=f"{_SUMMARY}:POSTERIOR",
    pictures="learning.order_parameters learning.several_sets learning.head_scores",
    rows="U_a",
)
LEARNING_CURVE = Kind(
    "learning-curve",
    task=EVERY,
    table=f"{_HERE}.tables:LearningCurveStudy",
    work=f"{_HERE}.learning_curve:work",
    variables="statmech_attn.bpkr.grids.learning_curves:VARIABLES",
    summary=f"{_SUMMARY}:LEARNING_CURVE",
    pictures="learning.learning_curve",
    rows="error",
)
MODEL_SELECTION = Kind(
    "model-selection",
    task=EVERY,
    table=f"{_HERE}.tables:ModelSelectionStudy",
    work=f"{_HERE}.selection:work",
    variables="statmech_attn.bpkr.grids.selection:VARIABLES",
    summary=f"{_SUMMARY}:MODEL_SELECTION",
    pictures="learning.selection",
    rows="log_evidence",
)
TRAINING = Kind(
    "training",
    task=EVERY,
    table=f"{_HERE}.tables:TrainingStudy",
    work=f"{_HERE}.work:trainings",
    variables="statmech_attn.training.networks:VARIABLES",
    summary=f"{_SUMMARY}:TRAINING",
    pictures="learning.training",
    rows="U_a",
)
PRUNING = Kind(
    "pruning",
    task=EVERY,
    table=f"{_HERE}.tables:LearnedPruningStudy",
    work=f"{_HERE}.work:pruning",
    variables="statmech_attn.bpkr.grids.pruned_networks:VARIABLES",
    summary=f"{_SUMMARY}:PRUNING",
    pictures="learning.pruning",
    rows="restart",
)
HIDDEN_MARKOV = TaskKind(
    "hidden-markov",
    table=f"{_HERE}.tables:HiddenMarkovTable",
    draw=f"{_HERE}.hidden_markov:learning",
)
ARRAYS = TaskKind(
    "arrays",
    table=f"{_HERE}.tables:ArraysTask",
    draw=f"{_HERE}.arrays:learning",
    example="statmech_attn.tasks.own_data.arrays:write_example",
)
