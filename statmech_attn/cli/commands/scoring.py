"""The command that scores the heads of a trained network."""

import math
import re
from pathlib import Path
from typing import Annotated

import typer

from statmech_attn import batches, bpkr, inputs, plotting, storage, tasks
from statmech_attn.cli.terminal.arguments import output_option, Overwrite
from statmech_attn.cli.terminal.screen import out


Arrays = Annotated[
    Path,
    typer.Argument(help="Arrays of a network: .npz, .h5 or .hdf5 (docs/data.md)."),
]
ScoreOutput = Annotated[
    Path | None,
    output_option(
        "The HDF5 file to be written; by default FILE-scores.h5 beside FILE."
    ),
]
Queries = Annotated[
    str,
    typer.Option(
        help="Whether queries are rows of the attention matrices, as in PyTorch "
        "and flax, or columns."
    ),
]
Readout = Annotated[
    str,
    typer.Option(help="The token that is read: first, last, mean or its number."),
]
Skip = Annotated[
    str,
    typer.Option(
        help="The factors of the skip connections: one number, or one for each "
        "layer with commas; 0 for none."
    ),
]
Heads = Annotated[
    str,
    typer.Option(
        help="The heads that are taken, by name or as layer.head, with commas, "
        "for example 1.2,2.1; all heads of a layer of which none is named."
    ),
]
Classes = Annotated[
    bool,
    typer.Option(
        "--classes",
        help="Y holds numbers of classes: two become -1 and 1, more become one-hot "
        "columns.",
    ),
]
Width = Annotated[
    float | None,
    typer.Option(
        help="The width of the network of the theory; by default the number of "
        "features."
    ),
]
Temperature = Annotated[
    float,
    typer.Option(
        help="The variance of the noise of the labels; inputs are scaled such that "
        "the prior of f has mean variance 1."
    ),
]
Resamples = Annotated[
    int,
    typer.Option(
        help="Sets of four fifths of the examples, whose scatter gives the errors.",
        min=0,
    ),
]
Seed = Annotated[int, typer.Option(help="The seed of these sets.", min=0)]
Memory = Annotated[
    float,
    typer.Option(help="The memory in GiB that kernels and a step may take."),
]
Figures = Annotated[
    Path | None,
    typer.Option(
        help="A folder; the figures of the file are drawn into it. Without "
        "--output it is FILE-scores-figures."
    ),
]


def score(
    file: Arrays,
    output: ScoreOutput = None,
    queries: Queries = "columns",
    readout: Readout = "last",
    skip: Skip = "0",
    heads: Heads = "",
    classes: Classes = False,
    width: Width = None,
    temperature: Temperature = 0.1,
    resamples: Resamples = 20,
    seed: Seed = 0,
    memory: Memory = 4.0,
    figures: Figures = None,
    overwrite: Overwrite = False,
) -> None:
    """Score the attention heads of a trained network by its arrays, with errors.

    The file holds x (examples, features, tokens), labels Y and attention_1,
    attention_2, ... (heads, examples, tokens, tokens), and optionally trained value
    weights V_1, V_2, ... and a.

    Without --output, the scores of heads.npz are written to heads-scores.h5 beside it,
    and their figures to heads-scores-figures.

    Example: statmech-attn score heads.npz --output scores.h5 --figures figures
    """
    if not 0 < memory < math.inf:
        raise typer.BadParameter(
            f"--memory must be a finite number of GiB above 0; got {memory:g}."
        )
    file = file.expanduser()
    inputs.require_regular(file)
    if output is None:
        output = file.with_name(f"{file.stem}-scores.h5")
        figures = figures or file.with_name(f"{file.stem}-scores-figures")
    chosen, factors = [w.strip() for w in heads.split(",") if w.strip()], _skip(skip)
    read: str | int = int(readout) if re.fullmatch(r"-?\d+", readout) else readout
    how = {"queries": queries, "readout": read, "skip": factors, "classes": classes}
    sets = {"resamples": resamples}
    network = {"width": width, "temperature": temperature}
    study = _study(file, heads, how | network | sets | {"seed": seed})
    storage.check_output(output, study=study, overwrite=overwrite, inputs=[file])
    batches.runtime.prepare()
    import jax

    limit = int(memory * 2**30)
    arrays = tasks.trained_arrays.load_scored(
        file, heads=chosen, memory_limit=limit, **how
    )
    scores = bpkr.score(
        arrays.problem(**network, memory_limit=limit),
        jax.random.key(seed),
        **sets,
        names=arrays.names,
        weights=arrays.weights,
    )
    dataset = scores.to_dataset()
    storage.write(
        output, dataset, study=study, keys={"seed": seed}, overwrite=overwrite
    )
    pictures = plotting.draw(dataset, figures) if figures is not None else []
    from statmech_attn.cli.texts.summary import print_summary

    print_summary(dataset, out)
    for path in (output, *pictures):
        out.say(f"wrote {path}")


def _skip(text: str) -> float | list[float]:
    try:
        factors = [float(word) for word in text.split(",")]
    except ValueError:
        raise typer.BadParameter(
            f"--skip takes numbers with commas, such as 1 or 0.5,0; got {text!r}."
        ) from None
    return factors if len(factors) > 1 else factors[0]


def _study(file: Path, heads: str, options: dict) -> str:
    """What the result is of: the content of the file, and how it was read."""
    table = {key: x for key, x in options.items() if x is not None} | {"heads": heads}
    arrays = {"file": file.name, "sha256": inputs.sha256(file)}
    return storage.toml.dumps({"kind": "head-scores", "arrays": arrays, "run": table})
