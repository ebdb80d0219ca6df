"""The flows worked through in docs/theory/indicators.md run as printed."""

import re
from pathlib import Path


PAGE = Path(__file__).resolve().parents[2] / "docs" / "theory" / "indicators.md"


def test_lorenz_and_rossler_go_through_every_call_of_the_page():
    (example,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    names = {}
    exec(compile(example, str(PAGE), "exec"), names)
    assert names["diffusion"].shape == names["error"].shape == (4, 1)
    assert float(names["D2"].dimension) > 1.9
