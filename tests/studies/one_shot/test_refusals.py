"""Impossible studies of trained networks end at once, with a line that says why."""

import pytest

from statmech_attn import studies, training
from statmech_attn.studies.one_shot import examples
from statmech_attn.studies.one_shot.trained import load_trained
from statmech_attn.tasks.one_shot import Setting
from statmech_attn.training.results import RUNNING


SETTING = Setting(image_size=16, patch=8, channels=1)


def pruning_of(path, width, exact):
    tree = {
        "kind": "pruning",
        "task": {"name": "one-shot", "trained": str(path), "elsewhere": []},
        "network": {"width": width},
        "run": {"exact": exact},
    }
    return studies.work(studies.parse(tree))


@pytest.fixture
def write(tmp_path, made_trained, monkeypatch):
    """A file of one network that ended with a code; there are no images."""
    monkeypatch.delenv("STATMECH_ATTN_DATA", raising=False)
    network = made_trained.drawn_network(SETTING, 0)
    return lambda code: made_trained.write_trained(
        tmp_path / "trained.h5", [network], SETTING, [code]
    )


def test_a_file_in_which_no_network_learned_says_so(write):
    path = write(training.VANISHED)
    for restart in (0, 3):
        with pytest.raises(ValueError, match="^trained.h5: no network has learned"):
            examples.network(load_trained(path), restart, "trained.h5")
    with pytest.raises(ValueError, match="trained.h5: no network has learned"):
        pruning_of(path, 10, False)


def test_the_exact_law_of_pruning_needs_a_whole_width(write):
    """Said before images are read and networks are scored."""
    path = write(RUNNING)
    with pytest.raises(ValueError, match="width must be whole in the exact law"):
        pruning_of(path, 10.5, True)
    for width, exact in ((10.5, False), (10, True)):
        with pytest.raises(ValueError, match="STATMECH_ATTN_DATA must name"):
            pruning_of(path, width, exact)
