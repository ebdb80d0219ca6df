"""Optional requirements, by the extras of `pyproject.toml` that install them."""

import importlib.metadata
import json
import shlex
from urllib.parse import unquote, urlsplit


NAME = "statmech-attn"


def needed(what: str, package: str, extra: str) -> str:
    """What a user reads where a package is missing.

    Args:
        what: needs it.
        package: name of the missing package.
        extra: that installs it.

    Example:
        >>> needed("training", "optax", "training")[:33]
        'training needs optax: pip install'
    """
    return f"{what} needs {package}: {command(extra)}."


def command(extra: str) -> str:
    """The shell command that adds an extra to this installation.

    A package that was installed from a folder is installed from there again.

    Args:
        extra: such as "explore".

    Example:
        >>> command("explore").endswith("[explore]'")
        True
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
