"""Small result files of every kind, with known content."""

import numpy as np
import pytest
import xarray as xr

from statmech_attn import bpkr, kinds
from statmech_attn.comparison import compare, VERDICTS
from statmech_attn.dynamics import CovariantVectors, PHASES, UnstableCycles, wilson
from statmech_attn.dynamics.along_parameter.hysteresis import intervals
from statmech_attn.dynamics.continuation import KINDS
from statmech_attn.dynamics.diagrams.refinement import Grid
from statmech_attn.dynamics.exponents.covariant_vectors import ALONG
from statmech_attn.labels import Variable, Variables


FOUND = ("fixed", "periodic", "quasiperiodic", "chaotic", "undetermined")


def table(kind: str):
    """Variables of a kind of file."""
    return kinds.KINDS.part(kinds.of_file(kind), "variables")


def made(kind: str, variables, coordinates=None, *rows, **attributes) -> xr.Dataset:
    """A file of a kind; the dimensions of each variable with blanks between them."""
    split = {name: (dims.split(), values) for name, (dims, values) in variables.items()}
    labels = Variables(table(kind), *rows)
    return labels.labelled(split, coordinates or {}).assign_attrs(
        kind=kind, **attributes
    )


@pytest.fixture
def scan() -> xr.Dataset:
    """One point of each of five phases; beta not in order."""
    rng = np.random.default_rng(2)
    n, k = len(FOUND), 3
    section = rng.uniform(-0.5, 0.5, (n, 6))
    section[0, 2:], section[3, 5] = np.nan, np.nan
    lyapunov = np.sort(rng.normal(-0.05, 0.1, (n, k)), axis=1)[:, ::-1]
    lyapunov[3, 0] = 0.3
    lyapunov[0, 2] = -np.inf
    phase = np.array([PHASES.index(name) for name in FOUND], np.int8)
    paper = np.array([1, 3, 2, 3, 3], np.int8)
    return made(
        "bifurcation",
        {
            "section": ("beta sample", section),
            "section_count": ("beta", np.isfinite(section).sum(1)),
            "strobe": ("beta strobe_sample", rng.uniform(-1, 1, (n, 4))),
            "lyapunov": ("beta exponent", lyapunov),
            "lyapunov_weighted": ("beta exponent", lyapunov),
            "lyapunov_stderr": ("beta exponent", np.full((n, k), 0.01)),
            "phase": ("beta", phase),
            "phase_paper": ("beta", paper),
            "period": ("beta", [4, 28, 0, 0, 0]),
        },
        {"beta": [1.0, 1.3, 1.2, 1.4, 1.1], "exponent": np.arange(1, k + 1)},
        section_tolerance=1e-3,
    )


@pytest.fixture
def produced(scan) -> xr.Dataset:
    """The scan with entropy production."""
    values = {"": [0.0, 0.2, 0.1, 0.3, 0.05], "_stderr": [0.0, 0.0, 0.0, 0.01, 0.0]}
    row = made(
        "bifurcation",
        {f"entropy_production{name}": ("beta", x) for name, x in values.items()},
        {"beta": scan.beta.values},
    )
    return scan.merge(row, combine_attrs="override")


@pytest.fixture
def responded() -> xr.Dataset:
    """Responses at two beta, a temperature of either sign; a third has none."""
    beta, frequency = np.array([1.0, 1.2, 1.3]), np.linspace(0.1, 3.0, 12)
    shape = len(beta), len(frequency), 5, 3
    over = "beta frequency observable pattern"
    values = np.broadcast_to(frequency[:, None, None], shape).copy()
    values[2] = np.nan
    return made(
        "response",
        {
            "susceptibility_real": (over, values),
            "susceptibility_imag": (over, -values),
            "spectrum": (over, values**2),
            "temperature": (over, values - 1),
            "period": ("beta", [4, 4, 0]),
            "multiplier": ("beta", [0.5, 0.9, np.nan]),
            "failure": ("beta", np.array([0, 0, 2], np.int8)),
        },
        {
            "beta": beta,
            "frequency": frequency,
            "observable": np.arange(5),
            "pattern": np.arange(1, 4),
        },
        field="v",
        field_pattern=1,
    )


def of_sizes(name, quantity, coordinates=(), **more) -> xr.Dataset:
    """Spins at a bifurcation for two N and three distances; one is out of limits."""
    n, distance, curve = [9999, 10**6], np.array([-1.0, 0.0, 1.0]), np.arange(5.0)
    each, shape = "n_spins distance", (2, 3)
    theory = np.full(shape, 0.5)
    theory[0, 2] = np.nan
    ones, powers = np.ones(shape), np.array([[1.0, np.nan], [0.1, 0.3]])
    sizes = {"": powers, "_stderr": 0.1 * powers, "_theory": powers}
    values = {
        f"scaled_{name}": (each, ones),
        f"scaled_{name}_stderr": (each, 0.1 * ones),
        f"{name}_theory": (each, theory),
        "scaled_beta": ("distance", distance),
        "curve_beta": ("curve", curve - 2),
        "curve_theory": ("curve", 1 + curve / 9),
        **{f"size{x}": ("n_spins quantity", y) for x, y in sizes.items()},
        "exponent": ("quantity", [-0.26, np.nan]),
        "exponent_stderr": ("quantity", [0.01, np.nan]),
        "exponent_theory": ("quantity", [-0.25, -0.5]),
    }
    places = {"n_spins": n, "distance": distance, "quantity": quantity}
    attributes = {"beta_c": 1.24, "runs": 8, "context": 4}
    places |= dict(coordinates)
    return made("finite-size", values | more, places, **attributes)


@pytest.fixture
def critical() -> xr.Dataset:
    """Amplitudes at a doubling, whose rounding has no exponent."""
    amplitude, shape = np.linspace(-1, 1, 4), (2, 3, 4)
    over = "n_spins distance amplitude"
    return of_sizes(
        "mean_square",
        [0, 2],
        {"amplitude": amplitude},
        density=(over, np.ones(shape)),
        density_stderr=(over, np.full(shape, 0.1)),
        curve_amplitude=("curve", np.linspace(-1, 1, 5)),
        curve_density=("curve", np.ones(5)),
    ).assign_attrs(bifurcation="period_doubling")


@pytest.fixture
def passing() -> xr.Dataset:
    """Times at a fold."""
    return of_sizes("passage_time", [1, 2]).assign_attrs(bifurcation="fold")


@pytest.fixture
def branches() -> xr.Dataset:
    """A cycle that doubles at beta = 1.2 and turns at 1.35; a curve of both kinds."""
    length = np.linspace(0, 1, 6)
    beta = np.array([1.0, 1.1, 1.18, 1.25, 1.3, 1.2])
    doubled = np.array([1.21, 1.25, 1.3, np.nan, np.nan, np.nan])
    strobe = np.full((2, 6, 2), np.nan)
    strobe[0, :, 0] = length / 5
    strobe[1, :3] = np.array([[0.1, 0.11], [0.08, 0.13], [0.05, 0.16]])
    kinds = [KINDS.index(name) for name in ("period_doubling", "fold")]
    curve = np.linspace(0.9, 1.5, 5)
    return made(
        "continuation",
        {
            "beta": ("branch point", np.stack([beta, doubled])),
            "arclength": ("branch point", np.stack([length, length])),
            "n_unstable": ("branch point", [[0, 0, 0, 1, 1, 2], [0] * 6]),
            "strobe": ("branch point strobe_sample", strobe),
            "branch_period": ("branch", [4, 8]),
            "branch_result": ("branch end", np.array([[2, 4], [3, 2]], np.int8)),
            "special_kind": ("special", np.array(kinds, np.int8)),
            "special_branch": ("special", [0, 0]),
            "special_beta": ("special", [1.2, 1.35]),
            "special_arclength": ("special", [0.5, 0.9]),
            "special_period": ("special", [4, 4]),
            "special_coefficient": ("special", [-2.0, 1.5]),
            "special_criticality": ("special", np.array([2, 0], np.int8)),
            "special_rotation": ("special", [np.nan, np.nan]),
            "special_strobe": ("special strobe_sample", [[0.1, np.nan]] * 2),
            "curve_kind": ("curve", np.array(kinds, np.int8)),
            "curve_origin": ("curve", [0, 1]),
            "curve_beta": ("curve curve_point", np.stack([curve, curve + 0.1])),
            "curve_gamma": ("curve curve_point", 100 * np.stack([curve, curve])),
            "curve_coefficient": (
                "curve curve_point",
                [[2.0, 1.0, -1.0, -2.0, -3.0]] * 2,
            ),
            "curve_rotation": ("curve curve_point", np.full((2, 5), np.nan)),
            "degenerate_kind": ("degenerate", np.array([0, 3], np.int8)),
            "degenerate_curve": ("degenerate", [1, 0]),
            "degenerate_beta": ("degenerate", [1.2, 1.1]),
            "degenerate_gamma": ("degenerate", [110.0, 120.0]),
            "degenerate_rotation": ("degenerate", [np.nan, np.nan]),
        },
        {},
        free="beta",
        second="gamma",
    )


@pytest.fixture
def plane() -> xr.Dataset:
    """A scan of 4 x 3 points in beta and gamma; chaotic above beta = 1.2 only."""
    beta, gamma = np.array([1.0, 1.1, 1.3, 1.4]), np.array([50.0, 100.0, 150.0])
    over = "beta gamma"
    largest = np.broadcast_to((beta - 1.2)[:, None], (4, 3))
    phase = np.where(largest > 0, PHASES.index("chaotic"), PHASES.index("fixed"))
    phase[3, 0] = PHASES.index("periodic")
    return made(
        "bifurcation",
        {
            "section": (f"{over} sample", np.zeros((4, 3, 1))),
            "section_count": (over, np.ones((4, 3), int)),
            "strobe": (f"{over} strobe_sample", np.zeros((4, 3, 1))),
            "lyapunov": (f"{over} exponent", largest[..., None]),
            "phase": (over, phase.astype(np.int8)),
            "entropy_production": (over, np.maximum(largest, 0.0)),
            "entropy_production_stderr": (over, 0.0 * largest),
        },
        {"beta": beta, "gamma": gamma, "exponent": [1]},
        section_tolerance=1e-3,
    )


@pytest.fixture
def refined_plane(plane) -> xr.Dataset:
    """A refined file with the centre of one of two coarse cells, chaotic like them."""
    grid = Grid((3, 2), 1)
    index = np.concatenate([grid.coarse(), [[1, 1]]])
    beta, gamma = np.linspace(1.0, 1.4, 5), np.linspace(50.0, 150.0, 3)
    largest = beta[index[:, 0]] - 1.25
    phase = np.where(largest > 0, PHASES.index("chaotic"), PHASES.index("fixed"))
    zeros = np.zeros((len(index), 1))
    found = made(
        "bifurcation",
        {
            "section": ("point sample", zeros),
            "section_count": ("point", np.ones(len(index), int)),
            "strobe": ("point strobe_sample", zeros),
            "lyapunov": ("point exponent", largest[:, None]),
            "phase": ("point", phase.astype(np.int8)),
        },
        {"exponent": [1], "beta_grid": beta, "gamma_grid": gamma},
    )
    for name, axis, column in (("beta", beta, 0), ("gamma", gamma, 1)):
        labels = table("bifurcation").attributes
        place = ("point", index[:, column], labels(f"{name}_index"))
        value = ("point", axis[index[:, column]], labels(name))
        found = found.assign_coords({f"{name}_index": place, name: value})
    return found.assign_attrs(plane.attrs | {"refine": 1})


@pytest.fixture
def boundary() -> xr.Dataset:
    """A curve of Neimark-Sacker points in beta and gamma, as a continuation has it."""
    over = ("curve", "curve_point")
    curve = {
        "curve_kind": ("curve", np.array([0], np.int8)),
        "curve_origin": ("curve", np.array([0])),
        "special_period": ("special", np.array([4])),
        "curve_beta": (over, [[1.1, 1.15, 1.2]]),
        "curve_gamma": (over, [[50.0, 100.0, 150.0]]),
        "curve_coefficient": (over, [[-1.0, -1.0, 1.0]]),
    }
    found = xr.Dataset(curve, attrs={"free": "beta", "second": "gamma"})
    found.curve_kind.attrs["flag_meanings"] = "neimark_sacker fold"
    return found


@pytest.fixture
def orbits() -> xr.Dataset:
    """Two periodic orbits, of periods 10 and 25, in three patterns."""
    t = np.arange(1000)
    angle = 2 * np.pi * t[None, :, None] / np.array([10, 25])[:, None, None]
    shift = np.array([0.0, 0.5, 1.0])
    A = 0.3 * np.cos(angle + shift)
    coordinates = {"beta": [1.2, 1.3], "time": t, "pattern": [1, 2, 3]}
    over = "beta time pattern"
    variables = {"A": (over, A), "m_o_se": (over, 0.5 * np.cos(angle - shift))}
    return made("trajectory", variables, coordinates)


@pytest.fixture
def measured() -> xr.Dataset:
    """Running averages and phases of the orbits."""
    ends = 100 * np.arange(1, 9)
    last = np.array([[0.1, -0.2], [-0.05, -0.05]])
    running = last[:, None, :] * (1 + 10 / ends[None, :, None])
    labels = table("running-lyapunov").attributes("lyapunov_running")
    over = "beta exponent"
    dataset = made(
        "running-lyapunov",
        {
            "lyapunov": (over, last),
            "lyapunov_weighted": (over, last),
            "lyapunov_stderr": (over, np.full((2, 2), 0.004)),
            "phase": ("beta", np.array([3, 1], np.int8)),
            "period": ("beta", [0, 28]),
        },
        {"beta": [1.2, 1.3], "exponent": [1, 2]},
    )
    dataset["lyapunov_running"] = ("beta", "block", "exponent"), running, labels
    return dataset.assign_coords(block_end=("block", ends))


@pytest.fixture
def theory(orbits) -> xr.Dataset:
    """The orbits with a linear-noise spread of 3 at N = 1."""
    noise = {f"{x}_noise_std": xr.full_like(orbits[x], 3.0) for x in ("A", "m_o_se")}
    return orbits.assign(noise)


@pytest.fixture
def simulation(orbits) -> xr.Dataset:
    """Means off by 5/N and spreads of 3/sqrt(N) at N = 900 and 90 000."""
    n = xr.DataArray(
        [900.0, 90_000.0], dims="n_spins", coords={"n_spins": [900, 90_000]}
    )
    variables = {}
    for name in ("A", "m_o_se"):
        mean = (orbits[name] + 5 / n).transpose("n_spins", "beta", "time", "pattern")
        variables[f"{name}_mean"] = mean
        variables[f"{name}_spread"] = xr.zeros_like(mean) + 3 / np.sqrt(n)
        variables[name] = mean.expand_dims(run=[0])
    dataset = xr.Dataset(variables).assign_coords(all_runs=np.arange(100))
    return dataset.assign_attrs(kind="monte-carlo", runs=100)


@pytest.fixture
def agreeing(simulation) -> xr.Dataset:
    """The comparison of those: z = (5/N) / (3 / sqrt(100 N)), spread ratio 1."""
    n = simulation.n_spins.astype(float)
    like = xr.zeros_like(simulation.A_mean)
    everywhere = (like.isel(pattern=0, drop=True) == 0).astype(bool)
    z = like + 5 / n / (3 / np.sqrt(100 * n))
    return xr.Dataset(
        {
            "A_z": z,
            "A_spread_ratio": like + 1.0,
            "A_bias_slope": ("beta", [-1.0, -1.0]),
            "linear": everywhere,
            "judged": everywhere.any("n_spins"),
            "threshold": 5.0,
            "limit_threshold": 4.0,
            "largest_z": z.max(["time", "pattern"]),
            "largest_limit_z": ("beta", [0.5, 1.5]),
            "verdict": ("beta", [VERDICTS.index(x) for x in ("agrees", "bias_only")]),
        },
        attrs={"kind": "comparison", "runs": 100},
    )


@pytest.fixture
def basins() -> xr.Dataset:
    """Three beta: periods 28 and 32; 44 alone; nobody settles.  beta not in order."""
    rng = np.random.default_rng(8)
    count = np.array([[77, 11], [88, 0], [0, 0]])
    low, high = wilson(count, 88)
    lifetime = rng.geometric([[1e-3], [1e-4], [1e-3]], (3, 88))
    ended = np.array([True, True, False])[:, None] & np.ones((3, 88), bool)
    lifetime[2] = 100_000
    label = np.array([[0] * 77 + [1] * 11, [0] * 88, [-1] * 88])
    over, each = "beta slot", "beta start"
    return made(
        "basins",
        {
            "count": (over, count),
            "fraction": (over, count / 88),
            "fraction_low": (over, low),
            "fraction_high": (over, high),
            "count_unsettled": ("beta", [0, 0, 88]),
            "count_diverged": ("beta", [0, 0, 0]),
            "attractor": (over, [[1, 2], [0, -1], [-1, -1]]),
            "phase": (over, np.array([[1, 1], [1, -1], [-1, -1]], np.int8)),
            "period": (over, [[28, 32], [44, 0], [0, 0]]),
            "label": (each, label),
            "lifetime": (each, lifetime),
            "lifetime_ended": (each, ended),
            "escape_rate": ("beta", [1e-3, 1e-4, np.nan]),
            "escape_rate_stderr": ("beta", [1e-4, 1e-5, np.nan]),
            "escape_after": ("beta", [0.0, 100.0, 0.0]),
        },
        {"beta": [1.27, 1.26, 1.28], "slot": [1, 2], "start": np.arange(1, 89)},
    )


@pytest.fixture
def both_ways(scan):
    """The scan once more, as if it had been followed upward and downward."""
    several = [str(name) for name in scan if "beta" in scan[name].dims]
    twice = xr.concat([scan[several]] * 2, "start").sortby("beta")
    return twice.assign_attrs(scan.attrs | {"network": "of the test"})


@pytest.fixture
def swept() -> xr.Dataset:
    """Two sweeps that differ at the second and third of four values."""
    beta = np.array([0.1, 0.2, 0.3, 0.4])
    differ = np.array([False, True, True, False])
    up = np.broadcast_to(beta[:, None], (4, 5))
    over = "beta strobe_sample"
    beta_row = Variable("beta", "", "inverse temperature", "1", "β")
    return made(
        "hysteresis",
        {
            "strobe_up": (over, up),
            "strobe_down": (over, up + differ[:, None]),
            "distance": ("beta", differ.astype(float)),
            "differ": ("beta", differ),
            "interval": ("number edge", intervals(beta, differ)),
        },
        {"beta": beta, "number": [1]},
        beta_row,
    )


@pytest.fixture
def selected() -> xr.Dataset:
    """Two widths at three temperatures; the narrow one has no evidence."""
    over = "width temperature"
    evidence = np.array([[np.nan] * 3, [-40.0, -31.0, -36.0]])
    error = np.array([[0.9, 0.5, 0.8], [1.1, 0.6, 0.7]])
    return made(
        "model-selection",
        {
            "log_evidence": (over, evidence),
            "log_evidence_stderr": (over, np.full((2, 3), np.nan)),
            "error": (over, error),
            "error_stderr": (over, 0.1 * error),
            "chosen_width": ("choice", [50.0, 5.0]),
            "chosen_temperature": ("choice", [0.1, 0.1]),
            "excess": ("", 0.1),
            "excess_stderr": ("", 0.03),
            "rank_correlation": ("", 0.5),
        },
        {
            "width": [5.0, 50.0],
            "temperature": [0.01, 0.1, 1.0],
            "choice": ["evidence", "validation"],
        },
    )


@pytest.fixture
def scored() -> xr.Dataset:
    """Scores of three heads and a skip connection, with floors and trained weights."""
    names = ["skip 1", "1.1", "1.2", "2.1"]
    score = np.array([0.4, 0.2, 1.0, 0.7])
    pair, paths = np.outer(score, score), np.eye(3)
    head, path = "attention_head", "path_1"
    return made(
        "head-scores",
        {
            "head_score": (head, score),
            "head_score_stderr": (head, [0.05, 0.02, 0.1, np.nan]),
            "head_score_floor": (head, [0.3, 0.6, 0.6, 0.5]),
            "head_score_trained": (head, score[::-1]),
            "U_by_head": (f"{head} {head}_pair", pair),
            "U_1": (f"{path} {path}_pair", paths),
            "temperature": ("", 0.1),
            "width": ("layer", [10.0, 10.0, 20.0]),
        },
        {head: names, f"{head}_pair": names},
    )


@pytest.fixture
def ablated() -> xr.Dataset:
    """Losses without heads, of which two replace each other and one says nothing."""
    examples = 1 + 0.2 * np.arange(5.0)

    def loss(gates):
        (first, second), (third,) = gates
        return (2.0 - np.maximum(first, second) - 0.3 * third) * examples

    none = lambda gates: [np.zeros((5, 2)), np.full((5, 1), -0.3)]
    with pytest.warns(UserWarning, match=r"without 1\.1, 1\.2"):
        return bpkr.ablate(
            loss, (2, 1), gradient=none, pairs=True, greedy=True
        ).to_dataset()


@pytest.fixture
def directed() -> xr.Dataset:
    """Covariant vectors of 400 states on a circle, every fourth of which is kept."""
    random = np.random.default_rng(0)
    turn = np.linspace(0, 2 * np.pi, 100)
    circle = np.stack([np.cos(turn), np.sin(turn)], axis=1)
    vectors = np.stack([circle, circle[:, ::-1]], axis=2)
    exponents = np.array([0.4, -1.6])
    angles = random.uniform(0.001, np.pi / 2, 400)
    return CovariantVectors(
        exponents, 0.01 + 0 * exponents, angles, circle, vectors, split=1, piece=4
    ).to_dataset()


@pytest.fixture
def cyclic() -> xr.Dataset:
    """A fixed point, and a cycle of two steps, of a map of two coordinates."""
    points = np.array([[[0.6, 0.2], [np.nan, np.nan]], [[0.9, -0.1], [-0.4, 0.3]]])
    exponents = np.array([[0.6, -1.8], [0.5, -1.7]])
    return UnstableCycles(
        length=np.array([1, 2]),
        points=points,
        exponents=exponents,
        stderr=1e-12 + 0 * exponents,
        signs=np.array([[-1, 1], [-1, -1]]),
        hits=np.array([30, 10]),
        distance=np.array([0.01, 0.02]),
        outcomes=np.array([[30, 0, 2, 0], [10, 18, 3, 1]]),
    ).to_dataset()


@pytest.fixture
def along_angles() -> xr.Dataset:
    """Covariant vectors at three values of a parameter, the first one of a cycle."""
    a, angle = np.array([1.0, 1.2, 1.4]), np.array([np.nan, 1e-4, 1e-3])
    contents = {
        "covariant_exponent": (("a", "exponent"), np.array([[-0.2, -1.0]] * 3)),
        "smallest_angle": (("a",), angle),
        "angle_quantile": (("a", "share"), np.outer(angle, [2.0, 10.0, 100.0])),
    }
    contents["covariant_exponent"][1][1:, 0] = 0.3
    rows = (row.in_steps("kick") for row in ALONG)
    labels = Variables(*rows, Variable("a", "", "bend", "1", "a"))
    about = {"kind": "covariant-diagram", "parameter": "a", "unit": "kick"}
    places = {"a": a, "share": np.array([0.01, 0.1, 0.5])}
    return labels.labelled(contents, places).assign_attrs(about | {"system": "henon"})


@pytest.fixture
def on_plane() -> xr.Dataset:
    """Basins of a cycle of two points and of a set that does not recur, and others."""
    x, y = np.linspace(-1, 1, 40), np.linspace(0, 2, 30)
    basin = np.where(x < 0, 0, 1) * np.ones((30, 1), int)
    basin[:3], basin[-2:, :5] = -1, -2
    contents = {
        "basin": ("y x", basin),
        "arrival_time": ("y x", np.where(basin < 0, -1, 8)),
        "fraction": ("attractor", np.array([0.45, 0.4])),
        "kind": ("attractor", np.array([0, 2], np.int8)),
        "period": ("attractor", np.array([2, 0])),
        "points": (
            "attractor point observable",
            np.array([[[-0.5, 0.7], [-0.2, 1.2]], [[0.4, 0.9], [0.5, 1.1]]]),
        ),
    }
    about = {"system": "two_wells", "along": np.array([0, 1])}
    return made("plane-basins", contents, {"x": x, "y": y}, **about)


WIDTHS = np.array([10.0, 100.0, 1000.0])
PATHS = ["1-1", "1-2", "2-1", "2-2"]
PAIR = "width path_1 path_1_pair"


def learning_file(variables, **attributes):
    coordinates = {"width": WIDTHS, "path_1": PATHS, "path_1_pair": PATHS}
    about = {"task": "{}", "prior": "[]"} | attributes
    temperature = (), 0.1, table(about["kind"]).attributes("temperature")
    file = made(variables=variables, coordinates=coordinates, **about)
    return file.assign_coords(temperature=temperature)


def learned_U():
    U = np.eye(4) + np.diag([4.0, 0.0, 2.0, -0.5]) * 10 / WIDTHS[:, None, None]
    U[:, 0, 2] = U[:, 2, 0] = -20 / WIDTHS
    return U


@pytest.fixture
def learned():
    """Order parameters at three widths: path 2-1 is the good one's best partner."""
    overlap = np.random.default_rng(0).uniform(size=(3, 40))
    kernels = np.random.default_rng(1).normal(size=(9, 60, 60))
    accuracy_gp = np.full((4, 4), 0.6)
    accuracy_gp[0] = accuracy_gp[:, 0] = [0.9, 0.7, 0.95, 0.8]
    mean = np.full((3, 5), 0.5)
    return learning_file(
        {
            "U_1": (PAIR, learned_U()),
            "U_a": ("width", np.ones(3)),
            "accuracy": ("width", [0.96, 0.9, 0.85]),
            "accuracy_corrected": ("width", [0.95, 0.9, 0.85]),
            "U_1_corrected": (PAIR, learned_U() + 1 / WIDTHS[:, None, None]),
            "U_a_corrected": ("width", np.ones(3)),
            "predictor_mean": ("width test", mean),
            "predictor_variance": ("width test", mean),
            "predictor_variance_corrected": ("width test", mean),
            "predictor_mean_corrected": ("width test", mean),
            "accuracy_gp": ("", 0.84),
            "accuracy_gp_pair": ("path_1 path_1_pair", accuracy_gp),
            "kernel_overlap": ("width rank", overlap),
            "kernel_overlap_gp": ("rank", overlap[0] / 2),
            "path_kernel": ("path_1 example example_pair", kernels[:4]),
            "kernel_gp": ("example example_pair", kernels[4]),
            "kernel": ("width example example_pair", kernels[5:8]),
        },
        kind="order-parameter",
        task='{"name": "hidden-markov"}',
    )


@pytest.fixture
def of_sets():
    """Accuracies at three widths on three test sets, by two choices of T."""
    draw, sets = np.random.default_rng(2).uniform, ["test", "far", "validation"]
    over = {"width": WIDTHS, "choice": ["validation", "published"], "test_set": sets}
    of_limit = ("choice", "test_set")
    at_end = np.array([[False, False], [False, True], [False, False]])
    return xr.Dataset(
        {
            "accuracy_sets": (
                ("width", "temperature", "test_set"),
                draw(size=(3, 2, 3)),
            ),
            "accuracy_chosen": (tuple(over), draw(0.5, 1, (3, 2, 3))),
            "accuracy_chosen_stderr": (tuple(over), draw(0.01, 0.1, (3, 2, 3))),
            "accuracy_chosen_gp": (of_limit, draw(0.5, 1, (2, 3))),
            "chosen_at_end": (("width", "choice"), at_end),
        },
        over | {"temperature": [0.1, 1.0]},
        {"kind": "order-parameter"},
    )


@pytest.fixture
def curve():
    """Errors of four estimates at four sizes, with a peak at P = 8."""
    error = np.outer([1.0, 0.8, 4.0, 0.3], [1.2, 1.0, 1.05, 0.9])
    over = "width examples estimate"
    of_set = np.stack([error] * 3)[None]
    error = error[None]
    result = np.zeros((1, 3, 4), np.int8)
    result[0, 1, 3] = 2  # no saddle point for the second set of 30 examples
    return made(
        "learning-curve",
        {
            "error": (over, error),
            "error_stderr": (over, 0.1 * error),
            "accuracy": (over, 1 / (1 + error)),
            "accuracy_stderr": (over, 0.01 * error),
            "variance": (over, 0.5 * error),
            "variance_stderr": (over, 0.05 * error),
            "error_of_set": ("width training_set examples estimate", of_set),
            "result": ("width training_set examples", result),
            "rank": ("", 8),
            "shared": ("", False),
        },
        {
            "examples": [2, 4, 8, 30],
            "estimate": ["gp", "saddle", "corrected", "exact"],
            "width": [10.0],
        },
    ).assign_coords(temperature=0.01)


@pytest.fixture
def sampled():
    """The exact law of the same, half a unit above the saddle point at N = 10."""
    U = learned_U() + 5 / WIDTHS[:, None, None]
    error = np.full(3, 0.01)
    return learning_file(
        {
            "U_1": (PAIR, U),
            "U_1_stderr": (PAIR, np.full(U.shape, 0.01)),
            "U_a": ("width", np.ones(3)),
            "U_a_stderr": ("width", error),
            "accuracy": ("width", [0.94, 0.9, 0.86]),
            "accuracy_stderr": ("width", error),
            "predictor_mean": ("width test", np.full((3, 5), 0.5)),
            "predictor_mean_stderr": ("width test", np.full((3, 5), 0.01)),
            "predictor_variance": ("width test", np.full((3, 5), 0.5)),
            "predictor_variance_stderr": ("width test", np.full((3, 5), 0.01)),
            "U_1_r_hat": (PAIR, np.ones(U.shape)),
            "U_1_n_eff": (PAIR, np.full(U.shape, 1000.0)),
        },
        kind="posterior",
        method="order-parameter",
        task='{"name": "hidden-markov"}',
    )


@pytest.fixture
def side_by_side(learned, sampled):
    return compare(learned, sampled)


@pytest.fixture
def indicated() -> xr.Dataset:
    """Two beta: a cycle and chaos."""
    bins = np.tile(np.linspace(-0.1, 0.3, 11), (2, 2, 1))
    time, over = np.arange(1, 51), "beta size"
    estimate = np.array([[0.1, 0.05, np.nan], [0.12, 0.13, 0.14]])
    names = ("lyapunov_rosenstein", "dimension_series", "sample_entropy")
    variables = {
        "finite_time_exponent": ("window beta bin", bins),
        "log_gali": ("alignment_time beta", -0.2 * np.outer(time, [0, 1])),
        "lyapunov": ("beta exponent", [[-0.05, -0.05], [0.14, -0.06]]),
    }
    for name in names:
        variables |= {name: (over, estimate), f"{name}_stderr": (over, 0.1 * estimate)}
    dataset = made(
        "chaos-indicators",
        variables,
        {"beta": [1.27, 1.28], "exponent": [1, 2], "alignment_time": time},
    )
    dataset["density"] = ("window", "beta", "bin"), np.exp(-((bins - 0.1) ** 2) / 0.01)
    dataset["window_steps"] = "window", [16, 64]
    dataset["n_spins"] = "size", [3e3, 3e6, np.inf]
    return dataset


def _loaded(kind: str, variables, **coordinates):
    """A file of patterns growing with N: two loads, six tokens, one pattern."""
    time = np.arange(6)
    coordinates |= {"time": time, "time_2": time, "age": [0, 1], "pattern": [1]}
    coordinates |= {"alpha": [0.1, 0.4]}
    fixed = {"beta": np.inf, "gamma": 2.0, "epsilon": 0.0}
    attributes = {"ensemble": "cycle", "context": 2, "samples": 20, "runs": 1}
    return made(kind, variables, coordinates, **attributes).assign_coords(fixed)


@pytest.fixture
def growing():
    """Overlaps that stay at one load and decay at the other."""
    time = np.arange(6)
    m = np.stack([np.ones(6), 0.5**time])[..., None]
    C = 0.8 ** abs(time[:, None] - time)
    over = "alpha time"
    weights = np.stack([np.full((2, 6), 0.6), np.full((2, 6), 0.4)], -1)
    variables = {
        "m_o_se": (f"{over} pattern", m),
        "m_o_se_error": (f"{over} pattern", 0 * m + 0.01),
        "A": (f"{over} pattern", m),
        "weights": (f"{over} age", weights),
        "noise_std": (over, np.stack([time + 1.0, time + 2.0]) / 10),
        "C": (f"{over} time_2", np.stack([C, C**3])),
        "trajectories": ("alpha", [0, 0]),
        "reached": ("alpha", [True, True]),
    }
    return _loaded("extensive", variables)


@pytest.fixture
def spins_of_growing(growing):
    """Spins of the same at two N, with means at the theory."""
    m = growing.m_o_se.values
    both = np.stack([m + 0.02, m + 0.01])
    over = "n_spins alpha time pattern"
    variables = {
        "m_o_se_mean": (over, both),
        "m_o_se_stderr": (over, 0 * both + 0.005),
        "m_o_se_spread": (over, 0 * both + 0.02),
    }
    return _loaded("extensive-simulation", variables, n_spins=[100, 400])


@pytest.fixture
def loads():
    """Capacities of two contexts at two temperatures and three gamma."""
    values = 0.2 + 0.01 * np.arange(12.0).reshape(2, 2, 3)
    over = "context beta gamma"
    return made(
        "capacity",
        {"capacity": (over, values), "capacity_error": (over, 0 * values + 1e-4)},
        {"context": [1, 2], "beta": [2.0, np.inf], "gamma": [0.0, 1.0, 4.0]},
        ensemble="cycle",
    )


@pytest.fixture
def growing_compared():
    """Differences of spins from the theory of two observables at two N."""
    over = ("n_spins", "observable", "alpha")
    row = kinds.of_file("comparison", {"observable"})
    sizes = np.array([0.2, 0.1])[:, None, None] * np.ones((2, 2, 2))
    variables = {
        "largest_z": (over, 20 * sizes),
        "rms_difference": (over, sizes / 10),
        "rms_spread": (over, sizes),
        "threshold": ((), 4.5),
        "verdict": (("alpha",), np.zeros(2, np.int8)),
    }
    coordinates = {"n_spins": [100, 400], "observable": ["m_o_se", "C"]}
    labelled = kinds.KINDS.part(row, "variables").labelled(
        variables, coordinates | {"alpha": [0.1, 0.4]}
    )
    attributes = {"ensemble": "cycle", "context": 2, "samples": 20}
    return labelled.assign_attrs(kind="comparison", **attributes)
