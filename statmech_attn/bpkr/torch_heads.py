r"""Gates on the heads of a model of PyTorch, as `ablate` takes them.

Attention layers project the outputs of all heads, which stand side by side, to the
width of the residual stream.  A gate g is put on what the projection reads of its head,

    $o \leftarrow g\, o + (1 - g)\, \bar o$

with $\bar o = 0$, or the mean of o over the examples (mean ablation: Wang et al.,
arXiv:2211.00593), so that g = 0 keeps of the head what does not depend on the example.
The bias of the projection stays.
"""

import contextlib
import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import numpy as np
from jaxtyping import Float

from statmech_attn.bpkr.ablation import Gates


class TorchHeads:
    """The losses of a model of PyTorch as a function of gates on its heads.

    After every call, also one that fails, the model is as it was.

    Args:
        loss: () -> losses of the examples, a tensor (P,).  The model should be in
            `eval` mode, so that no dropout is drawn.
        modules: those of `torch.nn.MultiheadAttention` are taken, layer by layer;
            `model.modules()` has all of a model.
        projections: of other models, the output projection of every layer and its
            number of heads (of queries, where these share keys and values).  It is any
            module whose input has the outputs of the heads side by side on its last
            axis.
        mean: what a gate of 0 leaves of a head.  Nothing when omitted; "examples":
            its mean over examples at every position (the first axis of the input of
            a projection has the examples); "tokens": its mean over examples and
            positions, padding included.  Means are those of the network with all heads,
            for which `loss` is called once.

    Raises:
        ValueError: no layers, a number of heads that does not fit, or no mean.

    Example:
        `heads = TorchHeads(lambda: losses(model(x), y), model.modules())`, and
        `ablate(heads, heads.counts, gradient=heads.gradient)`
    """

    def __init__(
        self,
        loss: Callable[[], Any],
        modules: Iterable[Any] = (),
        *,
        projections: Iterable[tuple[Any, int]] = (),
        mean: str | None = None,
    ):
        import torch  # pyright: ignore[reportMissingImports]

        self.loss = loss
        self.layers = [
            (module, module.num_heads)
            for module in modules
            if isinstance(module, torch.nn.MultiheadAttention)
        ] + list(projections)
        if not self.layers:
            raise ValueError(
                "modules: none of them is a torch.nn.MultiheadAttention; "
                "projections=[(module, heads), ...] takes those of other layers."
            )
        if mean not in (None, "examples", "tokens"):
            raise ValueError(f'mean must be "examples" or "tokens"; got {mean!r}.')
        self._means = [0.0] * len(self.layers) if mean is None else self._measured(mean)

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of heads of every layer."""
        return tuple(count for _, count in self.layers)

    def __call__(self, gates: Gates) -> Float[np.ndarray, " P"]:
        """Losses of the examples with such gates.

        Args:
            gates: one array for every layer, with a number for every head.
        """
        import torch  # pyright: ignore[reportMissingImports]

        with torch.no_grad(), self._gated(_tensors(gates)):
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
        # The other kernels have no derivative forwards.
        with torch.no_grad(), attention.sdpa_kernel(attention.SDPBackend.MATH):
            for place, count in enumerate(self.counts):
                columns = []
                for head in range(count):
                    values = _tensors(gates)
                    with forward_ad.dual_level():
                        tangent = torch.zeros_like(values[place])
                        tangent[head] = 1.0
                        values[place] = forward_ad.make_dual(values[place], tangent)
                        with self._gated(values):
                            losses = forward_ad.unpack_dual(self.loss())
                        slope = losses.tangent
                        if slope is None:
                            slope = torch.zeros_like(losses.primal)
                        columns.append(slope.double().cpu().numpy())
                slopes.append(np.stack(columns, axis=1))
        return tuple(slopes)

    def _measured(self, mean: str) -> list[Any]:
        """Mean outputs of heads, of all passes of the network with all heads."""
        import torch  # pyright: ignore[reportMissingImports]

        sums: list[Any] = [0.0] * len(self.layers)
        counts = [0] * len(self.layers)

        def recorded(number):
            module = self.layers[number][0]

            def record(heads):
                axes = _axes(module, heads, mean)
                total = heads.sum(axes, keepdim=True) if axes else heads
                if counts[number] and total.shape != sums[number].shape:
                    raise ValueError(
                        "mean: numbers of tokens differ between calls of the model; "
                        'mean = "tokens" averages over them.'
                    )
                sums[number] = sums[number] + total
                counts[number] += math.prod(heads.shape[axis] for axis in axes)
                return heads

            return record

        with torch.no_grad(), self._with([recorded(n) for n in range(len(sums))]):
            self.loss()
        if 0 in counts:
            raise ValueError(
                f"layer {counts.index(0) + 1} is not called by loss: its heads have no "
                "mean."
            )
        return [total / count for total, count in zip(sums, counts)]

    def _gated(self, gates: list):
        """The model with gates on its heads."""

        def gated(gates, mean):
            def gate(heads):
                g = gates.to(heads)[:, None]
                return g * heads + (1 - g) * mean

            return gate

        return self._with([gated(*pair) for pair in zip(gates, self._means)])

    @contextlib.contextmanager
    def _with(self, changes: list[Callable[[Any], Any]]) -> Iterator[None]:
        """The model with a function on the outputs of the heads of every layer."""
        import torch  # pyright: ignore[reportMissingImports]

        mha = torch.backends.mha
        with contextlib.ExitStack() as stack:
            # PyTorch's own fast path calls no module inside a layer.
            stack.callback(mha.set_fastpath_enabled, mha.get_fastpath_enabled())
            mha.set_fastpath_enabled(False)
            for (module, count), change in zip(self.layers, changes, strict=True):
                whole = _side_by_side(count, change)
                if isinstance(module, torch.nn.MultiheadAttention):
                    stack.enter_context(_before_projection(module, whole))
                else:
                    hook = lambda _, given, whole=whole: (whole(given[0]), *given[1:])
                    stack.callback(module.register_forward_pre_hook(hook).remove)
            yield


def _tensors(gates: Gates) -> list[Any]:
    import torch  # pyright: ignore[reportMissingImports]

    return [torch.tensor(np.asarray(of_layer)) for of_layer in gates]


def _side_by_side(count: int, change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of heads (..., H, d) as one of (..., H d)."""

    def whole(x):
        if x.shape[-1] % count:
            raise ValueError(
                f"projections: an input of {x.shape[-1]} numbers is not that of "
                f"{count} heads."
            )
        return change(x.unflatten(-1, (count, -1))).flatten(-2)

    return whole


@contextlib.contextmanager
def _before_projection(module, change: Callable[[Any], Any]) -> Iterator[None]:
    """`torch.nn.MultiheadAttention`, which does not call the projection it has.

    It projects by the identity, and what follows the change is its own projection.
    """
    import torch  # pyright: ignore[reportMissingImports]

    parameters = module.out_proj._parameters
    projection = dict(parameters)
    weight, bias = projection["weight"], projection["bias"]

    def projected(_, given, output):
        heads, *attention = output
        return (torch.nn.functional.linear(change(heads), weight, bias), *attention)

    hook = module.register_forward_hook(projected)
    try:
        identity = torch.eye(len(weight), dtype=weight.dtype, device=weight.device)
        parameters.update(weight=identity, bias=None)
        yield
    finally:
        parameters.update(projection)
        hook.remove()


def _axes(module, heads, mean: str) -> tuple[int, ...]:
    """Axes of heads (..., H, d) that a mean is taken over."""
    leading = heads.ndim - 2
    if mean == "tokens":
        return tuple(range(leading))
    if not hasattr(module, "batch_first"):
        return (0,)
    return () if leading == 1 else (0 if module.batch_first else 1,)
