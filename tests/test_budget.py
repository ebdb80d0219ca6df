"""No package grows unseen: lines by package against docs/decisions."""

import importlib.util
from pathlib import Path


DOCS = Path(__file__).resolve().parents[1] / "docs"
MARGIN = 1.02


def test_no_package_has_more_lines_than_its_budget():
    script = importlib.util.spec_from_file_location("budget", DOCS / "budget.py")
    budget = importlib.util.module_from_spec(script)
    script.loader.exec_module(budget)
    allowed, lines = budget.budget(), budget.lines()
    assert set(lines) == set(allowed), "a package is new, or gone: make budget"
    above = {name: n for name, n in lines.items() if n > MARGIN * allowed[name]}
    assert not above, "say in docs/decisions/lines_by_package.md what they bought"
