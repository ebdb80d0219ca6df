"""Labels of the quantities of learning that files of several kinds hold."""

from statmech_attn.labels import Variable, Variables
from statmech_attn.scan import FAILURE


_OF_LAYER = "attention path from layer {l} on"
WIDTH = Variable("width", "width", "hidden width", symbol="N")
TEMPERATURE = Variable(
    "temperature", "temperature", "temperature of the posterior", symbol="T"
)
WIDTHS_OF_ONE = Variable("width", "layer", "widths", symbol="N")
TEMPERATURE_OF_ONE = Variable("temperature", "", "temperature", symbol="T")
PATHS = (
    Variable("path_{l}", "path_{l}", _OF_LAYER, symbol="π"),
    Variable("path_{l}_pair", "path_{l}_pair", _OF_LAYER, symbol="π"),
)
HEAD = Variable("attention_head", "attention_head", "layer.head", symbol="(l, h)")
TEST_SET = Variable("test_set", "test_set", "name of the test set", symbol="set")
RESTART = Variable(
    "restart", "restart", "training from initial weights of its own", symbol="r"
)
Y_TEST = Variable("y_test", "test", "labels of the test examples", symbol="Y")
PREDICTOR = (
    Variable("predictor_mean", "test", "mean of f over the posterior", symbol="⟨f⟩"),
    Variable(
        "predictor_variance", "test", "variance of f over the posterior", symbol="⟨δf²⟩"
    ),
)
ACCURACY = Variable(
    "accuracy", "", "share of test examples with the right sign", symbol="accuracy"
)
ACCURACY_SETS = Variable(
    "accuracy_sets",
    "test_set",
    "share of a test set with the right sign",
    symbol="accuracy",
    parts="_stderr",
    note="binomial error",
)
LOG_EVIDENCE = Variable(
    "log_evidence", "", "log of the probability of the labels", "nat", "ln p(Y)"
)
HEAD_SCORE = Variable(
    "head_score",
    "attention_head",
    "weight of the head in U_1 over the largest",
    symbol="score",
)
HEAD_SCORE_FLOOR = Variable(
    "head_score_floor",
    "attention_head",
    "the same of a head that f does not read",
    symbol="score",
)
HEURISTIC = Variable(
    "heuristic", "", "a heuristic: kernels are not of a linear network"
)
# Files have the dimension `temperature` after `width` where several were asked for.
COORDINATES = Variables(
    FAILURE,
    WIDTH,
    TEMPERATURE.over(""),
    PATHS[0]._replace(
        note="heads by layer: 2-1 is head 2 of layer 1 and head 1 of layer 2; 0 a "
        "skip; with several outputs the number of an output after a colon"
    ),
    PATHS[1],
    HEAD,
)
TASK_COORDINATES = Variables(
    Variable("y", "example", "labels of the training examples", symbol="Y"),
    Y_TEST,
    COORDINATES,
    TEST_SET,
    Variable("choice", "choice", "by what accuracy the temperature was chosen"),
)


def overlaps(group: str | None = None) -> Variables:
    """Labels of what `alignment_and_scores` gives of a theory."""
    return Variables(
        Variable(
            "kernel_overlap",
            "width rank",
            "overlap of kernel eigenvectors with the labels",
            symbol="|v_i·Y|/|Y|",
            group=group,
        ),
        HEAD_SCORE.over("width attention_head"),
        HEAD_SCORE_FLOOR.over("width attention_head"),
    )


def order_parameters(
    before: str, parts: str = "", note: str = "", group: str | None = ""
) -> Variables:
    """Labels of U_1 ... U_L and U_a, which have the dimensions `before` first.

    `parts` are endings of variables that come with them; `group` is that of U_1 ...
    U_L, as in `Variable`.
    """
    return Variables(
        Variable(
            "U_{l}",
            f"{before} path_{{l}} path_{{l}}_pair",
            "order parameter, overlap of effective weights",
            symbol="U_{l}",
            parts=parts,
            group=group,
            note=note,
        ),
        Variable("U_a", before, "order parameter of the readout", parts=parts),
    )


def heuristic_row(problem: str = "") -> Variable:
    """The row of a result that says where the theory is a heuristic.

    `problem` is an attribute of the result; the result itself where it is empty.
    """

    def value(result):
        for name in filter(None, problem.split(".")):
            result = getattr(result, name)
        return True if result.heuristic else None

    return HEURISTIC._replace(value=value)


def shown_order_parameters(problem, *, error: bool = False) -> list[Variable]:
    """Rows of a result with order parameters: those of the problem, U_1 ... and U_a.

    With `error` there are standard deviations `U_std` and `U_a_std`.
    """
    of = lambda name, l: lambda result: getattr(result, name)[l]
    several = " output output_pair" if problem.outputs > 1 else ""
    layers = [
        Variable(
            f"U_{l + 1}",
            f"path_{l + 1} path_{l + 1}_pair",
            f"order parameter U_{l + 1}",
            parts="_std",
            value=of("U", l),
            error=of("U_std", l) if error else "",
        )
        for l in range(len(problem.heads))
    ]
    return [
        TEMPERATURE_OF_ONE._replace(value="problem.temperature"),
        WIDTHS_OF_ONE._replace(value="problem.widths"),
        *layers,
        Variable(
            "U_a",
            several.strip(),
            "order parameter of the readout",
            parts="_std",
            error="U_a_std" if error else "",
        ),
        heuristic_row("problem"),
    ]
