"""Verdicts of the table of reference systems: right values pass, wrong ones do not."""

from types import SimpleNamespace

import jax
import numpy as np
import pytest
from typer.testing import CliRunner

from statmech_attn import validation
from statmech_attn.cli import app
from statmech_attn.cli.texts import validation as report
from statmech_attn.statistics.agreement import threshold
from statmech_attn.validation import (
    bifurcations,
    judge,
    Measurement,
    Row,
    ROWS,
    run_row,
    select,
)


def row(values, reference, errors=None, blocks=None, name="made up", **options):
    measured = Measurement(values, errors, blocks)
    names = tuple(f"q{i}" for i in range(len(reference)))
    return Row(name, names, lambda: measured, reference, "by hand", **options)


def verdicts(*rows):
    return [line.verdict for line in judge([run_row(r) for r in rows])]


def test_statistical_values_are_judged_in_standard_errors():
    allowed = threshold(2, 64)
    within, beyond = 0.9 * allowed * 0.01, 1.1 * allowed * 0.01
    assert verdicts(row([1 + within, 1 - beyond], (1.0, 1.0), [0.01] * 2, 64)) == [
        "ok",
        "MISS",
    ]
    # More comparisons in the table allow more, fewer blocks too.
    crowd = row([1.0] * 500, (1.0,) * 500, [0.01] * 500, 64)
    line = row([1 + beyond], (1.0,), [0.01], 64)
    assert verdicts(line, crowd)[0] == "ok"
    assert verdicts(row([1 + beyond], (1.0,), [0.01], 6)) == ["ok"]


def test_the_error_of_the_reference_counts():
    far = row([1.1], (1.0,), [1e-3], 64)
    assert verdicts(far) == ["MISS"]
    assert verdicts(far._replace(error=0.05)) == ["ok"]


def test_chance_does_not_stretch_a_systematic_error():
    """Scatter 0.1 and counting error 0.01: 0.1 + 0.01 z, where z is about 4."""
    allowed = 0.1 + 0.01 * threshold(1, 16)
    for share, verdict in ((0.99, "ok"), (1.01, "MISS")):
        measured = Measurement([1 + share * allowed], [0.01], 16, [0.1])
        r = row([1.0], (1.0,))._replace(measure=lambda measured=measured: measured)
        assert verdicts(r) == [verdict]
    # The published error of a dimension is a bound too.
    assert verdicts(r._replace(error=0.01)) == ["ok"]


def test_deterministic_values_are_judged_by_their_tolerance():
    off = lambda x, tolerance: verdicts(row([x], (1.0,), tolerance=tolerance))
    assert off(1 + 1e-9, 2e-9) == ["ok"] and off(1 - 3e-9, 2e-9) == ["MISS"]
    assert off(1.0, None) == ["ok"] and off(1 + 1e-15, None) == ["MISS"]


def test_infinities_words_and_nan():
    assert verdicts(row([-np.inf], (-np.inf,), tolerance=1e-9)) == ["ok"]
    assert verdicts(row([-1e9], (-np.inf,), tolerance=1e-9)) == ["MISS"]
    assert verdicts(row([np.nan], (1.0,), tolerance=1.0)) == ["MISS"]
    assert verdicts(row([np.nan], (1.0,), [np.nan], 64)) == ["MISS"]
    assert verdicts(row(["chaotic", "fixed"], ("chaotic", "chaotic"))) == ["ok", "MISS"]


def test_a_row_that_fails_is_a_miss_and_leaves_the_others():
    def broken():
        raise TypeError("no such map\nand more")

    rows = [
        row([1.0, 2.0], (1.0,)),
        row([], (1.0, 2.0))._replace(name="raises", measure=broken),
        row([1.0], (1.0,)),
    ]
    found = judge([run_row(r) for r in rows])
    assert [line.verdict for line in found] == ["MISS", "MISS", "MISS", "ok"]
    assert "as many; got 1, 1 and 2" in found[0].failure
    assert found[1].failure == found[2].failure == "TypeError: no such map"
    assert np.isnan(found[1].value) and not found[3].failure
    text = report.summary(found)
    assert "1 of 4 agree" in text and "raises failed: TypeError: no such map" in text


def test_every_row_has_a_source_and_a_name_of_its_own():
    names = [r.name for r in ROWS]
    assert len(set(names)) == len(names)
    for r in ROWS:
        assert r.source and len(r.quantities) == len(r.reference)


def test_rows_are_selected_by_part_of_their_name():
    assert {r.name for r in select(["HENON"])} >= {"Henon", "Henon, edge to infinity"}
    assert select() == list(ROWS)
    with pytest.raises(ValueError, match="no reference system 'henom'; there are: log"):
        select(["henom"])


def test_starts_that_settle_nowhere_are_in_no_basin(monkeypatch):
    """Labels below 0 are no index: -2 of two sets would be the first of them."""
    found = SimpleNamespace(
        label=np.array([0, 1, -1, -2]), points=np.array([[[1.0]], [[-1.0]]])
    )
    monkeypatch.setattr(bifurcations, "find_attractors", lambda step, starts: found)
    assert bifurcations._two_wells().values == [0.25]


def test_command_prints_the_table():
    result = CliRunner().invoke(app, ["validate", "--only", "r=2"])
    assert result.exit_code == 0, result.output
    assert "2 of 2 agree" in result.output and "superstable" in result.output
    assert "(statmech_attn " in result.output


def test_command_fails_on_a_miss(monkeypatch):
    wrong = row([1.0], (2.0,), tolerance=0.1, name="wrong")
    monkeypatch.setattr(validation, "select", lambda words: [wrong])
    result = CliRunner().invoke(app, ["validate"])
    assert result.exit_code == 2
    assert "0 of 1 agree" in result.output and "not: wrong" in result.output


def test_command_refuses_in_one_line():
    result = CliRunner().invoke(app, ["validate", "--only", "nothing"])
    assert result.exit_code == 1 and "no reference system 'nothing'" in result.output
    assert len(result.output.splitlines()) == 1


@pytest.mark.slow
def test_the_whole_table_agrees():
    results = []
    for reference in ROWS:
        results.append(run_row(reference))
        jax.clear_caches()  # programs of all rows together fill the memory of a worker
    assert [line for line in judge(results) if line.verdict != "ok"] == []
