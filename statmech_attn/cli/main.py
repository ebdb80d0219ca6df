"""`statmech-attn`: run studies, compare, draw and describe their files.

Errors are one line on stderr and exit code 1; `--traceback` shows where they arose.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from statmech_attn.runtime import prepare


app = typer.Typer(
    help="Statistical mechanics of attention networks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
out = Console()
err = Console(stderr=True)
_show_traceback = False


class EngineName(StrEnum):
    """Values of --engine."""

    local = "local"
    dask = "dask"


Output = Annotated[Path, typer.Option("--output", "-o", help="HDF5 file to write.")]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", help="Override a key, e.g. run.steps=500; repeatable."),
]
Overwrite = Annotated[bool, typer.Option(help="Replace an output of another study.")]
Data = Annotated[
    Path | None,
    typer.Option(help="Folder of the image data; default: $STATMECH_ATTN_DATA."),
]


@app.callback()
def _main(
    traceback: Annotated[bool, typer.Option(help="Show where an error arose.")] = False,
) -> None:
    global _show_traceback
    _show_traceback = traceback


@app.command()
def run(
    study: Annotated[Path, typer.Argument(help="Study file (TOML).")],
    output: Output,
    set_: Settings = None,
    overwrite: Overwrite = False,
    chunk: Annotated[
        int | None,
        typer.Option(help="Points computed between two writes to disk.", min=1),
    ] = None,
    engine: Annotated[
        EngineName, typer.Option(help="Threads of this process, or a dask cluster.")
    ] = EngineName.local,
    workers: Annotated[
        int | None,
        typer.Option(help="Chunks at once: threads, or processes of dask.", min=1),
    ] = None,
    scheduler: Annotated[
        str | None,
        typer.Option(help="Address of a dask scheduler that runs; else a local one."),
    ] = None,
    data: Data = None,
) -> None:
    """Compute a study and write one HDF5 file.

    What is done is kept beside the output, in OUTPUT.chunks: after Ctrl-C, a kill or a
    crash the same command goes on from there, and several at once share the work.

    Example: statmech-attn run analysis/demo_scan.toml -o scan.h5 --set run.steps=500

    On a cluster: statmech-attn run STUDY.toml -o scan.h5 --engine dask
    --scheduler tcp://node1:8786
    """
    with _one_line_errors():
        from statmech_attn import storage, studies
        from statmech_attn.cli.progress import Bar
        from statmech_attn.cli.summary import print_summary
        from statmech_attn.studies.files import compute

        _use_data(data)
        checked, text = studies.load(study, set_ or [])
        storage.check_output(output, study=text, overwrite=overwrite)
        prepare()
        chosen = _engine(engine, workers, scheduler)
        bar = Bar(err)
        try:
            compute(
                checked, text, output, bar,
                overwrite=overwrite, engine=chosen, points_per_chunk=chunk,
            )  # fmt: skip
        finally:
            bar.close()
        out.print(f"wrote {output}", highlight=False, soft_wrap=True)
        with storage.opened(output) as dataset:
            print_summary(dataset, out)


def _use_data(folder: Path | None) -> None:
    """Make a folder that of the image data, for this process and those it starts."""
    if folder is None:
        return
    if not folder.is_dir():
        raise ValueError(
            f"--data: there is no folder {folder}; statmech-attn download makes it."
        )
    os.environ["STATMECH_ATTN_DATA"] = str(folder.absolute())


def _engine(name: EngineName, workers: int | None, scheduler: str | None):
    """What computes the chunks."""
    from statmech_attn.scan.engines import local
    from statmech_attn.scan.lanes import usable_cores

    if name == EngineName.local:
        if scheduler is not None:
            raise ValueError("--scheduler needs --engine dask.")
        return local.engine(workers)
    if scheduler is not None and workers is not None:
        raise ValueError("--workers starts a local cluster; --scheduler has its own.")
    try:
        from statmech_attn.scan.engines import distributed
    except ModuleNotFoundError as error:
        if error.name not in ("cloudpickle", "dask", "distributed"):
            raise
        raise ValueError(
            "--engine dask needs dask: pip install 'statmech-attn[dask]'."
        ) from None
    if scheduler is not None:
        return distributed.at(scheduler)
    return distributed.local_cluster(workers or usable_cores())


ChunkFolder = Annotated[
    Path, typer.Argument(help="Folder OUTPUT.chunks, or the OUTPUT it belongs to.")
]


@app.command()
def status(folder: ChunkFolder) -> None:
    """Say how far a run is: chunks done, who computes, what is left.

    Example: statmech-attn status scan.h5.chunks
    """
    with _one_line_errors():
        from statmech_attn.cli.folders import print_status
        from statmech_attn.scan.status import status as look
        from statmech_attn.studies import files

        prepare()
        found, _, work = files.opened(folder)
        print_status(found, look(found, work), out)


@app.command()
def repair(folder: ChunkFolder) -> None:
    """Verify every chunk, put damaged ones aside, free what ended runs had claimed.

    Run the study again afterwards to compute what was put aside.

    Example: statmech-attn repair scan.h5.chunks
    """
    with _one_line_errors():
        from statmech_attn.cli.folders import print_repairs
        from statmech_attn.scan.status import repair as put_in_order
        from statmech_attn.studies import files

        prepare()
        print_repairs(put_in_order(files.opened(folder)[0]), out)


@app.command()
def merge(folder: ChunkFolder, output: Output, overwrite: Overwrite = False) -> None:
    """Write the HDF5 file of a folder whose chunks are all done; the folder stays.

    Example: statmech-attn merge scan.h5.chunks --output scan.h5
    """
    with _one_line_errors():
        from statmech_attn.studies import files

        prepare()
        found, study, work = files.opened(folder)
        files.merge(found, work, study, output, overwrite=overwrite)
        out.print(f"wrote {output}", highlight=False, soft_wrap=True)


@app.command()
def slurm(
    study: Annotated[Path, typer.Argument(help="Study file (TOML).")],
    output: Output,
    set_: Settings = None,
    tasks: Annotated[int, typer.Option(help="Tasks of the array.")] = 10,
    time: Annotated[
        str, typer.Option(help="Limit of one task, [D-]HH:MM:SS.")
    ] = "04:00:00",
    cpus: Annotated[int, typer.Option(help="CPUs of one task.")] = 4,
    memory: Annotated[
        str | None, typer.Option(help="Memory of one task, e.g. 8G.")
    ] = None,
    partition: Annotated[str | None, typer.Option(help="SLURM partition.")] = None,
    script: Annotated[
        Path | None, typer.Option(help="Script to write; default: OUTPUT.sh.")
    ] = None,
) -> None:
    """Write a SLURM job array whose tasks share the chunks of a study.

    Example: statmech-attn slurm analysis/demo_scan.toml -o scan.h5 --tasks 20
    """
    with _one_line_errors():
        import shlex

        from statmech_attn import studies
        from statmech_attn.scan import slurm
        from statmech_attn.scan.engines import local
        from statmech_attn.scan.forecast import forecast

        settings = tuple(set_ or ())
        checked, _ = studies.load(study, settings)
        array = slurm.Array(
            study, output, settings, tasks, time, cpus, memory, partition
        )
        path = script or output.with_name(f"{output.name}.sh")
        slurm.check(array, path)
        prepare()
        found = forecast(studies.work(checked), local.engine(cpus), None)
        slurm.write(array, path, found)
        out.print(slurm.outlook(array, found), highlight=False, soft_wrap=True)
        out.print(f"wrote {path}; submit it with", highlight=False, soft_wrap=True)
        out.print(f"sbatch {shlex.quote(str(path))}", highlight=False, soft_wrap=True)


@app.command()
def compare(
    theory: Annotated[
        Path, typer.Argument(help="File of trajectories or order parameters.")
    ],
    simulations: Annotated[
        list[Path], typer.Argument(help="Monte Carlo file, or posterior files.")
    ],
    output: Output,
    overwrite: Overwrite = False,
) -> None:
    """Compare theory with simulation in standard errors; print and store the table.

    Example: statmech-attn compare theory.h5 simulation.h5 --output agreement.h5
    """
    with _one_line_errors():
        from statmech_attn import comparison, storage
        from statmech_attn.cli.summary import print_summary

        files = [storage.read(path) for path in (theory, *simulations)]
        found = comparison.compare(*files)
        text = _comparison_study(theory, simulations)
        storage.write(output, found, study=text, kind="comparison", overwrite=overwrite)
        print_summary(found, out)
        out.print(f"wrote {output}", highlight=False, soft_wrap=True)


@app.command()
def hysteresis(
    up: Annotated[Path, typer.Argument(help='Scan with start = "continue-up".')],
    down: Annotated[Path, typer.Argument(help='Scan with start = "continue-down".')],
    output: Output,
    overwrite: Overwrite = False,
) -> None:
    """Find where two sweeps of a parameter differ; print and store the intervals.

    Example: statmech-attn hysteresis up.h5 down.h5 --output hysteresis.h5
    """
    with _one_line_errors():
        from statmech_attn import storage, studies
        from statmech_attn.cli.summary import print_summary

        found = studies.compare_sweeps(storage.read(up), storage.read(down))
        text = _study_of("hysteresis", {"up": up, "down": down})
        storage.write(output, found, study=text, overwrite=overwrite)
        print_summary(found, out)
        out.print(f"wrote {output}", highlight=False, soft_wrap=True)


@app.command()
def rematch(
    file: Annotated[Path, typer.Argument(help="File of a basins study.")],
    output: Output,
    matching: Annotated[str, typer.Option(help="distance or flow.")] = "distance",
    furthest: Annotated[
        float, typer.Option(help="Largest distance, in units of the points' extent.")
    ] = 0.1,
    overwrite: Overwrite = False,
) -> None:
    """Number the attractors of a basins file anew, without following any start.

    Example: statmech-attn rematch basins.h5 --matching distance --output again.h5
    """
    with _one_line_errors():
        from statmech_attn import storage, studies
        from statmech_attn.cli.summary import print_summary

        prepare()
        dataset = storage.read(file)
        found = studies.rematch(dataset, matching, furthest, file.parent)
        study, keys = found.attrs["study"], storage.info(file).keys
        storage.write(output, found, study=study, keys=keys, overwrite=overwrite)
        print_summary(found, out)
        out.print(f"wrote {output}", highlight=False, soft_wrap=True)


@app.command()
def figure(
    file: Annotated[Path, typer.Argument(help="HDF5 file of any kind.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder for the figures.")
    ],
) -> None:
    """Draw what a file holds, as PNG and PDF.

    Example: statmech-attn figure scan.h5 --output figures
    """
    with _one_line_errors():
        from statmech_attn import plotting, storage

        for path in plotting.draw(storage.read(file), output):
            out.print(f"wrote {path}", highlight=False, soft_wrap=True)


@app.command()
def info(
    file: Annotated[Path, typer.Argument(help="HDF5 file of any kind.")],
    check: Annotated[bool, typer.Option(help="Verify the checksums as well.")] = False,
) -> None:
    """Say what a file is, how it was made and what it found.

    Example: statmech-attn info scan.h5
    """
    with _one_line_errors():
        from statmech_attn import storage
        from statmech_attn.cli.summary import print_info, print_summary

        count = storage.check(file) if check else None
        print_info(storage.info(file), out)
        with storage.opened(file) as dataset:
            print_summary(dataset, out)
        if count is not None:
            out.print(f"checksums: all match, {count} variables", highlight=False)


@app.command()
def download(
    names: Annotated[
        list[str],
        typer.Argument(help="omniglot, omniglot-small, mnist, fashion-mnist."),
    ],
    data: Data = None,
) -> None:
    """Fetch published images, verify their SHA-256 and keep them in the data folder.

    Files that are there already are not fetched again.

    Example: statmech-attn download omniglot mnist fashion-mnist --data images
    """
    with _one_line_errors():
        from functools import partial

        from statmech_attn.cli.progress import DownloadBar
        from statmech_attn.tasks import downloads, images

        downloads.check(names)
        folder = data if data is not None else images.data_folder()
        progress = partial(DownloadBar, err)
        for name in names:
            for path, new in downloads.fetch(name, folder, progress=progress):
                said = f"wrote {path}" if new else f"{path}: already there"
                out.print(said, highlight=False, soft_wrap=True)


@app.command()
def presets() -> None:
    """List the pattern presets that come with the package."""
    with _one_line_errors():
        from statmech_attn import dmft

        for name in dmft.presets():
            file = dmft.load(name)
            out.print(
                f"{name}: M = {file.patterns.n_patterns} patterns, "
                f"{file.patterns.n_classes} site classes, context C = {file.context}, "
                f"N_p = {file.patterns.n_bits}, gamma = {file.gamma:.6g}, "
                f"epsilon = {file.epsilon:g}",
                highlight=False,
                soft_wrap=True,
            )


@app.command()
def validate(
    only: Annotated[
        list[str] | None,
        typer.Option(help="Systems whose name contains this; repeatable."),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="JSON file, or a Markdown table (.md)."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
) -> None:
    """Measure reference systems and compare with their known values.

    Exit code 2 if any value is farther from its reference than chance allows.

    Example: statmech-attn validate --only henon --output validation.json
    """
    with _one_line_errors():
        from statmech_attn import validation
        from statmech_attn.cli import validation as report

        report.check_output(output, overwrite=overwrite)
        rows = validation.select(only or [])
        prepare()
        found = report.measure(rows, err)
        report.print_table(found, out)
        if output is not None:
            report.write(found, output)
            out.print(f"wrote {output}", highlight=False, soft_wrap=True)
    if any(line.verdict != "ok" for line in found):
        raise typer.Exit(2)


@contextmanager
def _one_line_errors() -> Iterator[None]:
    """Turn expected errors into one line on stderr and an exit code."""
    from statmech_attn.scan.signals import Unfinished

    try:
        yield
    except (ValueError, OSError, RuntimeError) as error:
        if _show_traceback:
            raise
        lines = str(error).splitlines() or [type(error).__name__]
        if isinstance(error, FileNotFoundError) and error.filename:
            lines = [f"{error.filename}: no such file."]
        elif isinstance(error, OSError) and error.filename and error.strerror:
            lines = [f"{error.filename}: {error.strerror}."]
        typer.echo(f"statmech-attn: {lines[0]}", err=True)
        raise typer.Exit(1) from None
    except Unfinished as stopped:
        typer.echo(f"statmech-attn: {stopped}", err=True)
        raise typer.Exit(stopped.exit_code) from None
    except KeyboardInterrupt:
        typer.echo("statmech-attn: interrupted; nothing was written.", err=True)
        raise typer.Exit(130) from None


def _comparison_study(theory: Path, simulations: list[Path]) -> str:
    names = ["theory", "simulation"]
    names += [f"simulation_{number}" for number in range(2, len(simulations) + 1)]
    return _study_of(
        "comparison", dict(zip(names, (theory, *simulations), strict=True))
    )


def _study_of(kind: str, files: dict[str, Path]) -> str:
    """What a file that is made from others is: their names and digests."""
    from statmech_attn import storage

    lines = [f'kind = "{kind}"']
    for name, path in files.items():
        digest = storage.study_digest(storage.info(path).study)
        lines.append(f'\n[{name}]\nfile = "{path.name}"\nstudy_digest = "{digest}"')
    return "\n".join(lines) + "\n"
