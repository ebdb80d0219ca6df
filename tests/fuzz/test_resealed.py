"""Result files with flipped bits, or cut off, under a seal that is made anew.

The seal lets HDF5 interpret them; what comes out of a command is then what is stored,
or one line.
"""

import hashlib
import pathlib
import random

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


@pytest.mark.parametrize("rounds", (2, pytest.param(150, marks=pytest.mark.slow)))
def test_damage_under_a_new_seal(command, tmp_path, rounds):
    chance, path, table = random.Random(rounds), tmp_path / "r.h5", tmp_path / "r.csv"
    for number in range(rounds):
        content = chance.choice(RESULTS).read_bytes()[:-SEAL_LENGTH]
        if number:  # the first is as it was
            content = damaged(content, chance)
        path.write_bytes(content + seal(hashlib.sha256(content).hexdigest()))
        table.unlink(missing_ok=True)
        command("info", path).orderly()
        command("figure", path, "-o", tmp_path, "--format", "png").orderly()
        exported = command("export", path, "--csv", table).orderly()
        assert table.exists() == (exported.code == 0) and (number or table.exists())
