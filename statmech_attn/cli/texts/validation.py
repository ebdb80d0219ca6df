"""The table of reference systems: run it, print it."""

import platform
from collections.abc import Callable, Sequence
from datetime import datetime, UTC

import numpy as np
from rich.table import Table

from statmech_attn.cli.terminal.screen import Terminal
from statmech_attn.validation import Comparison, judge, Row, run_row


TOLD_ONCE = ("system", "time", "source")  # in the first line of a system
COLUMNS: dict[str, Callable[[Comparison], str]] = {
    "system": lambda line: line.name,
    "quantity": lambda line: line.quantity,
    "measured": lambda line: _value(line),
    "reference": lambda line: _text(line.reference),
    "unit": lambda line: line.unit,
    "deviation": lambda line: _of_number(line, f"{line.deviation:+.2f}"),
    "allowed": lambda line: _of_number(line, f"{line.allowed:.2f}"),
    "verdict": lambda line: line.verdict,
    "time": lambda line: f"{line.seconds:.1f} s",
    "source": lambda line: line.source,
}
LEFT = ("system", "quantity", "unit", "verdict", "source")
WIDTH = 180  # of the longest line; a narrower terminal wraps it


def measure(rows: Sequence[Row], console: Terminal) -> list[Comparison]:
    """Run all rows, naming the one in progress."""
    results = []
    with console.status("") as status:
        for number, row in enumerate(rows, 1):
            status.update(f"{number} of {len(rows)}: {row.name}")
            results.append(run_row(row))
    return judge(results)


def print_table(comparisons: Sequence[Comparison], console: Terminal) -> None:
    """One line for every quantity, and the sum."""
    table = Table(box=None, pad_edge=False, title="reference systems")
    for column in COLUMNS:
        side = "left" if column in LEFT else "right"
        table.add_column(column, justify=side, no_wrap=True)
    last = None
    for line in comparisons:
        again = TOLD_ONCE if line.name == last else ()
        last = line.name
        cells = ["" if x in again else cell(line) for x, cell in COLUMNS.items()]
        table.add_row(*cells, style=None if line.verdict == "ok" else "bold red")
    wide = max(console.width, WIDTH)
    Terminal(file=console.file, width=wide, highlight=False).print(table)
    birth = ", ".join(f"{name} {value}" for name, value in _birth().items())
    console.say(f"{summary(comparisons)} ({birth})")


def summary(comparisons: Sequence[Comparison]) -> str:
    """How many values agree, and what the deviations mean."""
    missed = [line for line in comparisons if line.verdict != "ok"]
    seconds = sum({line.name: line.seconds for line in comparisons}.values())
    names = ", ".join(dict.fromkeys(line.name for line in missed))
    agreeing = len(comparisons) - len(missed)
    head = f"{agreeing} of {len(comparisons)} agree in {seconds:.0f} s"
    failures = {line.name: line.failure for line in comparisons if line.failure}
    failed = "".join(f" {name} failed: {why}" for name, why in failures.items())
    return (
        f"{head}{'; not: ' + names if missed else ''}. Deviations are in standard "
        "errors, or in tolerances where only 1 is allowed."
        f"{failed}"
    )


def _of_number(line: Comparison, text: str) -> str:
    return "" if isinstance(line.value, str) else text


def _value(line: Comparison) -> str:
    if isinstance(line.value, str) or not line.error > 0:
        return _text(line.value)
    digits = max(0, 1 - int(np.floor(np.log10(line.error))))
    return f"{line.value:.{digits}f} ± {line.error:.{digits}f}"


def _text(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:.8g}"


def _birth() -> dict[str, str]:
    """What computed the table, and when."""
    import jax

    from statmech_attn import __version__

    return {
        "statmech_attn": __version__,
        "jax": jax.__version__,
        "device": jax.devices()[0].device_kind,
        "platform": platform.platform(),
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
    }
