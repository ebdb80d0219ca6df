"""What results of this package do in a notebook: `dataset.statmech`.

An accessor and no functions: results are data sets of xarray, a user meets them as
objects, and finds what they can do by completion.
"""

import base64
import html
import io
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd
import xarray as xr

from statmech_attn import cli, dynamics, plotting, storage
from statmech_attn.presentation import png


if TYPE_CHECKING:
    from matplotlib.figure import Figure


NAME = "statmech"
STYLE = (  # of texts, beside that of a notebook
    "font-family: monospace; line-height: 1.3; white-space: pre-wrap; "
    "word-break: normal"
)


class Pictures(dict[str, "Figure"]):
    """Figures by name; a notebook shows them one below the other."""

    def _repr_html_(self) -> str:
        return "".join(_image(name, figure) for name, figure in self.items())


class Text(str):
    """A text that is shown as it is printed."""

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return f'<pre style="{STYLE}">{html.escape(self)}</pre>'


class Accessor:
    """Methods of a data set that this package computed or read.

    Example:
        >>> import statmech_attn
        >>> statmech_attn.setup()
        >>> study = {"kind": "trajectory", "parameters": {"beta": 1.4}}
        >>> result = statmech_attn.run(study, progress=False)
        >>> print(result.statmech.describe())
        trajectory: beta 1, time 1000, pattern 3
    """

    def __init__(self, dataset: xr.Dataset):
        self._dataset = dataset

    def plot(self) -> Pictures:
        """All pictures of the result by name, as `statmech-attn figure` draws them.

        Raises:
            ValueError: a kind of result that has no pictures.
        """
        return Pictures(plotting.pictures(self._dataset))

    def describe(self) -> Text:
        """What was found, as `statmech-attn info` says it."""
        plain = {"force_jupyter": False, "force_terminal": False, "color_system": None}
        console = cli.Terminal(file=io.StringIO(), width=100, **plain)
        cli.print_summary(self._dataset, console)
        assert isinstance(console.file, io.StringIO)
        return Text(console.file.getvalue().rstrip())

    def explain(self, **values: float) -> Text | list[Text]:
        """Why a point of a scan has its phase, as `scan.statmech.explain(beta=1.27)`.

        See `dynamics.diagrams.explain`.
        """
        sentence = dynamics.diagrams.explain(self._dataset, **values)
        return (
            Text(sentence)
            if isinstance(sentence, str)
            else [Text(text) for text in sentence]
        )

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the result with its study to a file of this package (`storage.write`).

        Args:
            path: file that is written; folders on the way are made.
            overwrite: replace a file of this package that holds something else.

        Raises:
            StorageError: the destination is taken or cannot be written.
        """
        attributes = self._dataset.attrs
        storage.write(
            path,
            self._dataset,
            study=attributes.get("study", ""),
            kind=attributes.get("kind"),
            overwrite=overwrite,
            **storage.origin(attributes),
        )

    def grid(self, *names: str) -> xr.Dataset:
        """A refined scan on its finest grid, see `dynamics.diagrams.on_grid`."""
        return dynamics.diagrams.on_grid(self._dataset, *names)

    def table(self, *names: str) -> pd.DataFrame:
        """A row for every point, without samples, times and other axes of a point.

        Variables with further axes have a column for every place on them, such as
        `lyapunov_1`, if these are few.

        Args:
            names: variables; when omitted all that have a number for every point.
        """
        return storage.table(self._dataset, *names)


def register_accessor() -> None:
    """Let data sets of xarray have the accessor."""
    if not hasattr(xr.Dataset, NAME):
        xr.register_dataset_accessor(NAME)(Accessor)


def _image(name: str, figure: "Figure") -> str:
    data = base64.b64encode(png(figure)).decode()
    return f'<img alt="{html.escape(name)}" src="data:image/png;base64,{data}">'
