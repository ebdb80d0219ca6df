"""Optional requirements, by the extras of `pyproject.toml` that install them."""

import importlib.metadata
import json
import shlex
from urllib.parse import unquote, urlsplit


NAME = "statmech-attn"


def needed(what: str, package: str, extra: str) -> str:
    """Words on a missing package, such as "training needs optax: pip install ..."."""
    return f"{what} needs {package}: {command(extra)}."


def command(extra: str) -> str:
    """The shell command that adds an extra to this installation.

    A package that was installed from a folder is installed from there again.
    """
    try:
        origin = importlib.metadata.distribution(NAME).read_text("direct_url.json")
    except importlib.metadata.PackageNotFoundError:
        origin = None
    source = json.loads(origin) if origin else {}
    place = urlsplit(source.get("url", ""))
    if place.scheme != "file" or "dir_info" not in source:
        return f"pip install '{NAME}[{extra}]'"
    editable = "--editable " if source["dir_info"].get("editable") else ""
    return f"pip install {editable}{shlex.quote(f'{unquote(place.path)}[{extra}]')}"
