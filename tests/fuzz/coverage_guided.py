"""Coverage-guided fuzzing of what reads files, with atheris (pip install atheris).

    python tests/fuzz/coverage_guided.py study -max_total_time=300
    python tests/fuzz/coverage_guided.py manifest -max_total_time=300
    python tests/fuzz/coverage_guided.py result -max_total_time=300
    python tests/fuzz/coverage_guided.py chunk -max_total_time=300

Words after the target are those of libFuzzer; a folder keeps what was found
interesting.  `result` and `chunk` get their seal from this program, so that HDF5 sees
damage from which users are protected by the seal: a crash or a hang inside libhdf5 is
no fault of this package, everything else is.
"""

import hashlib
import pathlib
import sys
import tempfile

import atheris


with atheris.instrument_imports(include=["statmech_attn", "tomllib"]):
    from statmech_attn import storage, studies
    from statmech_attn.scan.chunks import chunk_file
    from statmech_attn.scan.chunks.chunk_file import Stored
    from statmech_attn.scan.chunks.folder import Folder, Manifest

    for package in (storage, studies):
        for name in package.__sources__:
            getattr(package, name)  # imports it

import numpy as np
import xarray as xr

from statmech_attn.scan.chunks.work import Chunk
from statmech_attn.storage.schema import seal, SEAL_LENGTH


ROOT = pathlib.Path(__file__).resolve().parents[2]
STUDY = 'kind = "trajectory"\n[parameters]\nbeta = 1.2\n'
LABELS = {"long_name": "a number", "units": "1", "symbol": "x"}


def one_line(expected, call, *arguments):
    try:
        return call(*arguments)
    except expected as error:
        if not str(error).isprintable() or len(str(error)) > 1000:
            raise AssertionError(f"not one short line: {error!r}") from error


def study(folder, data):
    path = folder / "study.toml"
    path.write_bytes(data)
    one_line(ValueError, studies.load, path)


def manifest(folder, data):
    (folder / "manifest.json").write_bytes(data)
    one_line(storage.StorageError, Folder.open, folder)


def _sealed(path, data):
    path.write_bytes(data + seal(hashlib.sha256(data).hexdigest()))


def result(folder, data):
    path = folder / "result.h5"
    _sealed(path, data)
    for reader in (storage.read, storage.info):
        one_line(storage.StorageError, reader, path)


def chunk(folder, data):
    path = folder / "chunk-0000003.h5"
    _sealed(path, data)
    one_line(storage.StorageError, chunk_file.read, path)


def examples(folder):
    """Valid content of every target, to begin with."""
    labelled = {"x": ("i", np.arange(9.0), LABELS), "w": ("i", list("abcdefghi"))}
    found = xr.Dataset(labelled)
    found.w.attrs = LABELS
    storage.write(folder / "r.h5", found, study=STUDY)
    stored = Stored(Chunk(3, 0, 0, 2), {"x": np.zeros((2, 3))}, {}, 1.0, 2.0, "e", "s")
    chunk_file.write(folder / "c.h5", stored, "fuzz")
    made = Manifest(
        schema_version=1,
        study=STUDY,
        study_sha256=storage.study_digest(STUDY),
        resolved=STUDY,
        points_per_chunk=5,
        batch=1,
        started="now",
    )
    files = [*ROOT.glob("analysis/*.toml"), *ROOT.glob("simulations/*.toml")]
    return {
        study: [path.read_bytes() for path in files],
        manifest: [made.model_dump_json().encode()],
        result: [(folder / "r.h5").read_bytes()[:-SEAL_LENGTH]],
        chunk: [(folder / "c.h5").read_bytes()[:-SEAL_LENGTH]],
    }


def main():
    targets = {call.__name__: call for call in (study, manifest, result, chunk)}
    if len(sys.argv) < 2 or sys.argv[1] not in targets:
        sys.exit(f"usage: {sys.argv[0]} {'|'.join(targets)} [libFuzzer's words]")
    target = targets[sys.argv.pop(1)]
    folder = pathlib.Path(tempfile.mkdtemp(prefix="fuzz-"))
    corpus = folder / "corpus"
    corpus.mkdir()
    for number, content in enumerate(examples(folder)[target]):
        (corpus / str(number)).write_bytes(content)
    words = ["-timeout=10", "-rss_limit_mb=2048", "-malloc_limit_mb=512"]
    words.append(f"-artifact_prefix={folder}/")
    atheris.Setup(
        [sys.argv[0], *words, *sys.argv[1:], str(corpus)],
        lambda data: target(folder, data),
    )
    atheris.Fuzz()


if __name__ == "__main__":
    main()
