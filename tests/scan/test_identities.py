"""What a computation is known by: all that its numbers depend on."""

import ast
import dataclasses
import inspect
import pathlib
import runpy

import pytest

import statmech_attn
from statmech_attn.dynamics import diagrams, System
from statmech_attn.scan.fingerprints import described
from statmech_attn.storage import toml


HERE = pathlib.Path(__file__).parent
TABLE, SYSTEM, SYSTEMS, diagram = map(
    runpy.run_path(str(HERE / "computations.py")).__getitem__,
    ("TABLE", "SYSTEM", "SYSTEMS", "diagram"),
)
PACKAGE = pathlib.Path(statmech_attn.__file__).parent
ABSTRACT = {"Computation", "Points", "TimedPoints", "LearningPoints"}
ABSTRACT |= {"TaskPoints"}
# Why no number depends on an argument by itself, or what else tells of it.
FREE = {
    ("BasinDiagram", "count"): "starts that are given are counted",
    ("PlaneBasins", "parameters"): "of a system of its own; told with its state",
    ("PlaneBasins", "attractors"): "known by the sets on which orbits stay",
    ("PlaneBasins", "seeds"): "likewise, of the sets that they find",
    ("Scan", "work"): "attributes of the computation, by their names",
    ("FiniteSizes", "net"): "the law is of this one only",
    ("FiniteSizes", "patterns"): "the network is of these only",
    ("Simulations", "patterns"): "likewise",
    ("ExtensiveSamples", "patterns"): "likewise",
    ("capacities", "patterns"): "likewise",
    **{(n, "batch"): "points side by side" for n in TABLE},
}


OF_SYSTEMS = ("GridWork", "BasinDiagram", "PlaneBasins", "Scan")
OF_SYSTEMS += ("DiagramPlan", "Trajectories")


def text(name, **changes):
    build, given, _ = TABLE[name]()
    return toml.dumps(dict(build(**given | changes).identity()))


def test_the_table_has_every_computation_and_all_their_arguments():
    parents, scans = {}, set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.parse(path.read_text()).body:
            if getattr(node, "returns", None) and ast.unparse(node.returns) == "Scan":
                scans |= {node.name} - {"work"}
            if isinstance(node, ast.ClassDef):
                bases = {ast.unparse(base).split(".")[-1] for base in node.bases}
                parents.setdefault(node.name, set()).update(bases)
                overrides = [
                    x for x in node.body if getattr(x, "name", "") == "identity"
                ]
                assert not overrides or node.name in {"Computation", "StudyTable"}
    known = {"Computation"}
    while more := {n for n, bases in parents.items() if bases & known} - known:
        known |= more
    of_diagrams = {"RefinedWork", "SweepWork"}
    assert (known - ABSTRACT - of_diagrams) | scans == set(TABLE)
    for name, case in TABLE.items():
        build, _, others = case()
        build = diagrams.Diagram if build is diagram else build
        assert set(inspect.signature(build).parameters) == set(others), name
    assert set(SYSTEMS) == {field.name for field in dataclasses.fields(System)}


@pytest.mark.parametrize("name", TABLE)
def test_every_argument_makes_it_another_computation(name):
    first, (_, _, others) = text(name), TABLE[name]()
    assert text(name) == first
    for argument, value in others.items():
        if (name, argument) not in FREE:
            assert text(name, **{argument: value}) != first, argument


@pytest.mark.parametrize("name", OF_SYSTEMS)
def test_every_part_of_a_system_makes_it_another_computation(name):
    """In what a step is called by, and under the name of what differs."""
    build, given, _ = TABLE[name]()
    computation = build(**given)
    for part, value in SYSTEMS.items():
        system = System(**SYSTEM | {part: value})
        assert described(system) != described(System(**SYSTEM)), part
        if name == "GridWork":
            computation.diagram = computation.diagram._replace(system=system)
        elif name == "Scan":
            computation.given = {"system": system}
        else:
            computation.system = system
        told = computation.identity()
        told = told.get("diagram", told.get("given", told))
        assert told["system"] == described(system), part
