"""The modules of the page, tested one by one by tests/explore/serving/page.mjs.

They run in the node that playwright brings, or any other; where there is none, the
tests of the browser still hold them.
"""

import os
import re
import shutil
import subprocess
from importlib import util
from pathlib import Path

import pytest

from statmech_attn.dynamics import PHASES
from statmech_attn.explore.serving import page
from statmech_attn.plotting.frame import style


def node() -> str | None:
    found = util.find_spec("playwright")
    driver = Path(found.origin).parent / "driver" / "node" if found else Path("none")
    return str(driver) if driver.exists() else shutil.which("node")


def test_the_page_is_given_the_colours_of_the_figures():
    source = page.static("colours.js")[0]
    (table,) = re.findall(r"const PHASES = \[(.*?)\]", source, re.DOTALL)
    colours = re.findall(r"#\w{6}", table)
    assert colours == [style.PHASE_COLOURS[phase] for phase in PHASES]


def test_names_of_files_are_shown_as_text():
    """No module makes elements of words."""
    markup = re.compile(r"(inner|outer)HTML|insertAdjacent|document\.write|setHTML")
    assert not [name for name in page.MODULES if markup.search(page.static(name)[0])]


@pytest.mark.skipif(node() is None, reason="there is no node")
def test_modules_do_what_their_tests_say(tmp_path):
    (tmp_path / "package.json").write_text('{"type": "module"}')
    for name in page.MODULES:
        (tmp_path / name).write_text(page.static(name)[0])
    command = [node(), "--test", str(Path(__file__).with_name("page.mjs"))]
    environment = os.environ | {"PAGE": str(tmp_path)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout[-3000:]
    assert "# pass 14" in done.stdout.replace("ℹ", "#")
