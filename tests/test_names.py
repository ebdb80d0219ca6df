"""Where the tests of a module are found: at its place, under its name.

`tests/storage/test_plain.py` tests `statmech_attn/storage/plain.py`; a file that is
named after its folder tests a whole package.  A subject of several modules, or of
something else than the library, is named here.
"""

from pathlib import Path


TESTS = Path(__file__).resolve().parent
LIBRARY = TESTS.parent / "statmech_attn"
SUBJECTS = {
    # documents, studies and scripts; the repository itself
    "analysis": "scripts of analysis/ and benchmarks/",
    "budget": "limits of lines and statements",
    "documents": "pages of docs/",
    "house": "floors and faces of packages",
    "mistakes": "what a user tries first",
    "names": "names of tests",
    "packaging": "source distribution and wheel",
    "readme": "README.md",
    "recipes": "docs/recipes.md",
    "snippets": "Python of docs/",
    "site": "docs/static/site.js",
    "tutorials": "docs/tutorials",
    "users": "docs/users.md, docs/transformer_heads.md",
    "scan/identities": "every computation of the library",
    "studies/demo": "analysis/demo.py",
    "studies/figures": "scripts of paper_figs/",
    "studies/figure_script": "paper_figs/script.py",
    "studies/kept_results": "paper_figs/results, images",
    "studies/million_points": "paper_figs/results, the plane",
    "studies/plugins": "docs/plugins.md",
    "studies/systems/shipped_systems": "simulations/systems",
    "studies/sweeps_side_by_side": "analysis/pe5_sweeps.py",
    "bpkr/ablation_in_pytorch": "docs/transformer_heads.md",
    "dynamics/block_weights": "layers of PyTorch, docs/systems.md",
    "dynamics/worked_examples": "examples of docs/",
    "validation/published": "numbers of other packages",
    # what the tests share
    "memory": "tests/memory.py",
    "slow_suite": "tests/slow_suite.py",
    "two_samples": "tests/two_samples.py",
    "dmft/floquet_cycles": "tests/dmft/floquet.json",
    # theories and simulations beside each other
    "cross/gpu": "a scan on a GPU beside the CPU",
    "cross/gpu_programs": "programs for a GPU where there is none",
    "cross/one_shot_theory": "saddle point, exact law and weights",
    "cross/published_attractors": "what coexists in the published network",
    "cross/sharding": "batches on several devices",
    "cross/theory_simulation": "theory beside simulation",
    # hostile and random input
    "fuzz/commands": "arguments of commands",
    "fuzz/data_files": "patterns, images and arrays",
    "fuzz/files": "result files",
    "fuzz/paths": "paths",
    "fuzz/resealed": "damage under a right checksum",
    "fuzz/studies": "study files",
    # one claim of several modules
    "bpkr/shared_sets": "errors of sets that share examples",
    "bpkr/skips": "networks with skip connections",
    "cli/destinations": "what a command may replace",
    "cli/learning": "learning by commands",
    "cli/new": "the command new",
    "cli/shells": "completion",
    "cli/slurm": "the command slurm",
    "cli/start": "what a command imports",
    "dmft/extensive/histories": "the law of whole histories",
    "dmft/long_context": "long contexts and many patterns",
    "dynamics/continuation/flows": "continuation of flows",
    "dynamics/continuation/network": "continuation of the network",
    "dynamics/indicators": "dimension, finite-time exponents, alignment",
    "explore/browser": "the page in a browser",
    "native/systems": "systems of the package and its examples",
    "plotting/figure_options": "options of the command figure",
    "plotting/own_systems": "pictures of one's own system",
    "studies/learning/training": "trainings of every task, by studies/learning/work.py",
    "scan/bits": "the same bits however a run is cut",
    "scan/devices": "devices, threads and memory",
    "scan/distributed": "the engine of Dask beside the local one",
    "scan/faults": "faults of chunks and points",
    "scan/faults_of_machines": "faults of file systems and machines",
    "scan/kills": "killed processes",
    "scan/kills_of_scans": "killed scans",
    "scan/times": "times that a file states",
    "slurm/cluster": "job arrays on SLURM",
    "slurm/script": "the script of a job array",
    "storage/conventions": "the CF conventions",
    "storage/crashes": "kills and full disks",
    "storage/refusals": "what is not stored or trusted",
    "storage/round_trip": "what is written is what is read",
    "studies/learning/arrays_options": "keys of the task arrays",
    "studies/chunks_of_kinds": "the same bits of every kind",
    "studies/point_lists": "studies of lists of points",
    "studies/files/inputs": "files that a study names",
    "studies/learning/learning_work": "the same bits of learning studies",
    "studies/one_shot/refusals": "impossible studies of trained networks",
    "studies/systems/own_systems": "studies of one's own system",
    "studies/network/redrawn": "the key redrawn",
    "studies/network/refinement": "refined scans",
    "studies/learning/several_sets": "several test sets",
}


def test_a_test_is_named_after_its_module_or_its_subject():
    def names_a_module(subject: Path) -> bool:
        module = LIBRARY / subject
        whole = subject.name == subject.parent.name and module.parent.is_dir()
        return whole or module.is_dir() or module.with_suffix(".py").exists()

    paths = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]
    subjects = [path.with_name(path.stem.removeprefix("test_")) for path in paths]
    others = {str(subject) for subject in subjects if not names_a_module(subject)}
    assert len(subjects) > 200
    assert others - SUBJECTS.keys() == set(), "neither a module nor a subject"
    assert SUBJECTS.keys() - others == set(), "no test, or one of a module"
