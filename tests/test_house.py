"""The plan of the house: floors of packages, and their faces.

The face of a package is what its `__init__` offers: what others may use.  Everything
is read from the source, nothing is imported.
"""

import ast
import functools
import graphlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from statmech_attn import lazy


ROOT = Path(__file__).resolve().parents[1]
HOUSE = "statmech_attn"
# Packages and modules of the house, the lowest floor first: each imports from those
# before it alone.
FLOORS = (
    "arguments",
    "options",
    "lazy",
    "inputs",
    "extras",
    "reporting",
    "refusals",
    "kinds",
    "labels",
    "presentation",
    "layout",
    "kept_files",
    "native",
    "batches",
    "statistics",
    "storage",
    "scan",
    "dynamics",
    "dmft",
    "bpkr",
    "tasks",
    "montecarlo",
    "training",
    "comparison",
    "studies",
    "plotting",
    "validation",
    "explore",
    "cli",
    "interactive",
)
# Imports past a face that are wanted, each with its reason.
ALLOWED = {
    "analysis/arrow_of_time.py": {
        "plotting.frame.sheets": "draws rates that no kind of file holds",
        "plotting.frame.style": "draws rates that no kind of file holds",
    },
    "analysis/critical_fluctuations.py": {
        "plotting.frame.sheets": "draws the panels of three files together",
        "plotting.frame.style": "draws the panels of three files together",
    },
    "analysis/band_ends.py": {
        "plotting.frame.sheets": "draws bands that no kind of file holds",
        "plotting.frame.style": "draws bands that no kind of file holds",
    },
    "analysis/network_cycles.py": {
        "plotting.frame.sheets": "draws cycles under a diagram, of no kind of file",
        "plotting.frame.style": "draws cycles under a diagram, of no kind of file",
    },
    "analysis/one_shot_numbers.py": {
        "plotting.learning.one_shot": "prints the numbers behind a figure",
        "plotting.learning.pruning": "prints the numbers behind a figure",
    },
    "analysis/response_and_fluctuation.py": {
        "plotting.frame.sheets": "draws spectra that no kind of file holds",
        "plotting.frame.style": "draws spectra that no kind of file holds",
    },
    "analysis/running_lyapunov.py": {
        "studies.network.models": "records what no kind of study does",
    },
    "analysis/transformer_heads.py": {
        "plotting.frame.sheets": "draws correlations that no kind of file holds",
        "plotting.frame.style": "draws correlations that no kind of file holds",
    },
    "statmech_attn/explore/views/overlays.py": {
        "plotting.dynamics.basins": "draws over a scan what the figure draws",
        "plotting.dynamics.continuation": "draws over a scan what the figure draws",
    },
}

# What writes files without `storage.replaced`, each with its reason.
WRITERS = {
    "cli/terminal/progress.py": "appends to a log",
    "explore/views/pictures.py": "draws into memory",
    "explore/result_files/private_files.py": "makes files of mode 0600 where none was",
    "explore/result_files/pyramid.py": "its caller puts the file into place",
    "presentation.py": "draws into memory",
    "kept_files.py": "makes a file of mode 0600 where none was",
    "scan/chunks/chunk_file.py": "keeps the chunk that another process has written",
    "scan/chunks/folder.py": "keeps the file that another process has written",
    "storage/writers/streaming.py": "writes to the handle of a part of `replaced`",
}
WRITING = {"write_text", "write_bytes", "savez", "savez_compressed", "savefig"}
WRITING |= {"to_csv", "to_netcdf", "to_zarr"}
OPENING = {"open", "fdopen", "File"}  # with a mode that is no "r"


class Import(NamedTuple):
    """A file, what it takes (the dotted path of a module), and a name in that."""

    file: str
    room: str  # package or module of the house that the file is in
    module: str
    name: str


def room_of(module: str) -> str:
    """Package or module of the house that a dotted path leads into."""
    return (module.split(".") + [""])[1]


def house() -> Iterator[Path]:
    return (ROOT / HOUSE).rglob("*.py")


def scripts() -> Iterator[Path]:
    for folder in ("analysis", "simulations", "paper_figs"):
        yield from (ROOT / folder).rglob("*.py")


def faces() -> dict[str, set[str]]:
    """What every package offers, by its dotted path."""
    found = {}
    for path in (ROOT / HOUSE).rglob("__init__.py"):
        package = ".".join(path.parent.relative_to(ROOT).parts)
        if "lazy.attach" in (text := path.read_text()):
            found[package] = set(lazy.sources(text, package))
    return found


FACES = faces()


@functools.cache
def imports(path: Path) -> list[Import]:
    """What a file imports from the house, and takes from packages that it imports."""
    return [*_imports(path)]


def _imports(path: Path) -> Iterator[Import]:
    tree, file = ast.parse(path.read_text()), path.relative_to(ROOT)
    room = file.with_suffix("").parts[1] if file.parts[0] == HOUSE else ""
    packages = {}  # by the name that the file gives them
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = node.module or ""
            assert not node.level, f"{file}: imports are absolute"
            if module.split(".")[0] != HOUSE:
                continue
            for alias in node.names:
                yield Import(str(file), room, module, alias.name)
                if f"{module}.{alias.name}" in FACES:
                    packages[alias.asname or alias.name] = f"{module}.{alias.name}"
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] == HOUSE and alias.name != HOUSE:
                    module, _, name = alias.name.rpartition(".")
                    yield Import(str(file), room, module, name)
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in packages:
                yield Import(str(file), room, packages[node.value.id], node.attr)


def past_a_face(taken: Import) -> bool:
    """Whether another package does not offer what is taken from it."""
    if taken.module == HOUSE or room_of(taken.module) == taken.room:
        return False
    if (ROOT / HOUSE / f"{room_of(taken.module)}.py").exists():
        return False
    return taken.name not in FACES.get(taken.module, ())


def allowed(taken: Import) -> set[tuple[str, str]]:
    """Entries of `ALLOWED` that an import past a face is named by."""
    modules = (taken.module, f"{taken.module}.{taken.name}")
    rooms = (module.removeprefix(f"{HOUSE}.") for module in modules)
    return {(taken.file, room) for room in rooms if room in ALLOWED.get(taken.file, ())}


def test_no_import_goes_past_a_face():
    every = [taken for path in (*house(), *scripts()) for taken in imports(path)]
    past = [taken for taken in every if past_a_face(taken)]
    assert len(every) > 1000
    assert not [taken for taken in past if not allowed(taken)]
    entries = {(file, room) for file, rooms in ALLOWED.items() for room in rooms}
    assert entries == set().union(*map(allowed, past)), "an entry is not needed"


def test_no_import_runs_upwards():
    upwards = []
    for path in house():
        for taken in imports(path):
            if not taken.room or taken.room == "__init__":
                continue
            target = taken.name if taken.module == HOUSE else room_of(taken.module)
            if target not in FLOORS:
                assert target == "__version__", taken
            elif FLOORS.index(target) > FLOORS.index(taken.room):
                upwards.append(taken)
    assert not upwards


def test_files_import_in_no_circle():
    dotted = lambda path: ".".join(path.relative_to(ROOT).with_suffix("").parts)
    files = {dotted(path): path for path in house() if path.name != "__init__.py"}
    taken = lambda path: {
        name
        for one in imports(path)
        for name in (one.module, f"{one.module}.{one.name}")
        if name in files
    }
    graph = graphlib.TopologicalSorter({n: taken(p) - {n} for n, p in files.items()})
    graph.prepare()  # raises an error that names the circle
    assert sum(len(taken(path)) for path in files.values()) > 1000


def test_folders_hold_twelve_modules_at_most():
    folders = Counter(p.parent for p in house() if p.name != "__init__.py")
    large = {str(path): n for path, n in folders.items() if n > 12}
    assert not large


def test_every_room_has_its_floor():
    names = {path.name.removesuffix(".py") for path in (ROOT / HOUSE).iterdir()}
    rooms = {name for name in names if name[0] != "_"}
    assert rooms - {"py.typed"} == set(FLOORS)


@pytest.mark.parametrize("package", sorted(FACES))
def test_type_checkers_see_what_a_package_offers_to_users(package):
    """By `import A as A`; a plain import is private (PEP 484), for other packages."""
    text = ROOT.joinpath(*package.split("."), "__init__.py").read_text()
    names = [
        x for node in ast.walk(ast.parse(text)) for x in getattr(node, "names", ())
    ]
    offered = {alias.name for alias in names if alias.asname == alias.name}
    assert offered == set(lazy.sources(text, package, public=True))


def writes(call: ast.Call) -> bool:
    """Whether a call opens a file to write, or writes one, outside `replaced`."""
    name = getattr(call.func, "attr", "") or getattr(call.func, "id", "")
    if name in OPENING:
        values = [a.value for a in call.args[:2] if isinstance(a, ast.Constant)]
        modes = [x for x in values if isinstance(x, str) and len(x) < 4]
        return any(mode[:1] in ("w", "a", "x") for mode in modes)
    if name not in WRITING:
        return False
    place = map(ast.unparse, [*call.args, call.func])
    return not {"storage.write_text", "write_text"} & {*place}


def inside(tree: ast.AST, manager: str) -> set[ast.AST]:
    """What is within a `with` statement of a context manager, its items included."""
    blocks = [node for node in ast.walk(tree) if isinstance(node, ast.With)]
    named = lambda block: any(
        ast.unparse(item.context_expr).startswith(manager) for item in block.items
    )
    return {node for block in blocks if named(block) for node in ast.walk(block)}


def test_one_writer_writes_files():
    found = set()
    for path in house():
        tree = ast.parse(path.read_text())
        calls = (n for n in ast.walk(tree) if isinstance(n, ast.Call))
        unsafe = {call for call in calls if writes(call)}
        for manager in ("replaced(", "storage.replaced(") if unsafe else ():
            unsafe -= inside(tree, manager)
        if unsafe:
            found.add(str(path.relative_to(ROOT / HOUSE)))
    assert found == {*WRITERS}
