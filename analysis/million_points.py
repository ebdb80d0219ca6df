"""The plane of a million points in a file of a few megabytes.

    statmech-attn run analysis/million_points.toml --output million_points.h5
    python analysis/million_points.py million_points.h5 \
        --output paper_figs/results/million_points-laptop.h5

What is kept of every point: its phases, period and number of positive exponents,
whether it is doubtful, and the leading exponent with its error, rounded to a relative
2^-10 and 2^-6.  There are no samples.  The file says when and how the whole plane was
computed.
"""

import argparse
from pathlib import Path

import numpy as np
import xarray as xr

import statmech_attn
from statmech_attn import storage


VERDICTS = ("phase", "phase_paper", "period", "n_positive", "doubtful")
BITS = {"lyapunov": 10, "lyapunov_stderr": 6}  # of a mantissa
SAMPLES = {"section": "sample", "strobe": "strobe_sample"}


def main(arguments: list[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    statmech_attn.setup()
    plane = storage.read(options.file)
    storage.write(
        options.output,
        thinned(plane),
        study=plane.attrs["study"],
        **storage.origin(plane.attrs),
        overwrite=options.overwrite,
    )
    print(f"wrote {options.output}")


def thinned(plane: xr.Dataset) -> xr.Dataset:
    """The leading exponent and the verdict of every point, in few bits."""
    small = plane[[*VERDICTS, *BITS, *SAMPLES, "section_count"]]
    small = small.isel({dimension: slice(0) for dimension in SAMPLES.values()})
    small = small.isel(exponent=slice(1))
    for name, bits in BITS.items():
        small[name] = small[name].copy(data=rounded(small[name].values, bits))
    return small


def rounded(values: np.ndarray, bits: int) -> np.ndarray:
    """Values with a mantissa of so many bits, in single precision."""
    mantissa, exponent = np.frexp(values)
    return np.ldexp(np.round(mantissa * 2**bits) / 2**bits, exponent).astype(np.float32)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "file", type=Path, help="result of analysis/million_points.toml"
    )
    parser.add_argument("--output", type=Path, required=True, help="file (HDF5)")
    parser.add_argument("--overwrite", action="store_true")
    return parser


if __name__ == "__main__":
    main()
