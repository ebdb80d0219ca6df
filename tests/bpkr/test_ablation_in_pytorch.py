"""The code of docs/transformer_heads.md on models of PyTorch, where it is installed."""

import re
from pathlib import Path

import numpy as np
import pytest


torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "transformer_heads.md"
MODEL, GATES = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)


def run(**changed):
    """Names after the page, with other losses than those of the page."""
    names = {}
    exec(MODEL, names)
    names |= {name: change(names) for name, change in changed.items()}
    exec(GATES, names)
    return names


def test_losses_and_derivatives_are_those_of_a_model_without_the_head():
    double = {name: lambda names, name=name: names[name].double() for name in "xy"}
    names = run(model=lambda names: names["model"].double(), **double)
    model, ablation = names["model"], names["ablation"]
    with torch.no_grad():
        whole = names["losses"](model).numpy()
        for number in range(8):
            weight = model.layers[number // 4].self_attn.out_proj.weight
            columns = slice(4 * (number % 4), 4 * (number % 4 + 1))
            kept, found = weight[:, columns].clone(), {}
            for gate in (0.0, 1 - 1e-5, 1 + 1e-5):
                weight[:, columns] = gate * kept
                found[gate] = names["losses"](model).numpy()
            weight[:, columns] = kept
            differences = ablation.differences[number]
            np.testing.assert_allclose(differences, found[0.0] - whole, atol=1e-12)
            slope = (found[1 + 1e-5] - found[1 - 1e-5]) / 2e-5
            scores = ablation.gradient.value[number], ablation.linear.value[number]
            expected = abs(slope).mean(), -slope.mean()
            # Losses of up to 10 are rounded: 10 * 2e-16 / 1e-5.
            np.testing.assert_allclose(scores, expected, atol=1e-9)


def inference(losses):
    def inferred(network):
        with torch.inference_mode():
            return losses(network)

    return inferred


LOST = {
    "detach": lambda losses: lambda network: losses(network).detach(),
    "item": lambda losses: (
        lambda network: torch.tensor([x.item() for x in losses(network)])
    ),
    "numpy": lambda losses: (
        lambda network: torch.tensor(losses(network).numpy(force=True))
    ),
    "inference_mode": inference,
}


@pytest.mark.parametrize("way", LOST)
def test_a_loss_that_loses_the_derivative_is_an_error(way):
    with pytest.raises(RuntimeError):
        run(losses=lambda names: LOST[way](names["losses"]))


def test_a_model_that_the_fast_path_changes_is_refused():
    """Which sets padding to zero, so that a mean over all positions is another."""

    def padded(names):
        padding = torch.zeros(100, 6, dtype=torch.bool)
        padding[::2, 3:] = True
        mean = lambda network: network(names["x"], src_key_padding_mask=padding).mean(1)
        return lambda network: (mean(network)[:, 0] - names["y"]) ** 2

    with pytest.raises(AssertionError, match="not close"):
        run(losses=padded)
