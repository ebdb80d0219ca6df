import functools
import gc
import importlib.util
import itertools
import os
import pathlib
import sys
from types import ModuleType

import jax
import jaxtyping
import pytest
from jax._src.interpreters import mlir


jax.config.update("jax_enable_x64", True)

# Annotations are checked at run time in these packages, shapes included; an int is
# taken for a float.  Left out: `studies`, whose tables annotate methods with `Self`,
# which beartype takes in decorated classes only; `scan`, whose protocols cannot be
# checked, and other packages without shapes; `dynamics.continuation`, where a size such
# as n+1 stands before n; modules that take lists and numpy numbers for arrays and ints.
jaxtyping.install_import_hook(
    [
        f"statmech_attn.{package}"
        for package in (
            "batches",
            "bpkr",
            "comparison",
            "dmft",
            "dynamics.attractors.basin_borders",
            "dynamics.motion.classification",
            "dynamics.exponents.covariant_vectors",
            "dynamics.motion.chaos_tests",
            "dynamics.exponents.finite_time",
            "dynamics.attractors.matching",
            "dynamics.motion.phases",
            "dynamics.motion.rotation",
            "dynamics.motion.spectra",
            "dynamics.motion.timeseries",
            "dynamics.attractors.transients",
            "dynamics.unstable_cycles",
            "montecarlo",
            "statistics",
            "storage",
            "tasks",
            "training",
        )
    ],
    "beartype.beartype(conf=beartype.BeartypeConf(is_pep484_tower=True))",
)

from statmech_attn.batches import runtime  # noqa: E402  after the hook


runtime.compile_quickly()


def share_contexts(programs: int = 100) -> None:
    """Let so many programs in turn be lowered in one MLIR context.

    JAX makes a context for each, which takes 6 ms: a third of the time of a program
    that is in the store.  Constants of programs stay as long as their context.
    """
    make, numbers = mlir.make_ir_context, itertools.count()
    context = functools.lru_cache(maxsize=1)(lambda turn: make())
    mlir.make_ir_context = lambda: context(next(numbers) // programs)


share_contexts()

IMAGES = ("omniglot", "mnist", "fashion_mnist")
collect_ignore = ["dmft/floquet.py"]  # a program that needs mpmath and is run by hand


def helper(name: str) -> ModuleType:
    """A module beside the tests, by its path from here."""
    path = pathlib.Path(__file__).parent / name
    specification = importlib.util.spec_from_file_location(path.stem, path)
    assert specification is not None and specification.loader is not None
    module = importlib.util.module_from_spec(specification)
    sys.modules[path.stem] = module
    specification.loader.exec_module(module)
    return module


_memory = helper("memory.py")
_slow_suite = helper("slow_suite.py")


def pytest_addoption(parser):
    group = parser.getgroup("slow suite")
    group.addoption("--part", help="run part k/n of the tests alone, as 3/7 (-m slow)")
    group.addoption(
        "--record", action="store_true", help="record the results of slow tests"
    )


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    """Examples that compile for long are slow; of all, the part that was asked for."""
    for item in items:
        if item.name in _slow_suite.EXAMPLES:
            item.add_marker(pytest.mark.slow)
    if (part := config.getoption("part")) is None:
        return
    tests = [item.nodeid for item in items if item.get_closest_marker("slow")]
    chosen = _slow_suite.chosen(tests, _slow_suite.read(), part)
    left_out = [item for item in items if item.nodeid not in chosen]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item.nodeid in chosen]


def pytest_collection_finish():
    """Search for garbage seldom, and not among the tests and modules that stay."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)


def pytest_runtest_setup(item):
    if item.get_closest_marker("one_generator") and not runtime.has_fused():
        pytest.skip("a study keeps to one width with this jaxlib")


def pytest_report_header(config):
    if part := config.getoption("part"):
        return f"slow suite: part {part}"
    return None


def pytest_configure(config):
    """Compiled programs are kept: most of the time of the tests went into making them.

    One folder serves all workers, the processes that tests begin, and later runs, also
    with the many small programs of what is computed operation by operation;
    with `-p no:cacheprovider` there is none.
    """
    if sys.platform == "linux":
        config.pluginmanager.register(_memory.Limit(), "memory-limit")
    config.pluginmanager.register(_slow_suite.Clock())
    if config.getoption("record") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_slow_suite.Recorder())
    if not config.pluginmanager.hasplugin("cacheprovider"):
        return
    folder = os.environ.setdefault(
        "JAX_COMPILATION_CACHE_DIR", str(config.cache.mkdir("jax"))
    )
    least = os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0")
    jax.config.update("jax_compilation_cache_dir", folder)
    jax.config.update("jax_persistent_cache_min_compile_time_secs", float(least))


@pytest.fixture(scope="session")
def published() -> pathlib.Path:
    """Folder of the published networks."""
    return pathlib.Path(__file__).parent / "data"


@pytest.fixture(scope="session")
def image_data() -> pathlib.Path:
    """Folder of real images; where there is none, tests on them are left out.

    $STATMECH_ATTN_DATA, or shared/data beside the checkout.
    """
    beside = pathlib.Path(__file__).resolve().parents[2] / "shared" / "data"
    folder = pathlib.Path(os.environ.get("STATMECH_ATTN_DATA", beside))
    lacking = [name for name in IMAGES if not (folder / name).is_dir()]
    if lacking:
        required = os.environ.get("STATMECH_ATTN_IMAGES") == "required"
        (pytest.fail if required else pytest.skip)(
            f"no images in {folder} ({', '.join(lacking)} missing): "
            "set STATMECH_ATTN_DATA to their folder."
        )
    return folder


@pytest.fixture(scope="session")
def histories() -> ModuleType:
    """The module tests/dmft/extensive/histories.py: sums over histories of a spin."""
    return helper("dmft/extensive/histories.py")


@pytest.fixture(scope="session")
def made_arrays() -> ModuleType:
    """The module tests/tasks/made_arrays.py, which makes files of arrays."""
    return helper("tasks/made_arrays.py")


@pytest.fixture(scope="session")
def made_images() -> ModuleType:
    """The module tests/tasks/made_images.py, which writes small image files."""
    return helper("tasks/made_images.py")


@pytest.fixture(scope="session")
def made_trained() -> ModuleType:
    """The module tests/studies/made_trained.py, which writes files of trainings."""
    return helper("studies/made_trained.py")


@pytest.fixture(scope="session")
def logistic_study() -> ModuleType:
    """The module tests/logistic_study.py, which writes a scan of the logistic map."""
    return helper("logistic_study.py")


@pytest.fixture(scope="session")
def memory() -> ModuleType:
    """The module tests/memory.py."""
    return _memory


@pytest.fixture(scope="session")
def slow_suite() -> ModuleType:
    """The module tests/slow_suite.py."""
    return _slow_suite


@pytest.fixture(scope="session")
def two_samples() -> ModuleType:
    """The module tests/two_samples.py: whether two samples have one law."""
    return helper("two_samples.py")


MAPPINGS = pathlib.Path("/proc/self/maps")
MANY_MAPPINGS = 40_000


def forget_compiled():
    jax.clear_caches()
    _memory.give_back()


@pytest.fixture(scope="module", autouse=True)
def keep_few_mappings():
    """Drop the compiled functions where they are many, once a module of tests is done.

    Each holds some 17 memory mappings, of which Linux allows a process 65530; at the
    limit LLVM crashes in the middle of a compilation.
    """
    yield
    if MAPPINGS.exists() and MAPPINGS.read_bytes().count(b"\n") > MANY_MAPPINGS:
        forget_compiled()


@pytest.fixture(autouse=True)
def keep_within_memory():
    """Drop them before the limit, to which each adds 2 MB."""
    yield
    if MAPPINGS.exists() and _memory.held() > 3 * _memory.LIMIT // 4:
        forget_compiled()


@pytest.fixture
def single_precision():
    """JAX as a new process finds it, until a command sets it up."""
    jax.config.update("jax_enable_x64", False)
    yield
    jax.config.update("jax_enable_x64", True)


@pytest.fixture
def unchecked(monkeypatch):
    """Annotations are not checked: what a function itself says of wrong arguments."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
