"""Commands that read result files: comparisons, figures, summaries."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from statmech_attn import batches, comparison, dynamics, plotting, storage
from statmech_attn.cli.terminal import errors
from statmech_attn.cli.terminal.arguments import (
    Output,
    output_option,
    Overwrite,
)
from statmech_attn.cli.terminal.screen import out


class Format(StrEnum):
    """Values of --format."""

    png = "png"
    pdf = "pdf"
    svg = "svg"
    eps = "eps"


def compare(
    theory: Annotated[
        Path,
        typer.Argument(
            help="The file of the theory: trajectories or order parameters."
        ),
    ],
    simulations: Annotated[
        list[Path],
        typer.Argument(help="The file of a simulation, or files of posteriors."),
    ],
    output: Output,
    overwrite: Overwrite = False,
) -> None:
    """Compare theory with simulation and give the differences in standard errors.

    Example: statmech-attn compare theory.h5 simulation.h5 --output agreement.h5
    """
    inputs = (theory, *simulations)
    text = _comparison_study(theory, simulations)
    storage.check_output(output, study=text, overwrite=overwrite, inputs=inputs)
    batches.runtime.prepare()
    read = [*map(_read, inputs)]
    named = ", ".join(map(str, inputs))
    with errors.of_file(named, "a comparison cannot be made"):
        agreement = comparison.compare(*read)
    storage.write(output, agreement, study=text, kind="comparison", overwrite=overwrite)
    _print_summary(agreement)
    out.say(f"wrote {output}")


def hysteresis(
    up: Annotated[Path, typer.Argument(help='Scan with start = "continue-up".')],
    down: Annotated[Path, typer.Argument(help='Scan with start = "continue-down".')],
    output: Output,
    overwrite: Overwrite = False,
) -> None:
    """Find where an upward and a downward sweep of a parameter differ (hysteresis).

    Example: statmech-attn hysteresis up.h5 down.h5 --output hysteresis.h5
    """
    text = _study_of("hysteresis", {"up": up, "down": down})
    storage.check_output(output, study=text, overwrite=overwrite, inputs=(up, down))
    batches.runtime.prepare()
    intervals = dynamics.diagrams.compare_sweeps(_read(up), _read(down))
    storage.write(output, intervals, study=text, overwrite=overwrite)
    _print_summary(intervals)
    out.say(f"wrote {output}")


def grid(
    file: Annotated[
        Path, typer.Argument(help="The file of a refined bifurcation study.")
    ],
    output: Output,
    overwrite: Overwrite = False,
) -> None:
    """Put a refined scan on its finest grid; gaps take the values of a neighbour.

    Example: statmech-attn grid plane.h5 --output gridded.h5
    """
    storage.require_no_input(output, [file])
    text = _study_of("bifurcation", {"grid": file})
    storage.check_output(output, study=text, overwrite=overwrite, inputs=[file])
    batches.runtime.prepare()
    gridded = dynamics.diagrams.on_grid(_read(file))
    storage.write(output, gridded, study=text, overwrite=overwrite)
    out.say(f"wrote {output}")


def figure(
    file: Annotated[Path, typer.Argument(help="An HDF5 file of any kind.")],
    output: Annotated[Path, output_option("The folder for the figures.")],
    format_: Annotated[
        list[Format] | None,
        typer.Option(
            "--format",
            help="The format of the files; by default png and pdf. This option may be "
            "repeated.",
        ),
    ] = None,
    dpi: Annotated[
        float | None,
        typer.Option(help="The resolution in pixels per inch.", min=10, max=2400),
    ] = None,
    size: Annotated[
        str,
        typer.Option(
            help="The size: single or double for the columns of a page, or inches such "
            "as 5 or 5x3.5."
        ),
    ] = "",
    range_: Annotated[
        list[str] | None,
        typer.Option(
            "--range",
            help="Draw a part of the file only, for example beta=1.2:1.3. This option "
            "may be repeated.",
        ),
    ] = None,
    only: Annotated[
        list[str] | None,
        typer.Option(
            help="Draw these pictures only, for example bifurcation. This option may "
            "be repeated."
        ),
    ] = None,
) -> None:
    """Draw the figures of a file.

    Example: statmech-attn figure scan.h5 -o figures --only bifurcation --format svg
    """
    from statmech_attn.cli.commands import figures

    if output.suffix[1:] in {*Format} and not output.is_dir():
        raise ValueError(
            f"{output}: would be a folder, which pictures are written to; name one, "
            f"and --format {output.suffix[1:]} for this format alone."
        )
    inches = figures.sized(size)
    formats = [form.value for form in format_ or (Format.png, Format.pdf)]
    dataset = figures.within(_read(file), range_ or [])
    chosen = figures.parts(dataset, only or [])
    with errors.of_file(file, "a picture cannot be drawn"):
        for name, picture in plotting.pictures(dataset, chosen):
            figure = figures.resized(picture, inches)
            for path in plotting.save(figure, output, name, formats, dpi):
                out.say(f"wrote {path}")


def info(
    file: Annotated[Path, typer.Argument(help="An HDF5 file of any kind.")],
) -> None:
    """Verify a file and describe it: its study, how it was computed, main results.

    Example: statmech-attn info scan.h5
    """
    from statmech_attn.cli.texts.summary import print_info
    from statmech_attn.layout import require_layout

    described = storage.info(file)
    with storage.opened(file) as dataset:
        require_layout(dataset, file)
        with errors.of_file(file, "no summary can be given"):
            print_info(described, out)
            _print_summary(dataset)


def export(
    file: Annotated[Path, typer.Argument(help="An HDF5 file of any kind.")],
    csv: Annotated[
        Path | None, typer.Option(help="The CSV file to be written.")
    ] = None,
    json: Annotated[
        Path | None, typer.Option(help="The JSON file to be written.")
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="The same, as the ending of this name says: .csv or .json.",
        ),
    ] = None,
    rows: Annotated[
        str,
        typer.Option(
            help="A row for every combination of these dimensions, such as beta,time."
        ),
    ] = "",
    overwrite: Annotated[
        bool, typer.Option("--overwrite", help="Replace files that exist.")
    ] = False,
) -> None:
    """Write the results of a file as a table (CSV or JSON).

    Example: statmech-attn export scan.h5 --csv scan.csv
    """
    from statmech_attn.cli.commands import exports

    targets = {"csv": csv, "json": json}
    if output is not None:
        if targets.get(form := output.suffix[1:], output) is not None:
            raise typer.BadParameter("-o FILE ends in .csv or .json, each once.")
        targets[form] = output
    chosen = {form: path for form, path in targets.items() if path is not None}
    if not chosen:
        raise typer.BadParameter("give --csv FILE or --json FILE.")
    exports.check(file, chosen, overwrite=overwrite)
    names = [name.strip() for name in rows.split(",") if name.strip()]
    with errors.of_file(file, "it cannot be exported"):
        for line in exports.write(file, chosen, names):
            out.say(line)


PACKED = 2**28, 16  # bytes that any file may unpack to, or so many times its size


def _read(file: Path):
    """All of a file, unless it is made to fill the memory or lacks something."""
    from statmech_attn.layout import require_layout
    from statmech_attn.reporting import size

    with storage.opened(file) as dataset:
        require_layout(dataset, file)
        unpacked, stored = dataset.nbytes, file.stat().st_size
    if unpacked > max(PACKED[0], PACKED[1] * stored):
        raise ValueError(
            f"{file}: takes {size(stored)} and would unpack to {size(unpacked)}; from "
            "Python, storage.opened reads parts of it."
        )
    return storage.read(file)


def _print_summary(dataset) -> None:
    from statmech_attn.cli.texts.summary import print_summary

    print_summary(dataset, out)


def _comparison_study(theory: Path, simulations: list[Path]) -> str:
    names = ["theory", "simulation"]
    names += [f"simulation_{number}" for number in range(2, len(simulations) + 1)]
    return _study_of(
        "comparison", dict(zip(names, (theory, *simulations), strict=True))
    )


def _study_of(kind: str, files: dict[str, Path]) -> str:
    """What a file that is made from others is: their names and digests."""
    lines = [f'kind = "{kind}"']
    for name, path in files.items():
        digest = storage.study_digest(storage.info(path).study)
        lines.append(f'\n[{name}]\nfile = "{path.name}"\nstudy_digest = "{digest}"')
    return "\n".join(lines) + "\n"
