"""Result files with flipped bits, or cut off, under a seal that is made anew.

The seal lets HDF5 interpret them; what comes out of a command is then what was written,
or one line.
"""

import hashlib
import pathlib
import random

import h5py
import pytest

from statmech_attn.storage.schema import seal, SEAL_LENGTH


ROOT = pathlib.Path(__file__).resolve().parents[2]
RESULTS = sorted((ROOT / "paper_figs" / "results").glob("pe5_*.h5"))


def damaged(content: bytes, chance: random.Random) -> bytes:
    """Bits flipped, or the end cut off."""
    data = bytearray(content)
    if chance.random() < 0.2:
        del data[chance.randrange(len(data)) :]
    else:
        for _ in range(chance.choice((1, 1, 4, 64))):
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    return bytes(data)


@pytest.mark.parametrize("name", ("phase", "beta", "section"))
def test_a_summary_is_of_variables_that_match_their_checksums(command, tmp_path, name):
    """One number is another under a new seal: `info` prints it for no such variable."""
    path = tmp_path / "r.h5"
    path.write_bytes((ROOT / "paper_figs/results/pe5_torus-laptop.h5").read_bytes())
    with h5py.File(path, "r+") as file:
        stored = file[name]
        assert isinstance(stored, h5py.Dataset)
        values = stored[...]
        values.flat[0] += 1
        stored[...] = values
    content = path.read_bytes()
    path.write_bytes(content + seal(hashlib.sha256(content).hexdigest()))
    described = command("info", path).orderly()
    assert described.code == int(name != "section")
    assert command("info", "--check", path).orderly().code == 1
    if described.code:
        (line,) = described.said.splitlines()
        assert f"the checksum of {name} does not match" in line


@pytest.mark.parametrize("rounds", (3, pytest.param(150, marks=pytest.mark.slow)))
def test_damage_under_a_new_seal(command, tmp_path, rounds):
    chance, path, table = random.Random(rounds), tmp_path / "r.h5", tmp_path / "r.csv"
    whole = {}
    for number in range(rounds):
        source = chance.choice(RESULTS)
        content = source.read_bytes()[:-SEAL_LENGTH]
        if number:  # the first is as it was
            content = damaged(content, chance)
        path.write_bytes(content + seal(hashlib.sha256(content).hexdigest()))
        table.unlink(missing_ok=True)
        checked = command("info", "--check", path).orderly()
        described = command("info", path).orderly()
        assert described.code <= checked.code
        drawn = command("figure", path, "-o", tmp_path, "--format", "png").orderly()
        exported = command("export", path, "--csv", table).orderly()
        assert drawn.code == exported.code == checked.code, (drawn, exported)
        assert table.exists() == (exported.code == 0) and (number or table.exists())
        if exported.code == 0:
            if source not in whole:
                command("export", source, "--csv", tmp_path / "whole.csv").orderly()
                whole[source] = (tmp_path / "whole.csv").read_bytes()
                (tmp_path / "whole.csv").unlink()
            assert table.read_bytes() == whole[source]
