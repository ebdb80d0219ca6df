"""The files of the page: served one by one, or written into one document.

Modules of the page import each other by their file names, and no two of them have a
name in common, so that one document holds them in the order of `MODULES`.
"""

import base64
import hashlib
import json
import re
from importlib import resources

from statmech_attn.dynamics import PHASES
from statmech_attn.plotting import PHASE_COLOURS


MODULES = (  # each imports from those before it
    "packed.js",
    "colours.js",
    "text.js",
    "source.js",
    "plot.js",
    "overlays.js",
    "line.js",
    "plane.js",
    "sheet.js",
    "figures.js",
    "point.js",
    "part.js",
    "main.js",
)
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html"}
POLICY = (
    "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; "
    "img-src data: blob:; base-uri 'none'; form-action 'none'"
)


def document() -> str:
    """The page as the server gives it."""
    return _read("index.html")


def static(name: str) -> tuple[str, str] | None:
    """A file of the page with its type; none of another name."""
    if name not in (*MODULES, "style.css"):
        return None
    return _read(name), TYPES[name[name.rindex(".") :]]


def whole(data: str) -> str:
    """The page in one document, with the data that it shows instead of a server.

    `data` is that of page/source.js, in characters that end no element.
    """
    style, script = _read("style.css"), "".join(map(_bare, MODULES))
    policy = POLICY.format(_digest(script), _digest(style))
    parts = {
        '<link rel="stylesheet" href="static/style.css">': f"<style>{style}</style>",
        '<script type="module" src="static/main.js"></script>': (
            f'<script type="application/octet-stream" id="data">{data}</script>\n'
            f'<script type="module">{script}</script>'
        ),
        "<head>": f'<head>\n<meta http-equiv="Content-Security-Policy" '
        f'content="{policy}">',
    }
    text = document()
    for before, after in parts.items():
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


def _read(name: str) -> str:
    folder = resources.files("statmech_attn.explore") / "page"
    text = (folder / name).read_text("utf-8")
    if name != "colours.js":
        return text
    colours = json.dumps([PHASE_COLOURS[phase] for phase in PHASES])
    return text.replace("PHASES = [];", f"PHASES = {colours};", 1)


def _bare(name: str) -> str:
    """A module without its imports and exports."""
    text = re.sub(r"^import [^;]*;\n", "", _read(name), flags=re.MULTILINE)
    return re.sub(r"^export ", "", text, flags=re.MULTILINE)


def _digest(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
