"""What docs/static/site.js adds to a page of the site, on a page written by hand."""

from pathlib import Path

import pytest

from tests.explore.test_browser import browser, needed, tab  # noqa: F401  fixtures


pytestmark = pytest.mark.slow
SCRIPT = Path(__file__).resolve().parents[1] / "docs" / "static" / "site.js"
# As the theme writes pages; formulas are typeset some time after the page has loaded.
PAGE = """<!doctype html><html lang="en"><head><title>Page</title>
<style>.table-wrapper, pre { width: 9rem; max-height: 9rem; overflow: auto; }</style>
<script>
const formula = "<mjx-container><mjx-math aria-hidden='true'></mjx-math>" +
  "<mjx-assistive-mml><math><mi>n</mi></math></mjx-assistive-mml></mjx-container>";
const typeset = (done) => setTimeout(() => {
  document.querySelectorAll(".math").forEach((x) => { x.innerHTML = formula; });
  done();
}, 100);
const loaded = (done) => window.addEventListener("load", () => typeset(done));
window.MathJax = { startup: { promise: new Promise(loaded) } };
</script>
<script src="site.js"></script></head><body>
<aside class="sidebar-drawer"><p role="heading">Tutorials</p></aside>
<main><div class="content-icon-container"><a href="#source">source</a></div>
<div id="search-results"></div>
<div class="table-wrapper"><table>
<tr><th></th><th><span class="math">\\(n\\)</span></th></tr>
<tr><td>a</td><td>REALLYWIDEREALLYWIDEREALLYWIDE</td></tr></table></div>
<pre id="wide">REALLYWIDEREALLYWIDEREALLYWIDE</pre>
<pre id="tall">1\n2\n3\n4\n5\n6\n7\n8\n9\n10\n11\n12</pre>
<pre id="small">x</pre></main>
<aside class="toc-drawer"></aside></body></html>"""


def test_pages_are_read_without_a_mouse_and_by_a_screen_reader(tab, tmp_path):  # noqa: F811
    axe = needed("axe_playwright_python.sync_playwright").Axe()
    (tmp_path / "site.js").write_text(SCRIPT.read_text())
    (tmp_path / "page.html").write_text(PAGE)
    tab.goto((tmp_path / "page.html").as_uri())
    tab.locator("pre[tabindex]").first.wait_for()
    complaints = axe.run(tab).response["violations"]
    assert not complaints, [(x["id"], x["nodes"][0]["html"]) for x in complaints]
    reached = tab.locator("[tabindex='0']").all()
    assert [x.get_attribute("id") for x in reached] == [None, "wide", "tall"]
    tab.locator("#wide").press("ArrowRight")
    tab.wait_for_function("document.getElementById('wide').scrollLeft > 0")
