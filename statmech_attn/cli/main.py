"""`statmech-attn`: run studies, compare, draw and describe their files.

Whatever goes wrong is one line on stderr (`errors`); `--debug` shows where it arose.
Packages come to be when they are first asked for (`lazy`), and what else is slow to
import is imported by the commands: a bad study is refused before JAX is there.
"""

import json
import os
import shlex
import traceback
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from statmech_attn import (
    batches,
    comparison,
    dmft,
    plotting,
    scan,
    storage,
    studies,
    validation,
)
from statmech_attn.cli import errors
from statmech_attn.cli.terminal import Terminal, write_anything


out, err = Terminal(), Terminal(stderr=True)


class _Commands(TyperGroup):
    """The commands, and what is said when one ends with an exception."""

    def main(self, *args: Any, **options: Any) -> Any:
        write_anything()
        return super().main(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (Exception, KeyboardInterrupt) as error:
            if errors.of_the_command_line(error):
                raise
            if ctx.params["debug"]:
                err.print(traceback.format_exc(), highlight=False, soft_wrap=True)
            line, code = errors.described(error)
            err.say(f"statmech-attn: {line}")
            raise typer.Exit(code) from None


app = typer.Typer(
    cls=_Commands,
    help="Statistical mechanics of attention networks.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


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
    debug: Annotated[bool, typer.Option(help="Show where an error arose.")] = False,
) -> None:
    pass


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
    from statmech_attn.cli.progress import Bar

    _use_data(data)
    checked, text = studies.load(study, set_ or [])
    storage.check_output(
        output, study=text, overwrite=overwrite, inputs=[study, *checked.files()]
    )
    batches.runtime.prepare()
    chosen = _engine(engine, workers, scheduler)
    bar = Bar(err)
    try:
        studies.compute(
            checked,
            text,
            output,
            bar,
            overwrite=overwrite,
            engine=chosen,
            points_per_chunk=chunk,
        )
    finally:
        bar.close()
    out.say(f"wrote {output}")
    with storage.opened(output) as dataset:
        _print_summary(dataset)


def _print_summary(dataset) -> None:
    from statmech_attn.cli.summary import print_summary

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
    if name == EngineName.local:
        if scheduler is not None:
            raise ValueError("--scheduler needs --engine dask.")
        return scan.engines.local.engine(workers)
    if scheduler is not None and workers is not None:
        raise ValueError("--workers starts a local cluster; --scheduler has its own.")
    try:
        distributed = scan.engines.distributed
    except ModuleNotFoundError as error:
        if error.name not in ("cloudpickle", "dask", "distributed"):
            raise
        raise ValueError(
            "--engine dask needs dask: pip install 'statmech-attn[dask]'."
        ) from None
    if scheduler is not None:
        return distributed.at(scheduler)
    return distributed.local_cluster(workers or batches.usable_cores())


ChunkFolder = Annotated[
    Path, typer.Argument(help="Folder OUTPUT.chunks, or the OUTPUT it belongs to.")
]


@app.command()
def status(folder: ChunkFolder) -> None:
    """Say how far a run is: chunks done, who computes, what is left.

    Example: statmech-attn status scan.h5.chunks
    """
    from statmech_attn.cli.folders import print_status

    batches.runtime.prepare()
    found, _, work = studies.files.opened(folder)
    print_status(found, scan.status(found, work), out)


@app.command()
def repair(folder: ChunkFolder) -> None:
    """Verify every chunk, put damaged ones aside, free what ended runs had claimed.

    Run the study again afterwards to compute what was put aside.

    Example: statmech-attn repair scan.h5.chunks
    """
    from statmech_attn.cli.folders import print_repairs

    batches.runtime.prepare()
    print_repairs(scan.repair(studies.files.opened(folder)[0]), out)


@app.command()
def merge(folder: ChunkFolder, output: Output, overwrite: Overwrite = False) -> None:
    """Write the HDF5 file of a folder whose chunks are all done; the folder stays.

    Example: statmech-attn merge scan.h5.chunks --output scan.h5
    """
    batches.runtime.prepare()
    found, study, work = studies.files.opened(folder)
    studies.files.merge(found, work, study, output, overwrite=overwrite)
    out.say(f"wrote {output}")


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
    settings = tuple(set_ or ())
    checked, _ = studies.load(study, settings)
    array = scan.slurm.Array(
        study, output, settings, tasks, time, cpus, memory, partition
    )
    path = script or output.with_name(f"{output.name}.sh")
    scan.slurm.check(array, path)
    batches.runtime.prepare()
    engine = scan.engines.local.engine(cpus)
    found = scan.forecast.forecast(studies.work(checked), engine, None)
    scan.slurm.write(array, path, found)
    out.say(scan.slurm.outlook(array, found))
    out.say(f"wrote {path}; submit it with")
    out.say(f"sbatch {shlex.quote(str(path))}")


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
    inputs = (theory, *simulations)
    text = _comparison_study(theory, simulations)
    storage.check_output(output, study=text, overwrite=overwrite, inputs=inputs)
    found = comparison.compare(*map(_read, inputs))
    storage.write(output, found, study=text, kind="comparison", overwrite=overwrite)
    _print_summary(found)
    out.say(f"wrote {output}")


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
    text = _study_of("hysteresis", {"up": up, "down": down})
    storage.check_output(output, study=text, overwrite=overwrite, inputs=(up, down))
    found = studies.compare_sweeps(_read(up), _read(down))
    storage.write(output, found, study=text, overwrite=overwrite)
    _print_summary(found)
    out.say(f"wrote {output}")


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
    batches.runtime.prepare()
    storage.require_no_input(output, [file])
    dataset = _read(file)
    found = studies.rematch(dataset, matching, furthest, file.parent)
    study, keys = found.attrs["study"], storage.info(file).keys
    storage.write(output, found, study=study, keys=keys, overwrite=overwrite)
    _print_summary(found)
    out.say(f"wrote {output}")


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
    for path in plotting.draw(_read(file), output):
        out.say(f"wrote {path}")


@app.command()
def info(
    file: Annotated[Path, typer.Argument(help="HDF5 file of any kind.")],
    check: Annotated[bool, typer.Option(help="Verify the checksums as well.")] = False,
) -> None:
    """Say what a file is, how it was made and what it found.

    Example: statmech-attn info scan.h5
    """
    from statmech_attn.cli.summary import print_info
    from statmech_attn.layout import require_layout

    count = storage.check(file) if check else None
    print_info(storage.info(file), out)
    with storage.opened(file) as dataset:
        require_layout(dataset, file)
        _print_summary(dataset)
    if count is not None:
        out.say(f"checksums: all match, {count} variables")


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
    from functools import partial

    from statmech_attn.cli.progress import DownloadBar
    from statmech_attn.tasks import downloads, images

    downloads.check(names)
    folder = data if data is not None else images.data_folder()
    progress = partial(DownloadBar, err)
    for name in names:
        for path, new in downloads.fetch(name, folder, progress=progress):
            out.say(f"wrote {path}" if new else f"{path}: already there")


@app.command()
def schema(
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="JSON file to write; default: stdout."),
    ] = None,
    overwrite: Annotated[bool, typer.Option(help="Replace an existing file.")] = False,
) -> None:
    """Write the JSON schema of study files, with which editors complete and check them.

    A study names it in its first line: #:schema FILE

    Example: statmech-attn schema --output study.schema.json
    """
    text = json.dumps(studies.reference.schema(), indent=1, ensure_ascii=False) + "\n"
    if output is None:
        typer.echo(text, nl=False)
        return
    if storage.check_place(output) and not overwrite:
        raise ValueError(f"{output}: exists; choose another, or pass --overwrite.")
    output.write_text(text, encoding="utf-8")
    out.say(f"wrote {output}")


@app.command()
def presets() -> None:
    """List the pattern presets that come with the package."""
    for name in dmft.presets():
        file = dmft.load(name)
        out.say(
            f"{name}: M = {file.patterns.n_patterns} patterns, "
            f"{file.patterns.n_classes} site classes, context C = {file.context}, "
            f"N_p = {file.patterns.n_bits}, gamma = {file.gamma:.6g}, "
            f"epsilon = {file.epsilon:g}"
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
    from statmech_attn.cli import validation as report

    report.check_output(output, overwrite=overwrite)
    rows = validation.select(only or [])
    batches.runtime.prepare()
    found = report.measure(rows, err)
    report.print_table(found, out)
    if output is not None:
        report.write(found, output)
        out.say(f"wrote {output}")
    if any(line.verdict != "ok" for line in found):
        raise typer.Exit(2)


PACKED = 2**28, 16  # bytes that any file may unpack to, or so many times its size


def _read(file: Path):
    """All of a file, unless it is made to fill the memory or lacks something.

    Raises:
        ValueError: it unpacks to far more than it takes on the disk, or is no whole
            file of its kind.
    """
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
