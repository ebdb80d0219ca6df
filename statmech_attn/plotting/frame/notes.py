"""What the small print below a picture says: sizes and fixed parameters."""

import json
from typing import Any

import numpy as np
import xarray as xr

from statmech_attn import dmft
from statmech_attn.storage import toml


SYMBOLS = {
    "alpha": r"\alpha",
    "beta": r"\beta",
    "gamma": r"\gamma",
    "epsilon": r"\epsilon",
    "redrawn": r"\Delta",
}

BARS = "bars: one standard error"
SIZES = {"n_train": "P", "n_test": r"P_\mathrm{test}"}


def network(dataset: xr.Dataset) -> str:
    """The network and its parameters that have one value, as far as they are known."""
    table = _table(dataset)
    words = []
    name = table.get("patterns")
    if name in dmft.presets():
        words = [f"network {name}", f"$M = {dmft.load(name).patterns.n_patterns}$"]
    elif table.get("n_patterns") == 1:
        words = ["one pattern"]
    elif "n_patterns" in table:
        words = [f"{name} patterns", f"$M = {table['n_patterns']}$"]
    if "context" in dataset.attrs:
        words.append(f"$C = {int(dataset.attrs['context'])}$")
    return ", ".join([*words, *fixed(dataset)])


def task(dataset: xr.Dataset) -> str:
    """Sizes of a learning task and the temperature, as far as they are known."""
    described = of_task(dataset)
    words = [
        f"${symbol} = {described[name]}$"
        for name, symbol in SIZES.items()
        if name in described
    ]
    return ", ".join([*words, *fixed(dataset)])


def of_task(dataset: xr.Dataset) -> dict[str, Any]:
    """The task that a learning file is about."""
    described = json.loads(dataset.attrs.get("task", "{}"))
    return described if isinstance(described, dict) else {}


def fixed(dataset: xr.Dataset) -> list[str]:
    """Parameters of the network, or of a system of one's own, that have one value."""
    words = []
    for name, value in dataset.coords.items():
        symbol = SYMBOLS.get(str(name)) or value.attrs.get("symbol")
        known = value.ndim == 0 and np.issubdtype(value.dtype, np.number)
        if symbol and known and not np.isnan(value):
            words.append(f"${symbol} = {number(value)}$")
    return words


def number(value: Any) -> str:
    """A number as mathematical text."""
    return r"\infty" if np.isposinf(float(value)) else f"{float(value):.5g}"


def joined(*words: str) -> str:
    """Small print of several parts, of which some may be empty."""
    return "; ".join(filter(None, words))


def _table(dataset: xr.Dataset) -> dict[str, Any]:
    """The table [network] of the study that a file was computed from."""
    try:
        table = toml.loads(dataset.attrs.get("study", "")).get("network")
    except ValueError:
        return {}
    return table if isinstance(table, dict) else {}
