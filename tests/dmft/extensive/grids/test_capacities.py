"""Capacities over contexts and temperatures: known values, and their errors."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from statmech_attn import dmft
from statmech_attn.dmft import extensive
from statmech_attn.dmft.extensive.grids import capacities
from statmech_attn.scan import in_memory
from statmech_attn.scan.chunks.work import Chunk


PATTERNS = dmft.site_classes(np.ones((4, 1, 1)))
NET = dmft.network(PATTERNS, context=2)


def capacity(
    *, ensemble=extensive.cycle(), beta: Any = np.inf, contexts=(1,), **retrieval
):
    options = extensive.Retrieval(**retrieval)
    return extensive.capacities(
        NET, PATTERNS, ensemble, options, beta=beta, contexts=contexts
    )


def rows(points):
    return points.rows(Chunk(0, 0, 0, 1), None, lambda _: None, None)


@pytest.mark.slow
def test_capacity_of_a_sequence():
    dataset = in_memory(capacity(beta=[2.0, np.inf]))
    assert dataset.capacity.dims == ("context", "beta")
    assert float(dataset.capacity[0, 1]) == pytest.approx(0.26906, abs=1e-5)
    assert float(dataset.capacity[0, 0]) < float(dataset.capacity[0, 1])
    assert (dataset.capacity_error < 1e-8).all()


def test_moving_recall_and_states_at_rest_are_asked_for_their_own_capacity(monkeypatch):
    class Asked(Exception):
        pass

    def moving(problem, **choices):
        raise Asked("moving", choices["within"])

    def static(problem, start, *, at_rest, **choices):
        raise Asked("at rest" if at_rest else "static", choices["within"])

    monkeypatch.setattr(capacities, "moving_capacity", moving)
    monkeypatch.setattr(capacities, "capacity", static)
    at_rest = {"ensemble": extensive.identical(), "at_rest": True}
    for options, name in (({"moving": True}, "moving"), (at_rest, "at rest")):
        with pytest.raises(Asked) as caught:
            rows(capacity(begin=0.1, **options))
        assert caught.value.args == (name, (0.025, 2.0))


def test_the_context_is_that_of_the_network_when_omitted():
    assert capacity(contexts=None).axes["context"] == [2]


def test_an_axis_without_values_is_named():
    with pytest.raises(ValueError, match="^beta must be a number or a list"):
        capacity(beta=[])
    with pytest.raises(ValueError, match="^context must be a number or a list"):
        capacity(contexts=[])


def test_no_retrieval_is_said_and_the_point_is_left_out(monkeypatch):
    tried = []

    def lost(problem, *_, **__):
        tried.append(float(problem.alpha))
        raise extensive.NoRetrieval("no pattern is retrieved")

    monkeypatch.setattr(capacities, "capacity", lost)
    with pytest.raises(RuntimeError, match="no pattern is retrieved down to alpha"):
        rows(capacity(begin=0.8))
    assert tried == [0.8 / 2**n for n in range(8)]


@pytest.mark.parametrize(
    ("context", "changes", "error", "asked"),
    [
        (1, {}, 0.001, [(0, False)]),
        (3, {}, 0.021, [(16, False), (8, True)]),
        (3, {"lags": 4}, 0.021, [(4, False), (2, True)]),
        (3, {"lags": 3}, 0.021, [(3, False), (6, True)]),
        (3, {"lags": 2}, 0.021, [(2, False), (4, True)]),
    ],
)
def test_the_error_of_a_capacity_has_that_of_lags_and_of_the_rule(
    monkeypatch, context, changes, error, asked
):
    """The end of retrieval is put at 0.25, and 0.02 away by other lags.

    Half as many, or twice where half would be fewer than the window has: with as many
    lags the error would be that of the rule alone.
    """
    calls = []

    def fold(problem, start, retrieval, lags, coarse=False):
        calls.append((lags, coarse))
        value, overlap = 0.23 if coarse else 0.25, np.array([0.1, -0.8])
        return SimpleNamespace(value=value, error=0.001, overlap=overlap, noise=0.5)

    monkeypatch.setattr(capacities, "_fold", fold)
    row = rows(capacity(contexts=[context], **changes))
    assert row["capacity"] == [0.25] and row["retrieved_overlap"] == [0.8]
    assert row["capacity_error"] == pytest.approx([error])
    assert calls == asked


@pytest.mark.parametrize(
    ("mistake", "words"),
    [
        (
            lambda: capacity(ensemble=extensive.identical()),
            "stationary states are known for cycle",
        ),
        (lambda: capacity(at_rest=True), "at rest patterns must be identical"),
        (
            lambda: capacity(at_rest=True, moving=True),
            "at_rest and moving exclude each other",
        ),
        (
            lambda: capacity(ensemble=extensive.independent(), moving=True),
            "recall moves along the patterns of cycle",
        ),
        (
            lambda: capacity(contexts=[2, 2]),
            r"context .* distinct ones; got \[2, 2\]",
        ),
        (
            lambda: capacity(contexts=[4], lags=2),
            "lags must be at least C - 1 = 3; got 2",
        ),
    ],
)
def test_bad_input_is_refused_in_one_line(mistake, words):
    with pytest.raises(ValueError, match=words) as caught:
        mistake()
    assert "\n" not in str(caught.value)
