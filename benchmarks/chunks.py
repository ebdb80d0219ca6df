"""What chunks cost: finding the place to go on, merging, writing, against computing.

Numbers of points are made up and computing is waiting, so that all time beyond it is
the chunks' own.  The folder with many chunks is made once, outside the timings.

    python benchmarks/chunks.py [--chunks 10000] [--folder DIR]
"""

import argparse
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import xarray as xr

from statmech_attn import storage
from statmech_attn.reporting import Silent
from statmech_attn.scan.chunks import chunk_computation
from statmech_attn.scan.chunks.folder import Folder, Manifest, SCHEMA_VERSION
from statmech_attn.scan.chunks.results import Results
from statmech_attn.scan.chunks.session import Session, Stop
from statmech_attn.scan.chunks.work import Assembled, Pilot
from statmech_attn.scan.engines import local


TEXT = 'kind = "benchmark"\n'
PER_CHUNK = 136
FEW, MANY = 8, 128  # numbers stored for each point, of many chunks and of long ones


class Sleeper(NamedTuple):
    """A `scan.work.Work` that waits; its rows are as large as those of a scan."""

    total: int
    width: int  # numbers stored for each point
    seconds: float = 0.0  # of a chunk
    title: str = "sleeper"
    batch: int = PER_CHUNK
    unit: int = 1
    alone: bool = False
    keeps_blocks: bool = False
    empty: dict[str, int] = {}

    def points(self, round, earlier):
        return self.total if round == 0 else None

    def payload(self, chunk, earlier):
        return None

    def rows(self, chunk, payload, tick, folder):
        values = np.random.default_rng(chunk.first).normal(
            size=(chunk.size, self.width)
        )
        time.sleep(self.seconds)
        return {"x": values, "phase": np.zeros(chunk.size, np.int8)}

    def not_finite(self, arrays):
        return ~np.isfinite(arrays["x"]).all(axis=1)

    def pilot(self):
        return Pilot(self.seconds, 0)

    def assemble(self, results: Results) -> Assembled:
        words = lambda name: {"long_name": name, "units": "1", "symbol": name}
        data = {
            "x": (("point", "sample"), results.column("x"), words("x")),
            "phase": (("point",), results.column("phase"), words("phase")),
            "failure": (("point",), results.failure(), words("failure")),
        }
        return Assembled(xr.Dataset(data, attrs={"kind": "benchmark"}))


def begun(path: Path) -> Folder:
    return Folder.begin(
        path,
        Manifest(
            schema_version=SCHEMA_VERSION,
            study=TEXT,
            resolved=TEXT,
            batch=PER_CHUNK,
            study_sha256=storage.study_digest(TEXT),
            points_per_chunk=PER_CHUNK,
            started=storage.now().isoformat(),
        ),
    )


def session(work: Sleeper, folder: Folder) -> Session:
    return Session(
        work,
        folder,
        PER_CHUNK,
        Silent(),
        Stop(),
        study=folder.manifest.study_sha256,
    )


def many(path: Path, count: int) -> None:
    """Time to write, to find the place and to merge many chunks."""
    work = Sleeper(count * PER_CHUNK, FEW)
    folder = begun(path)
    with session(work, folder) as first:
        chunks = list(first.chunks)
        clock = time.perf_counter()
        while chunk := first.next(wait=False):
            if chunk == chunks[-1]:
                break
            computed = chunk_computation.compute(
                work, chunk, first.payload, lambda _: None, None
            )
            first.keep(chunk, *computed)
        writing = (time.perf_counter() - clock) / (count - 1)
    clock = time.perf_counter()
    with session(work, folder) as again:
        assert again.next() == chunks[-1]
        finding = time.perf_counter() - clock
        computed = chunk_computation.compute(
            work, chunks[-1], again.payload, lambda _: None, None
        )
        again.keep(chunks[-1], *computed)
        again.look()
        clock = time.perf_counter()
        dataset = work.assemble(again.results).loaded()
        elapsed, busy = again.results.elapsed_and_busy()
        storage.write(
            path.with_suffix(".h5"), dataset, study=TEXT, elapsed=elapsed, busy=busy
        )
        merging = time.perf_counter() - clock
    print(f"| claiming, making and writing a chunk | {1e3 * writing:.2f} ms |")
    print(f"| finding the place among {count} chunks | {finding:.2f} s |")
    print(f"| merging {count} chunks | {merging:.2f} s |")


def overhead(path: Path, seconds: float, count: int) -> None:
    """Chunks that wait so long each, against waiting alone."""
    work = Sleeper(count * PER_CHUNK, MANY, seconds)
    folder = begun(path)
    clock = time.perf_counter()
    with session(work, folder) as one:
        local.compute(one, local.threads())
    took = time.perf_counter() - clock
    alone = -(-count // local.threads()) * seconds
    print(
        f"| {count} chunks of {seconds:g} s, time over computing | "
        f"{100 * (took / alone - 1):.2f} % |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--chunks", type=int, default=10_000)
    parser.add_argument("--folder", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        print(
            f"{PER_CHUNK} points in a chunk; {FEW} numbers each, {MANY} in long ones\n"
        )
        print("| what | time |\n| --- | --- |")
        many(Path(name) / "many.chunks", options.chunks)
        for repetition in range(3):
            overhead(Path(name) / f"few{repetition}.chunks", 1.0, 10)


if __name__ == "__main__":
    main()
