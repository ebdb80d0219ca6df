"""Continuation studies: branches of cycles, their bifurcations, curves of these.

A state is simulated at one value of the free parameter, Newton finds the cycle next to
it, and its branch is followed to both ends of the interval, stable or not; so are the
branches of the doubled cycles, and the special points in a second parameter
(docs/theory/continuation.md, docs/theory/two_parameters.md).
"""

import dataclasses
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from scipy.interpolate import CubicHermiteSpline

from statmech_attn import dmft
from statmech_attn.comparison import network_digest
from statmech_attn.dynamics import continuation, System
from statmech_attn.labels import Variables
from statmech_attn.scan import Arrays, Assembled, Chunk, OneRound, Results, Tick
from statmech_attn.studies import build, continuation_file, posed
from statmech_attn.studies.continuation_file import arrays, dataset, dimensions
from statmech_attn.studies.dmft_tables import ContinuationStudy
from statmech_attn.studies.posed import Coordinates, Windows
from statmech_attn.studies.system_tables import SystemContinuationStudy
from statmech_attn.studies.tables import Interval


SAME = 1e-6  # relative distance of points that are one
SAME_VALUE = 1e-9  # the same, of parameters
AMPLITUDE = 1e-3  # at which a doubled cycle is sought
SHRINK = (1.0, 0.2, 0.04)  # of amplitude and steps, one after another


class Track(NamedTuple):
    """A branch: its points along the arc, and why it ended before and after them."""

    problem: continuation.Problem
    points: list[continuation.BranchPoint]
    special: list[continuation.SpecialPoint]
    results: tuple[int, int]
    parent: int  # the special point on which it was born, -1 for the first one


class Line(NamedTuple):
    """A curve of critical cycles in two parameters, from the special point `origin`."""

    kind: str
    origin: int
    points: list[continuation.CriticalPoint]
    degenerate: list[continuation.CodimensionTwo]
    unresolved: list[str]
    results: tuple[int, int]


class Source(NamedTuple):
    """Whose cycles are followed: the network's, or those of a system of one's own.

    Attributes:
        values: of all parameters; that of the free one is where the cycle is sought.
        turn: the map over one period of the drive, of the ravelled state.
        steps: of that period.
        simulated: the ravelled state after the transient.
        strobe: problem and points -> what a diagram shows of their cycles, a turn
            apart.
        variables, attributes: of the file.
    """

    values: dict[str, float]
    turn: System
    steps: int
    simulated: Callable[[], Any]
    strobe: Callable[[continuation.Problem, Sequence], np.ndarray]
    variables: Variables
    attributes: Mapping[str, Any]


Study = ContinuationStudy | SystemContinuationStudy


class ContinuationWork(OneRound):
    """One point: the branches and curves of a study, a `scan.work.Work`.

    Every step along a branch needs the one before, and a curve is followed only where
    no earlier one passes, so that nothing of it could be computed side by side.

    Raises:
        ValueError: an impossible setting.
    """

    title = "continuation"
    batch = 1
    alone = True

    def __init__(self, study: Study):
        self.study = study
        ((self.free, self.bounds),) = study.free.items()
        self.second = study.curves.parameter if study.curves else ""
        of_system = isinstance(study, SystemContinuationStudy)
        self.source = _of_system(study) if of_system else _of_network(study)
        if study.curves is not None:
            _check_holds(study.curves, self.second, self.source.values[self.second])

    @property
    def total(self) -> int:
        return 1

    def rows(
        self, chunk: Chunk, payload: Any, tick: Tick, folder: Path | None
    ) -> Arrays:
        """The variables of the file, each with one row."""
        tracks, lines = self._followed(_in_points(tick, self.study.run.max_points))
        columns = arrays(
            self.source.strobe, self.source.steps, tracks, lines, self.second
        )
        return {name: x[None] for name, x in columns.items()}

    def not_finite(self, arrays: Arrays) -> np.ndarray:
        return np.isnan(arrays[self.free][:, 0, 0])

    def pilot(self) -> None:
        """How long a branch is shows when it has been followed."""
        return None

    def assemble(self, results: Results) -> Assembled:
        names = dimensions(self.free, self.second)
        columns = {name: results.column(name)[0] for name in names}
        source, table = self.source, self.source.variables
        labelled = dataset(table, columns, self.free, self.second)
        held = {n: v for n, v in source.values.items() if n != self.free}
        start = source.attributes["start"]
        place = f"{start}, at {self.free} = {source.values[self.free]!r}"
        return Assembled(
            labelled.assign_coords(
                {n: ((), v, table.attributes(n)) for n, v in held.items()}
            ).assign_attrs(
                {"second": self.second} if self.second else {},
                kind="continuation",
                free=self.free,
                clock_period=source.steps,
                **(dict(source.attributes) | {"start": place}),
            )
        )

    def _followed(self, tick: Tick) -> tuple[list[Track], list[Line]]:
        """The cycle, its doublings and the curves of its bifurcations."""
        options, values = self.study.run, self.source.values
        value = values[self.free]
        problem = continuation.Problem(
            self.source.turn, self.source.simulated(), values, self.free, options.period
        )
        x = problem.ravel(problem.template)
        x = _cycle(problem, x, value)
        settings = options.settings
        within = (self.bounds.start, self.bounds.stop)
        first = _both_ways(problem, x, value, within, settings, tick)
        tracks = list(_with_doublings(first, options.switch, within, settings, tick))
        return tracks, list(_lines(self.study, tracks, settings, tick))


def _in_points(tick: Tick, most: int) -> Tick:
    """Points of branches as parts of the one point of a study, never more than it."""
    left = 1.0

    def count(points: float) -> None:
        nonlocal left
        share = min(points / most, left)
        left -= share
        tick(share)

    return count


def _of_network(study: ContinuationStudy) -> Source:
    """The stroboscopic map of a network."""
    model, options = build.model(study.network), study.run
    net = model.net
    values = build.defaults(dict(study.parameters), model.file)
    values |= study.begin
    for name, bounds in study.ranges.items():
        _check_interval(name, bounds)
    ends = [study.ranges["epsilon"].stop] if "epsilon" in study.ranges else []
    epsilon = max([values["epsilon"], *ends])  # whether the drive acts anywhere
    tokens = dmft.clock_period(net, epsilon)
    simulated = partial(_simulated, options, model, values)
    if "redrawn" in values:
        system = dmft.sequential(net, epsilon)
        template = _at_clock_zero(net, *_settled(options, model, values, 0))
        many = jax.tree.map(lambda x: x[..., None] if x.ndim else x, template)
        shown = partial(_strobe_samples, system, Coordinates(system, many), 0)
        turn, table = _turn(system, template), continuation_file.WHERE_COPIED
    else:
        turn, table = dmft.strobe(net, epsilon), continuation_file.VARIABLES
        shown = partial(continuation_file.strobe_samples, net)
    return Source(
        values,
        turn,
        tokens,
        simulated,
        shown,
        table,
        {
            "start": build.describe_start(options, model),
            "network": network_digest(net),
            "context": net.context,
        },
    )


def _check_interval(name: str, bounds: Interval) -> None:
    """Both ends must be possible values of the parameter."""
    ends = np.array([bounds.start, bounds.stop])
    dmft.parameters(**({"beta": 0.0, "gamma": 0.0, "epsilon": 0.0} | {name: ends}))


def _simulated(options, made: build.Model, values):
    """The coordinates of the state at clock 0 after the transient."""
    params, state = _settled(options, made, values, options.transient)
    if params.redrawn is None:
        return dmft.strobe_point(made.net, params, state)
    state = _at_clock_zero(made.net, params, state)
    return dmft.sequential(made.net).at(params).vector(state)


def _settled(options, made: build.Model, values, transient: int):
    """Parameters, and the state after the transient, with a full window."""
    params = dmft.parameters(**{n: np.array([v]) for n, v in values.items()})
    state = build.start(options, made, params)
    steps = max(transient, made.net.context)
    return _one((params, dmft.advance(made.net, params, state, steps)))


def _at_clock_zero(net: dmft.Network, params: dmft.Parameters, state: dmft.State):
    return dmft.advance(net, params, state, -state.clock % net.context)


def _one(tree):
    """The first point of a tree of points."""
    return jax.tree.map(lambda a: a[..., 0] if a.ndim else a, tree)


def _of_system(study: SystemContinuationStudy) -> Source:
    """The map of a system of one's own."""
    given = {n: x for n, x in study.parameters.items() if isinstance(x, float)}
    values = {n: (given | study.begin)[n] for n in study.parameters}
    problem = posed.pose(study, values)
    system, period = problem.system, problem.system.drive_period
    params = problem.axes.points()
    start = problem.starts(params, np.zeros(1, int))

    def simulated():
        turns = -(-study.run.transient // period)
        state = problem.layout.advance(params, start, turns * period)
        return problem.layout.array(params, state)[:, 0]

    shown = problem.observables[problem.section["value"]]
    return Source(
        values,
        _turn(system, _one(start)),
        period,
        simulated,
        partial(_strobe_samples, system, problem.layout, problem.section["value"]),
        continuation_file.variables(
            problem.parameters,
            unit=system.unit,
            state="coordinates of a point of the cycle at the clock's phase 0",
            shown=shown,
        ),
        problem.attributes,
    )


def _turn(system: System, template) -> System:
    """One period of the drive, of the coordinates of a state at its phase 0."""

    def step(x, parameters):
        map = system.at(parameters)
        once = lambda _, state: map.step(state)
        state = map.at(template, x)
        return map.vector(jax.lax.fori_loop(0, system.drive_period, once, state))

    return System(step, unit=system.unit)


def _strobe_samples(
    system: System,
    layout: Coordinates | Windows,
    value: int,
    problem: continuation.Problem,
    points: Sequence,
) -> np.ndarray:
    """What a diagram shows of cycles, its number `value`, (points, turns)."""
    turns = int(problem.period)
    if not points:
        return np.zeros((0, turns))
    x = jnp.asarray(np.stack([p.x for p in points], axis=-1))
    free = jnp.asarray([p.value for p in points])
    values = {n: jnp.broadcast_to(v, free.shape) for n, v in problem.parameters.items()}
    params = values | {problem.free: free}
    state = layout.state(params, x)
    samples = []
    for _ in range(turns):
        samples.append(np.asarray(system.shown(state, params)[value]))
        state = layout.advance(params, state, system.drive_period)
    return np.stack(samples, axis=-1)


def _check_holds(curves: Interval, second: str, held: float) -> None:
    """Curves start at the value of the second parameter that the branches have."""
    if not curves.start <= held <= curves.stop:
        raise ValueError(
            f"curves: start to stop must contain {second} = {held:g}, at which the "
            f"branches are followed; got {curves.start:g} to {curves.stop:g}."
        )


def _cycle(problem: continuation.Problem, x, value: float):
    """The cycle near the simulated state, or one line that says why there is none."""
    cycle = continuation.find_cycle(problem, x, value)
    place = f"at {problem.free} = {value:g}"
    if not cycle.converged:
        raise ValueError(
            f"run.period: no cycle of {cycle.asked} drive periods near the simulated "
            f"state {place} ({cycle.reason}); change run.at, period or transient."
        )
    if cycle.period != cycle.asked:
        raise ValueError(
            f"run.period: the cycle {place} has {cycle.period} drive periods; "
            f"got {cycle.asked}."
        )
    return cycle.x


def _counted(points: Iterable, tick: Tick) -> Iterator:
    for point in points:
        tick(1.0)
        yield point


def _both_ways(problem, x, value, within, settings, tick: Tick) -> Track:
    """The branch through a cycle, from the lower end of the interval to the upper.

    A closed branch is followed once.
    """
    parts = {1: ([], continuation.LEFT_RANGE), -1: ([], continuation.LEFT_RANGE)}
    for direction, end in ((1, within[1]), (-1, within[0])):
        if value == end or parts[1][1] == continuation.CLOSED:
            continue
        branch = continuation.follow_cycle(
            problem,
            x,
            value,
            direction=direction,
            within=within,
            settings=settings,
            unit=within[1] - within[0],
        )
        parts[direction] = _until_it_repeats(_counted(branch, tick), branch)
    (up, last), (down, first) = parts[1], parts[-1]
    if last == continuation.CLOSED:
        first = continuation.CLOSED
    points = [_backward(p) for p in down[::-1]] + (up[1:] if down else up)
    special = [_backward(s) for p in down[::-1] for s in p.special[::-1]]
    special += [s for p in up for s in p.special]
    return Track(problem, points, special, (first, last), -1)


def _until_it_repeats(points: Iterable, branch: continuation.Branch):
    """Points of a branch, until it comes back to any point of its first cycle.

    An isola winds through all points of the cycle before the curve itself closes.
    """
    followed: list[continuation.BranchPoint] = []
    for point in points:
        closing = _passage(branch.problem, followed, point) if followed else None
        if closing is not None:
            return [*followed, closing], continuation.CLOSED
        followed.append(point)
    return followed, branch.result


def _passage(
    problem: continuation.Problem,
    found: list[continuation.BranchPoint],
    point: continuation.BranchPoint,
) -> continuation.BranchPoint | None:
    """Where the last step passes the first cycle, with the special points before.

    The parameter is monotone between special points, so that their order is exact.
    """
    first = found[0]
    nodes = [found[-1], *point.special, point]
    for number, (before, after) in enumerate(itertools.pairwise(nodes)):
        rise = after.value - before.value
        ahead = (first.value - before.value) * rise > 0
        passed = (after.value - first.value) * rise >= 0
        if not (ahead and passed and rise * first.tangent[-1] > 0):
            continue
        place, x = _crossing(before, after, first.value)
        cycle = continuation.find_cycle(problem, x, first.value)
        if cycle.converged and _on_orbit(problem, cycle.x, first.x, first.value):
            length = after.arclength - before.arclength
            return continuation.BranchPoint(
                value=first.value,
                x=cycle.x,
                multipliers=cycle.multipliers,
                tangent=(1 - place) * before.tangent + place * after.tangent,
                arclength=before.arclength + place * length,
                special=point.special[:number],
            )
    return None


def _crossing(before, after, value: float):
    """Fraction of the arc at which a value is met, and x there, by Hermite's cubic."""
    length = max(after.arclength - before.arclength, 0.0)
    cubic = lambda a, b, slopes: CubicHermiteSpline(
        [0.0, 1.0], [a, b], length * np.array(slopes)
    )
    slopes = np.array([before.tangent, after.tangent])
    parameter = cubic(before.value, after.value, slopes[:, -1])
    inside = parameter.solve(value, extrapolate=False)
    place = float(inside[0]) if inside.size else 1.0
    return place, cubic(before.x, after.x, slopes[:, :-1])(place)


def _on_orbit(problem: continuation.Problem, orbit, x, value: float) -> bool:
    """Whether a cycle through one point passes another."""
    for _ in range(int(problem.period)):
        if np.linalg.norm(orbit - x) < SAME * (1 + np.linalg.norm(x)):
            return True
        orbit = np.asarray(_image(problem, orbit, value, jnp.asarray(1)))
    return False


def _backward(point):
    """The same point, with lengths counted from the other end."""
    return eqx.tree_at(lambda p: p.arclength, point, -point.arclength)


def _with_doublings(
    first: Track, doublings: int, within, settings, tick: Tick
) -> Iterator[Track]:
    """The first branch, then those born at its period doublings, level by level.

    A branch that joins two doublings is followed from one of them.
    """
    yield first
    level, total = [(first, 0)], len(first.special)
    for _ in range(doublings):
        born: list[tuple[Track, int]] = []
        ends: list[float] = []
        for parent, offset in level:
            for number, special in enumerate(parent.special):
                if special.kind != "period_doubling":
                    continue
                if np.any(np.abs(np.array(ends) - special.value) < SAME_VALUE):
                    continue
                doubled, points, result = _doubled(
                    parent.problem, special, within, settings, tick
                )
                specials = [s for p in points for s in p.special]
                ends += [s.value for s in specials if s.kind == "period_halving"]
                codes = (continuation.CLOSED, result)
                track = Track(doubled, points, specials, codes, offset + number)
                born.append((track, total))
                total += len(specials)
                yield track
        level = born


def _doubled(
    problem: continuation.Problem,
    special,
    within,
    settings: continuation.Settings,
    tick: Tick,
    shrinks: Sequence[float] = SHRINK,
):
    """The branch born at a doubling, to where it ends on one of half its period.

    Where the old branch is near, Newton may fall back on it: then the branch is left
    closer to the doubling, with smaller steps.

    Returns:
        its problem, its points and a code.
    """
    shrink, *closer = shrinks
    shorter = dataclasses.replace(
        settings,
        first_step=shrink * settings.first_step,
        smallest_step=shrink * settings.smallest_step,
        largest_step=shrink * settings.largest_step,
    )
    branch = continuation.switch(
        problem,
        special,
        amplitude=AMPLITUDE * shrink,
        within=within,
        settings=shorter,
        unit=within[1] - within[0],
    )
    orbits: list[continuation.BranchPoint] = []
    for point in _counted(branch, tick):
        halving = any(s.kind == "period_halving" for s in point.special)
        if not halving and _is_halved(branch.problem, point):
            if closer:
                return _doubled(problem, special, within, settings, tick, closer)
            return branch.problem, orbits, continuation.NOT_CONVERGED
        orbits.append(point)
        if halving:
            return branch.problem, orbits, continuation.CLOSED
    return branch.problem, orbits, branch.result


def _is_halved(problem: continuation.Problem, point: continuation.BranchPoint) -> bool:
    """Whether an orbit closes after half the period."""
    x, half = point.x, int(problem.period) // 2
    after = np.asarray(_image(problem, x, point.value, jnp.asarray(half)))
    return bool(np.linalg.norm(after - x) < SAME * (1 + np.linalg.norm(x)))


@eqx.filter_jit
def _image(problem: continuation.Problem, x, value, times):
    return problem.iterate(x, {**problem.parameters, problem.free: value}, times)


def _lines(study: Study, tracks, settings, tick: Tick) -> Iterator[Line]:
    """Curves of all special points of one parameter that have one in two.

    A point that lies on the curve of an earlier one has no curve of its own.
    """
    second = study.curves
    if second is None:
        return
    ((_, bounds),) = study.free.items()
    settings = dataclasses.replace(settings, max_points=second.max_points)
    lines: list[tuple[Line, continuation.Problem]] = []
    specials = [(track, special) for track in tracks for special in track.special]
    for origin, (track, special) in enumerate(specials):
        if special.kind not in continuation.CRITICAL:
            continue
        problem = track.problem.with_period(special.period)
        if any(_on_line(*line, problem, special, second.parameter) for line in lines):
            continue
        line = _line(problem, special, origin, bounds, second, settings, tick)
        lines.append((line, problem))
        yield line


def _line(problem, special, origin, bounds, second, settings, tick: Tick) -> Line:
    """The curve through a special point, both ways; once where it is closed."""
    inside = lambda p, q: (
        bounds.start <= p <= bounds.stop and second.start <= q <= second.stop
    )
    follow = lambda direction: continuation.critical_curve(
        problem,
        special.x,
        special.value,
        kind=special.kind,
        second=second.parameter,
        direction=direction,
        inside=inside,
        settings=settings,
        scales=(bounds.stop - bounds.start, second.stop - second.start),
    )
    down, up = follow(-1), follow(1)
    points = list(_counted(down, tick))[::-1]
    if down.result != continuation.CLOSED:
        points += list(_counted(up, tick))[1:]
    return Line(
        special.kind,
        origin,
        points,
        down.codimension_two[::-1] + up.codimension_two,
        down.unresolved + up.unresolved,
        (
            down.result,
            continuation.CLOSED if down.result == continuation.CLOSED else up.result,
        ),
    )


def _on_line(
    line: Line,
    on: continuation.Problem,
    problem: continuation.Problem,
    special,
    second: str,
) -> bool:
    """Whether a special point is where a curve meets the held second value."""
    if line.kind != special.kind or int(on.period) != int(problem.period):
        return False
    held = float(problem.parameters[second])
    for a, b in itertools.pairwise(line.points):
        rise = b.values[1] - a.values[1]
        share = (held - a.values[1]) / rise if rise else -1.0
        if not 0 <= share <= 1:
            continue
        near = a.values + share * (b.values - a.values)
        x = a.state + share * (b.state - a.state)
        nearest = next(
            continuation.critical_curve(
                problem, x, near[0], kind=line.kind, second=second
            ),
            None,
        )
        if nearest is not None and _same_point(problem, nearest, special):
            return True
    return False


def _same_point(
    problem: continuation.Problem,
    here: continuation.CriticalPoint,
    special: continuation.SpecialPoint,
) -> bool:
    """Whether a critical cycle is that of a special point."""
    value = float(here.values[0])
    if abs(value - special.value) > SAME * (1 + abs(special.value)):
        return False
    return _on_orbit(problem, here.state, special.x, value)
