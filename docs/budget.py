"""Rewrite the table of lines by package in docs/decisions/lines_by_package.md.

What a raise bought stands in its last column, which is left as it is.
"""

import re
from collections import Counter
from pathlib import Path


ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "decisions" / "lines_by_package.md"
ROW = re.compile(r"^\| `(\w+)` \| (\d+) \|(?: (.*))? \|$", re.MULTILINE)
SOURCES = {".py", ".js", ".css", ".html"}
MODULES = "modules"  # those that are in no package, together


def lines() -> Counter[str]:
    """Lines of each package as they are."""
    count = Counter()
    for path in (ROOT / "statmech_attn").rglob("*"):
        if path.suffix in SOURCES:
            package, *inside = path.relative_to(ROOT / "statmech_attn").parts
            count[package if inside else MODULES] += path.read_bytes().count(b"\n")
    return count


def budget() -> dict[str, int]:
    """Lines of each package that the page allows, without its margin."""
    rows = ROW.findall(PAGE.read_text("utf-8"))
    return {package: int(count) for package, count, _ in rows}


if __name__ == "__main__":
    page = PAGE.read_text("utf-8")
    bought = {package: words for package, _, words in ROW.findall(page)}
    rows = [
        f"| `{package}` | {count} | {bought.get(package, '')}".rstrip() + " |\n"
        for package, count in lines().most_common()
    ]
    head, rule, table = page.rpartition("| --- | --- | --- |\n")
    PAGE.write_text(head + rule + "".join(rows) + ROW.sub("", table).lstrip(), "utf-8")
