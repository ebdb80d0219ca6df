"""Commands that compute studies and look after their chunks."""

import json
import os
import shlex
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from statmech_attn import batches, extras, scan, storage, studies
from statmech_attn.cli.terminal.arguments import (
    AllowCode,
    Chunk,
    Data,
    DryRun,
    Engine,
    EngineName,
    LogFile,
    Output,
    Overwrite,
    Quiet,
    Replace,
    RunOutput,
    Scheduler,
    Settings,
    Study,
    Verbose,
    Workers,
)
from statmech_attn.cli.terminal.screen import err, out


def run(
    study: Study,
    output: RunOutput = None,
    set_: Settings = None,
    overwrite: Overwrite = False,
    dry_run: DryRun = False,
    chunk: Chunk = None,
    engine: Engine = EngineName.local,
    workers: Workers = None,
    scheduler: Scheduler = None,
    data: Data = None,
    allow_code: AllowCode = False,
    log_file: LogFile = None,
    quiet: Quiet = False,
    verbose: Verbose = False,
) -> None:
    """Compute a study and write its results to an HDF5 file.

    Finished parts are kept in the folder OUTPUT.chunks. After Ctrl-C, a kill or a crash
    the same command continues; several such commands at once share the work.

    Example: statmech-attn run analysis/demo_scan.toml -o scan.h5 --set run.steps=500

    On a cluster: statmech-attn run STUDY.toml -o scan.h5 --engine dask
    --scheduler tcp://node1:8786
    """
    from statmech_attn.cli.terminal import progress

    if quiet and verbose:
        raise typer.BadParameter("--quiet and --verbose exclude each other.")
    if output is None and not dry_run:
        raise typer.BadParameter("--output FILE.h5 is required, unless --dry-run.")
    _use_data(data)
    checked, text = studies.load(study, set_ or [], allow_code=allow_code)
    if output is not None:
        if log_file and os.path.realpath(log_file) == os.path.realpath(output):
            raise ValueError(f"{log_file}: is the output; name another --log-file.")
        storage.check_output(
            output, study=text, overwrite=overwrite, inputs=[study, *checked.files()]
        )
    batches.runtime.prepare()
    chosen = _engine(engine, workers, scheduler)
    if dry_run or output is None:
        _forecast(checked, text, output, chosen, chunk)
        return
    reporter = progress.reporter(err, log_file, quiet=quiet, verbose=verbose)
    with reporter as report:
        studies.compute(
            checked,
            text,
            output,
            report,
            overwrite=overwrite,
            engine=chosen,
            points_per_chunk=chunk,
        )
    if not quiet:
        out.say(f"wrote {output}")
        _print_summary(output)


def _forecast(
    checked: "studies.StudyTable",
    text: str,
    output: Path | None,
    engine: "scan.Engine",
    points_per_chunk: int | None,
) -> None:
    """What a run would take, and what of it is there already."""
    from statmech_attn.cli.texts.run_status import print_progress

    inputs = checked.inputs()
    build = partial(studies.work, checked)
    begun = output and studies.results.places(output)
    if begun and begun.begun:
        work = scan.folder.Folder.open(begun.chunks).work(build)
    else:
        work = build()  # which refuses files that do not fit
    out.say(f"the study is valid: {checked.kind}")
    workers = engine.workers_for(work)
    place = scan.earlier_runs.place(work, workers, text, inputs)
    estimate = scan.forecast.forecast(work, engine, points_per_chunk, place)
    scan.forecast.require_room(estimate, output or Path("here"))
    for line in estimate.lines():
        out.say(line)
    if output is not None:
        print_progress(studies.results.progress(output), out)


def _print_summary(file: Path) -> None:
    from statmech_attn.cli.texts.summary import print_summary

    with storage.opened(file) as dataset:
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
        raise ValueError(extras.needed("--engine dask", "dask", "dask")) from None
    if scheduler is not None:
        return distributed.at(scheduler)
    return distributed.local_cluster(workers or batches.usable_cores())


ChunkFolder = Annotated[
    Path, typer.Argument(help="The folder OUTPUT.chunks of a run, or its OUTPUT.")
]


def status(
    path: Annotated[
        Path,
        typer.Argument(
            help="The OUTPUT of a run, whether it exists or not, or OUTPUT.chunks."
        ),
    ],
    json_: Annotated[
        bool, typer.Option("--json", help="Print a JSON object instead of sentences.")
    ] = False,
    allow_code: AllowCode = False,
) -> None:
    """Show how far a run is, from any terminal or computer.

    Example: statmech-attn status scan.h5
    """
    from statmech_attn.cli.texts import run_status

    if studies.results.places(path).begun:
        batches.runtime.prepare()
    progress = studies.results.progress(path, allow_code=allow_code)
    if json_:
        typer.echo(json.dumps(run_status.as_dict(progress), indent=1))
    else:
        run_status.print_progress(progress, out)


def repair(folder: ChunkFolder, allow_code: AllowCode = False) -> None:
    """Verify all chunks of a run and put damaged ones aside, or seal a file anew.

    Claims of runs that have ended are released. Run the study again afterwards to
    compute what was put aside. A result without chunks that another program has opened
    for changes is read, and sealed as it is.

    Example: statmech-attn repair scan.h5.chunks
    """
    from statmech_attn.cli.texts.run_status import print_repairs

    if folder.is_file() and not scan.jobs.chunks_of(folder).exists():
        storage.reseal(folder)
        out.say(f"{folder}: sealed as it is; what it held before is not known")
        return
    batches.runtime.prepare()
    chunks, _, _ = studies.results.opened(folder, allow_code=allow_code)
    print_repairs(scan.status.repair(chunks), out)


def merge(
    folder: ChunkFolder,
    output: Output,
    overwrite: Overwrite = False,
    allow_code: AllowCode = False,
) -> None:
    """Write the HDF5 file of a run when all of its chunks have been computed.

    The chunks are kept.

    Example: statmech-attn merge scan.h5.chunks --output scan.h5
    """
    batches.runtime.prepare()
    chunks, study, work = studies.results.opened(folder, allow_code=allow_code)
    studies.results.merge(chunks, work, study, output, overwrite=overwrite)
    out.say(f"wrote {output}")


def slurm(
    study: Study,
    output: Output,
    set_: Settings = None,
    tasks: Annotated[int, typer.Option(help="How many tasks the job array has.")] = 10,
    time: Annotated[
        str, typer.Option(help="The time limit of one task, as [D-]HH:MM:SS.")
    ] = "04:00:00",
    cpus: Annotated[int, typer.Option(help="How many CPUs one task has.")] = 4,
    memory: Annotated[
        str | None,
        typer.Option(
            help="The memory of one task, for example 8G; by default twice what is "
            "forecast."
        ),
    ] = None,
    partition: Annotated[str | None, typer.Option(help="The SLURM partition.")] = None,
    account: Annotated[str | None, typer.Option(help="The SLURM account.")] = None,
    qos: Annotated[
        str | None, typer.Option(help="The SLURM quality of service.")
    ] = None,
    gpus: Annotated[
        str | None, typer.Option(help="The GPUs of one task, for example 1 or a100:1.")
    ] = None,
    setup: Annotated[
        Path | None,
        typer.Option(
            help="A shell script that every task sources first, for example to load "
            "modules."
        ),
    ] = None,
    script: Annotated[
        Path | None,
        typer.Option(help="The script to be written; by default OUTPUT.sh."),
    ] = None,
    overwrite: Replace = False,
    allow_code: AllowCode = False,
) -> None:
    """Write the script of a SLURM job array whose tasks share the work on a study.

    Example: statmech-attn slurm analysis/demo_scan.toml -o scan.h5 --tasks 20
    """
    settings = tuple(set_ or ())
    checked, _ = studies.load(study, settings, allow_code=allow_code)
    array = scan.slurm.Array(
        study,
        output,
        settings,
        tasks,
        time,
        cpus,
        memory,
        partition,
        account,
        qos,
        gpus,
        setup,
        allow_code=allow_code,
    )
    path = script or output.parent / f"{output.name}.sh"
    scan.slurm.check(array, path, overwrite)
    batches.runtime.prepare()
    engine = scan.engines.local.engine(cpus)
    work = studies.work(checked)
    forecast = scan.forecast.forecast(work, engine, None)
    shared = scan.forecast.chunk_size(work, forecast.workers * tasks, forecast.pilot)
    forecast = forecast._replace(points_per_chunk=shared)
    scan.slurm.write(array, path, forecast)
    out.say(scan.slurm.outlook(array, forecast))
    out.say(f"wrote {path}; submit it with")
    out.say(f"sbatch {shlex.quote(str(path))}")
