"""The data set of a continuation: branches, special points, curves (docs/hdf5.md).

Branches and curves have different lengths: rows are padded with NaN along `point` and
`curve_point`.  What was not found has no variables.
"""

from collections.abc import Sequence
from functools import partial

import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Float

from statmech_attn import dmft
from statmech_attn.dmft import Network
from statmech_attn.dynamics.continuation import CODIMENSION_TWO
from statmech_attn.dynamics.continuation.special import KINDS
from statmech_attn.labels import labelled


CRITICALITY = ("", "supercritical", "subcritical")


def dataset(net: Network, tracks: Sequence, lines: Sequence, second: str):
    """Everything that was found, labelled; `second` is the curves' other parameter."""
    turns = max(int(track.problem.period) for track in tracks)
    special = [s for track in tracks for s in track.special]
    owners = [i for i, track in enumerate(tracks) for _ in track.special]
    free = tracks[0].problem.free
    variables = _branches(net, tracks, free, turns)
    if special:
        variables |= _special(net, tracks, special, owners, free, turns)
    if lines:
        variables |= _curves(lines, free, second)
    degenerate = [(i, two) for i, line in enumerate(lines) for two in line.degenerate]
    if degenerate:
        variables |= _degenerate(degenerate, free, second)
    return labelled(variables, {"end": np.arange(2)})


def _branches(net: Network, tracks, free: str, turns: int):
    over = ("branch", "point")
    rows = lambda read: _padded([[read(p) for p in t.points] for t in tracks])
    outside = lambda p: float(np.sum(np.abs(p.multipliers) > 1))
    values = _padded([[p.value for p in t.points] for t in tracks])
    strobe = np.full((*values.shape, turns), np.nan)
    for i, track in enumerate(tracks):
        found = strobe_samples(net, track.problem, track.points)
        strobe[i, : found.shape[0], : found.shape[1]] = found
    tokens = tracks[0].problem.map.tokens
    return {
        free: (over, values),
        "arclength": (over, rows(lambda p: p.arclength)),
        "state": ((*over, "coordinate"), rows(lambda p: p.x)),
        "multiplier_re": ((*over, "multiplier"), rows(lambda p: p.multipliers.real)),
        "multiplier_im": ((*over, "multiplier"), rows(lambda p: p.multipliers.imag)),
        "n_unstable": (over, rows(outside)),
        "strobe": ((*over, "strobe_sample"), strobe),
        "branch_period": (
            ("branch",), [tokens * int(t.problem.period) for t in tracks],
        ),
        "branch_parent": (("branch",), [t.parent for t in tracks]),
        "branch_result": (("branch", "end"), _codes(t.results for t in tracks)),
    }  # fmt: skip


def _special(net: Network, tracks, special, owners, free: str, turns: int):
    over = ("special",)
    form = lambda read, s: np.nan if s.form is None else read(s.form)
    strobe = np.full((len(special), turns), np.nan)
    for i, (owner, point) in enumerate(zip(owners, special, strict=True)):
        found = strobe_samples(net, tracks[owner].problem, [point])
        strobe[i, : found.shape[1]] = found[0]
    word = lambda s: "" if s.form is None else s.form.criticality
    tokens = tracks[0].problem.map.tokens
    return {
        "special_kind": (over, _codes(KINDS.index(s.kind) for s in special)),
        "special_branch": (over, owners),
        f"special_{free}": (over, [s.value for s in special]),
        "special_arclength": (over, [s.arclength for s in special]),
        "special_error": (over, [s.error for s in special]),
        "special_period": (over, [tokens * s.period for s in special]),
        "special_coefficient": (
            over, [form(lambda f: f.coefficient, s) for s in special],
        ),
        "special_criticality": (
            over, _codes(CRITICALITY.index(word(s)) for s in special),
        ),
        "special_rotation": (over, [form(lambda f: f.rotation, s) for s in special]),
        "special_strobe": ((*over, "strobe_sample"), strobe),
    }  # fmt: skip


def _curves(lines, free: str, second: str):
    over = ("curve", "curve_point")
    rows = lambda read: _padded([[read(p) for p in line.points] for line in lines])
    return {
        "curve_kind": (("curve",), _codes(KINDS.index(line.kind) for line in lines)),
        "curve_origin": (("curve",), [line.origin for line in lines]),
        "curve_result": (("curve", "end"), _codes(line.results for line in lines)),
        f"curve_{free}": (over, rows(lambda p: p.values[0])),
        f"curve_{second}": (over, rows(lambda p: p.values[1])),
        "curve_coefficient": (over, rows(lambda p: p.coefficient)),
        "curve_rotation": (over, rows(lambda p: p.rotation_number)),
    }


def _degenerate(found, free: str, second: str):
    over = ("degenerate",)
    points = [two.point for _, two in found]
    kinds = [CODIMENSION_TWO.index(two.name) for _, two in found]
    return {
        "degenerate_kind": (over, _codes(kinds)),
        "degenerate_curve": (over, [i for i, _ in found]),
        f"degenerate_{free}": (over, [p.values[0] for p in points]),
        f"degenerate_{second}": (over, [p.values[1] for p in points]),
        "degenerate_coefficient": (over, [p.coefficient for p in points]),
        "degenerate_rotation": (over, [p.rotation_number for p in points]),
    }


def strobe_samples(net: Network, problem, points) -> Float[np.ndarray, "n period"]:
    """m^{o,SE}_1 of the tokens that cycles draw at clock 0, as a scan's strobe has."""
    turns, tokens = int(problem.period), problem.map.tokens
    if not points:
        return np.zeros((0, turns))
    x = jnp.asarray(np.stack([p.x for p in points], axis=-1))
    free = jnp.asarray([p.value for p in points])
    values = {n: jnp.broadcast_to(v, free.shape) for n, v in problem.parameters.items()}
    params = dmft.Parameters(**(values | {problem.free: free}))
    windows = x.reshape(net.context, net.n_patterns, -1)
    return np.asarray(_strobe(net, params, windows, turns, tokens)).T


@partial(jax.jit, static_argnames=("turns", "tokens"))
def _strobe(net, params, windows, turns, tokens):
    def turn(state, _):
        _, seen = dmft.observe(net, params, state)
        return dmft.advance(net, params, state, tokens), seen.m_o_se[0]

    state = dmft.from_window(net, params, windows, 0)
    return jax.lax.scan(turn, state, None, length=turns)[1]


def _padded(rows) -> np.ndarray:
    """Rows of different lengths as one array, filled up with NaN."""
    rows = [np.asarray(row, float) for row in rows]
    inner = max((row.shape[1:] for row in rows if row.size), default=())
    longest = max(len(row) for row in rows)
    full = np.full((len(rows), longest, *inner), np.nan)
    for i, row in enumerate(rows):
        if row.size:
            full[i, : len(row)] = row
    return full


def _codes(values) -> np.ndarray:
    return np.array(list(values), np.int8)
