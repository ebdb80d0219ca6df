"""One question about trained heads, three answers: saddle point, exact law, weights."""

import pytest

from statmech_attn import studies
from statmech_attn.comparison import compare
from statmech_attn.comparison.posteriors import VERDICTS
from statmech_attn.tasks.one_shot import Setting


SETTING = Setting(image_size=16, patch=8, channels=1)


@pytest.fixture(scope="module")
def task(tmp_path_factory, made_images, made_trained):
    folder = tmp_path_factory.mktemp("made")
    made_images.write_omniglot(folder, side=SETTING.image_size)
    made_images.write_digits(folder, side=SETTING.image_size)
    network = made_trained.drawn_network(SETTING, 0)
    path = made_trained.write_trained(folder / "trained.h5", [network], SETTING, [0])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("STATMECH_ATTN_DATA", str(folder))
        yield {"name": "one-shot", "trained": str(path), "n_train": 20, "n_test": 40}


@pytest.mark.slow
@pytest.mark.statistical
def test_weights_agree_with_the_exact_law_below_the_number_of_paths(task):
    """Four paths at N = 3: U is singular, and the saddle point is not."""
    common = {"task": task, "network": {"width": 3, "temperature": 0.5}}
    saddle = common | {"kind": "order-parameter"}
    exact = common | {"kind": "posterior", "run": {"draws": 1500}}
    run = {"method": "weights", "draws": 1500, "warmup": 500, "block": 100}
    weights = common | {"kind": "posterior", "run": run}
    files = [studies.run(studies.parse(study)) for study in (saddle, exact, weights)]
    found = compare(*files)
    verdict = lambda name: VERDICTS[int(found.verdict.sel(estimate=name).squeeze())]
    assert verdict("exact") == "reference"
    assert verdict("weights") == "agrees"
    assert verdict("saddle") == "differs"
