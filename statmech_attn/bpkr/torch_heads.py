"""Gates on the heads of a model of PyTorch, as `ablate` takes them.

`torch.nn.MultiheadAttention` adds to every token the product of its output projection
with the outputs of all heads side by side.  A gate multiplies the columns of this
projection that belong to its head: the same as multiplying the output of the head, in
every way in which PyTorch computes attention.  The bias of the projection stays.
"""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from statmech_attn.bpkr.ablation import Gates


class TorchHeads:
    """The losses of a model of PyTorch as a function of gates on its heads.

    After every call, also one that fails, the model has its own weights again.

    Args:
        loss: () -> losses of the examples, a tensor (P,).  The model should be in
            `eval` mode, so that no dropout is drawn.
        modules: those of `torch.nn.MultiheadAttention` are taken, layer by layer;
            `model.modules()` has all of a model.

    Raises:
        ValueError: none of the modules is one.

    Example:
        `heads = TorchHeads(lambda: losses(model(x), y), model.modules())`, and
        `ablate(heads, heads.counts, gradient=heads.gradient)`
    """

    def __init__(self, loss: Callable[[], Any], modules: Iterable[Any]):
        self.loss = loss
        self.layers = [
            module
            for module in modules
            if hasattr(module, "num_heads") and hasattr(module, "out_proj")
        ]
        if not self.layers:
            raise ValueError("modules: none of them is a torch.nn.MultiheadAttention.")

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of heads of every layer."""
        return tuple(layer.num_heads for layer in self.layers)

    def __call__(self, gates: Gates) -> Float[np.ndarray, " P"]:
        """Losses of the examples with such gates.

        Args:
            gates: one array for every layer, with a number for every head.
        """
        import torch  # pyright: ignore[reportMissingImports]

        weights = [
            _gated(layer.out_proj.weight, layer.out_proj.weight.new_tensor(of_layer))
            for layer, of_layer in zip(self.layers, gates, strict=True)
        ]
        with torch.no_grad(), self._with(weights):
            return self.loss().double().cpu().numpy()

    def gradient(self, gates: Gates) -> tuple[Float[np.ndarray, "P _H"], ...]:
        """Derivatives of the losses in the gates, forwards: one pass for every head.

        Args:
            gates: as for a call.

        Returns:
            Derivatives, (P, H) for every layer.
        """
        import torch  # pyright: ignore[reportMissingImports]
        import torch.nn.attention as attention  # pyright: ignore[reportMissingImports]

        forward_ad = torch.autograd.forward_ad
        slopes = []
        # With a gradient PyTorch takes no path of attention that it cannot
        # differentiate forwards.
        with torch.enable_grad(), attention.sdpa_kernel(attention.SDPBackend.MATH):
            for place, count in enumerate(self.counts):
                columns = []
                for head in range(count):
                    with forward_ad.dual_level():
                        weights = []
                        for number, layer in enumerate(self.layers):
                            own = layer.out_proj.weight
                            values = own.new_tensor(gates[number])
                            if number == place:
                                tangent = torch.zeros_like(values)
                                tangent[head] = 1.0
                                values = forward_ad.make_dual(values, tangent)
                            weights.append(_gated(own, values))
                        with self._with(weights):
                            losses = forward_ad.unpack_dual(self.loss())
                        slope = losses.tangent
                        if slope is None:
                            slope = torch.zeros_like(losses.primal)
                        columns.append(slope.detach().double().cpu().numpy())
                slopes.append(np.stack(columns, axis=1))
        return tuple(slopes)

    @contextlib.contextmanager
    def _with(self, weights: list) -> Iterator[None]:
        """The model with other output projections."""
        places = [layer.out_proj._parameters for layer in self.layers]
        kept = [place["weight"] for place in places]
        try:
            for place, weight in zip(places, weights):
                place["weight"] = weight  # no parameter, which an attribute has to be
            yield
        finally:
            for place, weight in zip(places, kept):
                place["weight"] = weight


def _gated(weight, gates):
    """An output projection (D, H d) whose columns are multiplied by gates (H,)."""
    columns = weight.unflatten(1, (len(gates), -1))
    return (columns * gates[:, None]).flatten(1)
