"""Gates on models of PyTorch: networks built without the heads, or with their means."""

import numpy as np
import pytest

from statmech_attn import bpkr


torch = pytest.importorskip("torch")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated"),
    pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors"),
]

WIDTH, SIZE, TOKENS, EXAMPLES = 8, 3, 5, 40
GROUPS = (0, 0, 1, 1)  # heads of keys and values that heads of queries read
DOUBLE = {"dtype": torch.float64}


class Conv1D(torch.nn.Module):
    """A linear map whose weight is (from, to), as that of GPT-2."""

    def __init__(self, reads, writes):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(reads, writes, **DOUBLE))
        self.bias = torch.nn.Parameter(torch.randn(writes, **DOUBLE))

    def forward(self, x):
        return x @ self.weight + self.bias


class Attention(torch.nn.Module):
    """Heads of queries that share heads of keys and values, as in Llama."""

    def __init__(self, groups=GROUPS, projection=torch.nn.Linear):
        super().__init__()
        linear = lambda heads: torch.nn.Linear(WIDTH, heads * SIZE, **DOUBLE)
        self.q_proj, self.groups = linear(len(groups)), list(groups)
        self.k_proj, self.v_proj = linear(max(groups) + 1), linear(max(groups) + 1)
        more = {} if projection is Conv1D else DOUBLE
        self.o_proj = projection(len(groups) * SIZE, WIDTH, **more)

    def heads(self, x):
        split = lambda part: part(x).unflatten(-1, (-1, SIZE)).transpose(1, 2)
        query = split(self.q_proj)
        key, value = (split(p)[:, self.groups] for p in (self.k_proj, self.v_proj))
        return torch.nn.functional.scaled_dot_product_attention(query, key, value)

    def forward(self, x):
        return x + self.o_proj(self.heads(x).transpose(1, 2).flatten(2))

    def without(self, head):
        """The same layer built with one head less."""
        kept = [h for h in range(len(self.groups)) if h != head]
        rows = [h * SIZE + i for h in kept for i in range(SIZE)]
        smaller = Attention([self.groups[h] for h in kept], type(self.o_proj))
        state = self.state_dict()
        state["q_proj.weight"] = state["q_proj.weight"][rows]
        state["q_proj.bias"] = state["q_proj.bias"][rows]
        first = isinstance(self.o_proj, Conv1D)
        columns = (rows,) if first else (slice(None), rows)
        state["o_proj.weight"] = state["o_proj.weight"][columns]
        smaller.load_state_dict(state)
        return smaller


def drawn(**more):
    torch.manual_seed(0)
    model = torch.nn.Sequential(Attention(**more), Attention(**more))
    x = torch.randn(EXAMPLES, TOKENS, WIDTH, **DOUBLE)
    return model, x


def losses(model, x):
    return (model(x) ** 2).mean(dim=(1, 2))


def projections(model):
    return [(layer.o_proj, len(layer.groups)) for layer in model]


def off(*heads):
    gates = np.ones((2, 4))
    for layer, head in heads:
        gates[layer, head] = 0.0
    return tuple(gates)


@pytest.mark.parametrize("projection", [torch.nn.Linear, Conv1D])
def test_gates_on_projections_are_layers_built_without_the_heads(projection):
    """Linear, and with a transposed weight; grouped queries."""
    model, x = drawn(projection=projection)
    heads = bpkr.TorchHeads(lambda: losses(model, x), projections=projections(model))
    assert heads.counts == (4, 4)
    whole = losses(model, x).detach().numpy()
    np.testing.assert_allclose(heads(off()), whole, rtol=1e-12)
    for head in range(4):
        smaller = torch.nn.Sequential(model[0], model[1].without(head))
        expected = losses(smaller, x).detach().numpy()
        np.testing.assert_allclose(heads(off((1, head))), expected, rtol=1e-12)
    both = torch.nn.Sequential(model[0].without(2), model[1].without(0))
    expected = losses(both, x).detach().numpy()
    np.testing.assert_allclose(heads(off((0, 2), (1, 0))), expected, rtol=1e-12)
    slopes, step = heads.gradient(off((1, 0))), 1e-5
    for layer in range(2):
        up, down = off((1, 0)), off((1, 0))
        up[layer][1] += step
        down[layer][1] -= step
        expected = (heads(up) - heads(down)) / (2 * step)
        np.testing.assert_allclose(slopes[layer][:, 1], expected, atol=1e-8)


def mean_heads(model, x, mean):
    """Means of what every head of the first layer adds, by its projection."""
    heads = model[0].heads(x).detach()
    axes = (0, 2) if mean == "tokens" else 0
    parts = model[0].o_proj.weight.detach().unflatten(1, (4, SIZE))
    return torch.einsum(
        "h...g,ihg->h...i", heads.mean(dim=axes, keepdim=True)[0], parts
    )


@pytest.mark.parametrize("mean", ["examples", "tokens"])
def test_a_gate_of_zero_leaves_the_mean_of_the_head(mean):
    """The layer without the head, and what the head adds on average."""
    model, x = drawn()
    of_model = lambda: losses(model, x)
    heads = bpkr.TorchHeads(of_model, projections=projections(model), mean=mean)
    np.testing.assert_allclose(heads(off()), of_model().detach(), rtol=1e-12)
    zero = bpkr.TorchHeads(of_model, projections=projections(model))
    for head in range(4):
        added = mean_heads(model, x, mean)[head]
        after = model[0].without(head)(x) + added
        expected = losses(model[1], after).detach().numpy()
        found = heads(off((0, head)))
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert abs(zero(off((0, head))) - found).max() > 1e-3
    parts = [x[:10], x[10:]]  # a loss that calls the model for one batch after another
    batched = lambda: torch.cat([losses(model, part) for part in parts])
    again = bpkr.TorchHeads(batched, projections=projections(model), mean=mean)
    np.testing.assert_allclose(again(off((0, 1))), heads(off((0, 1))), rtol=1e-12)


@pytest.mark.parametrize("mean", [None, "examples", "tokens"])
def test_layers_of_pytorch_are_gated_as_others_of_the_same_weights(mean):
    """Also where the examples are on the second axis."""
    model, x = drawn(groups=(0, 1, 2, 3))
    layers = []
    for batch_first in (True, False):
        for own in model:
            layer = torch.nn.MultiheadAttention(
                4 * SIZE, 4, batch_first=batch_first, **DOUBLE
            )
            pad = lambda weight: torch.nn.functional.pad(
                weight, (0, 4 * SIZE - WIDTH) if weight.ndim == 2 else (0, 0)
            )
            inside = [own.q_proj, own.k_proj, own.v_proj]
            layer.load_state_dict(
                {
                    "in_proj_weight": torch.cat([pad(p.weight) for p in inside]),
                    "in_proj_bias": torch.cat([p.bias for p in inside]),
                    "out_proj.weight": torch.nn.functional.pad(
                        own.o_proj.weight, (0, 0, 0, 4 * SIZE - WIDTH)
                    ),
                    "out_proj.bias": torch.nn.functional.pad(
                        own.o_proj.bias, (0, 4 * SIZE - WIDTH)
                    ),
                }
            )
            layers.append(layer.eval())

    def of_pytorch(layers, turned):
        h = torch.nn.functional.pad(x, (0, 4 * SIZE - WIDTH))
        h = h.transpose(0, 1) if turned else h
        for layer in layers:
            h = h + layer(h, h, h, need_weights=False)[0]
        h = h.transpose(0, 1) if turned else h
        return (h[..., :WIDTH] ** 2).mean(dim=(1, 2))

    others = bpkr.TorchHeads(
        lambda: losses(model, x), projections=projections(model), mean=mean
    )
    gates = off((0, 1), (1, 3))
    for turned, own in ((False, layers[:2]), (True, layers[2:])):
        of_model = lambda own=own, turned=turned: of_pytorch(own, turned)
        heads = bpkr.TorchHeads(of_model, own, mean=mean)
        np.testing.assert_allclose(heads(gates), others(gates), rtol=1e-12)
        for found, slopes in zip(heads.gradient(gates), others.gradient(gates)):
            np.testing.assert_allclose(found, slopes, atol=1e-10)


def test_gates_on_an_encoder_are_heads_removed_from_it():
    """Columns set to zero, and differences; the last token of some examples is none."""
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **DOUBLE)
    model = torch.nn.TransformerEncoder(layer, 2).eval()
    x, y = torch.randn(EXAMPLES, TOKENS, WIDTH, **DOUBLE), torch.randn(EXAMPLES)
    padding = torch.zeros(EXAMPLES, TOKENS, dtype=torch.bool)
    padding[::2, -1] = True
    of_model = lambda: (model(x, src_key_padding_mask=padding)[:, 0, 0] - y) ** 2
    heads = bpkr.TorchHeads(of_model, model.modules())
    before = {name: value.clone() for name, value in model.state_dict().items()}
    gates = np.array([1.0, 0.0]), np.ones(2)
    removed = heads(gates)
    slopes = heads.gradient((np.ones(2), np.ones(2)))
    everything = heads((np.ones(2), np.ones(2)))
    assert abs(slopes[1]).max() > 0.01 and abs(removed - everything).max() > 0.01
    assert list(before) == list(model.state_dict())
    assert all(torch.equal(before[n], v) for n, v in model.state_dict().items())
    assert torch.backends.mha.get_fastpath_enabled()
    step = 1e-5
    for number in range(2):
        up, down = (
            heads((np.ones(2), 1.0 + sign * step * np.eye(2)[number]))
            for sign in (1, -1)
        )
        np.testing.assert_allclose(
            slopes[1][:, number], (up - down) / (2 * step), atol=1e-8
        )
    half = heads((np.array([1.0, 0.5]), np.ones(2)))
    for gated, factor in ((half, 0.5), (removed, 0.0)):
        with torch.no_grad():
            model.layers[0].self_attn.out_proj.weight[:, 4:] *= factor
            np.testing.assert_allclose(gated, of_model().numpy(), atol=1e-12)


def ragged(model, x):
    model(x[:, :3])
    return losses(model, x)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda m, x: bpkr.TorchHeads(list, m.modules()), "none of them is a torch"),
        (
            lambda m, x: bpkr.TorchHeads(list, projections=projections(m), mean="no"),
            'mean must be "examples" or "tokens"; got \'no\'',
        ),
        (
            lambda m, x: bpkr.TorchHeads(
                lambda: losses(m, x), projections=[(m[0].o_proj, 5)]
            )((np.ones(5),)),
            "input of 12 numbers is not that of 5 heads",
        ),
        (
            lambda m, x: bpkr.TorchHeads(
                lambda: ragged(m, x), projections=projections(m), mean="examples"
            ),
            "numbers of tokens differ between calls",
        ),
        (
            lambda m, x: bpkr.TorchHeads(
                lambda: losses(m[0], x), projections=projections(m), mean="tokens"
            ),
            "layer 2 is not called by loss",
        ),
    ],
)
def test_layers_without_gates_are_refused_in_a_line(call, words):
    model, x = drawn()
    with pytest.raises(ValueError, match=words) as error:
        call(model, x)
    assert "\n" not in str(error.value)
    np.testing.assert_allclose(losses(model, x).detach(), losses(*drawn()).detach())
