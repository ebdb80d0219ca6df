"""The picture of the packages and of what imports what, drawn from the source."""

import ast
from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.patches import FancyBboxPatch


HERE = Path(__file__).resolve().parent
HOUSE = "statmech_attn"
WORDS = {
    "native": "programs of LLVM",
    "batches": "many at once",
    "statistics": "values with errors",
    "storage": "HDF5 files",
    "scan": "chunks, engines",
    "dynamics": "any map or flow",
    "dmft": "1-bit self-attention",
    "bpkr": "Bayesian learning",
    "tasks": "what is learned",
    "training": "gradient descent",
    "montecarlo": "finite N, sampling",
    "comparison": "theory, simulation",
    "studies": "study files",
    "plotting": "figures",
    "validation": "reference systems",
    "explore": "the page",
    "cli": "the command",
    "interactive": "notebooks",
}
LEFT, MIDDLE, RIGHT, OUTSIDE = -3.2, 0.0, 3.2, 6.0
COLUMN = dict.fromkeys(WORDS, MIDDLE)
COLUMN |= dict.fromkeys(
    ("native", "batches", "storage", "scan", "dynamics", "dmft"), LEFT
)
COLUMN |= dict.fromkeys(("statistics", "bpkr", "tasks", "training"), RIGHT)
COLUMN["validation"] = OUTSIDE
WIDTH, HEIGHT, FLOOR = 2.3, 0.8, 1.2


def imports() -> dict[str, set[str]]:
    """The packages that each package imports."""
    result: dict[str, set[str]] = {name: set() for name in WORDS}
    for name in WORDS:
        for path in (HERE.parent / HOUSE / name).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if isinstance(node, ast.ImportFrom) and node.module:
                    parts = node.module.split(".")
                    if parts[0] == HOUSE:
                        targets = parts[1:2] or [x.name for x in node.names]
                        result[name] |= {x for x in targets if x in WORDS and x != name}
    return result


def reduced(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The graph without the arrows that follow from others."""

    def below(name: str) -> set[str]:
        return graph[name].union(*(below(x) for x in graph[name]))

    return {
        name: {x for x in direct if not any(x in below(y) for y in direct - {x})}
        for name, direct in graph.items()
    }


def levels(graph: dict[str, set[str]]) -> dict[str, int]:
    """The floor of each package: above everything that it imports."""

    def level(name: str) -> int:
        return 1 + max((level(x) for x in graph[name]), default=-1)

    return {name: level(name) for name in graph}


def ends(name: str, other: str, place: dict) -> tuple[tuple, tuple]:
    """Where an arrow leaves a box and enters another, clear of those between."""
    (x, y), (u, v) = place[name], place[other]
    below, above = (x, y - HEIGHT / 2), (u, v + HEIGHT / 2)
    if x == u:
        return below, above
    right = 1 if u > x else -1
    beside, at_side = (x + right * WIDTH / 2, y), (u - right * WIDTH / 2, v)
    if (name, other) == ("validation", "statistics"):
        return below, (u + WIDTH / 2, v)
    if (name, other) == ("montecarlo", "bpkr"):
        return below, at_side
    return (beside, above) if x == MIDDLE else (beside, at_side)


def draw() -> Figure:
    graph = reduced(imports())
    floor = levels(graph)
    place = {name: (COLUMN[name], FLOOR * floor[name]) for name in graph}
    figure = Figure(figsize=(8, 8.4), layout="constrained")
    axes = figure.subplots()
    axes.set_axis_off()
    axes.set_aspect("equal")
    for name, targets in graph.items():
        for target in targets:
            start, end = ends(name, target, place)
            style = {"arrowstyle": "-|>", "color": "0.5", "shrinkA": 0, "shrinkB": 0}
            axes.annotate("", end, start, arrowprops=style)
    for name, (x, y) in place.items():
        box = FancyBboxPatch(
            (x - WIDTH / 2, y - HEIGHT / 2),
            WIDTH,
            HEIGHT,
            boxstyle="round,pad=0,rounding_size=0.1",
            facecolor="#eef3fa",
            edgecolor="#33587f",
        )
        axes.add_patch(box)
        axes.text(x, y + 0.17, name, ha="center", va="center", weight="bold")
        axes.text(x, y - 0.17, WORDS[name], ha="center", va="center", fontsize=8)
    axes.autoscale_view()
    return figure


def setup(app) -> None:
    """Sphinx calls this when it loads the extension."""
    path = HERE / "generated" / "packages.svg"
    path.parent.mkdir(parents=True, exist_ok=True)
    draw().savefig(path, metadata={"Date": None})
