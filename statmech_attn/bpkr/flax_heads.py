"""Gates on the heads of a model of Flax, as `ablate` takes them.

The output projection of `MultiHeadDotProductAttention` (linen) and of
`MultiHeadAttention` (nnx) has a kernel (H, d, D) with the heads first.  A gate
multiplies the kernel of its head; the bias stays.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax.typing import ArrayLike
from jaxtyping import Array, Float


class FlaxHeads:
    """The losses of a model of Flax as a function of gates on its heads.

    It is a pure function, to be differentiated and compiled.

    Args:
        loss: parameters -> losses of the examples, (P,).
        parameters: nested tables of arrays: `variables["params"]` of linen, or
            `nnx.to_pure_dict(nnx.state(model, nnx.Param))`.
        paths: of the attention layers, such as "encoder/layer_1/attention".  All that
            have kernels `query` and `out` when omitted, in the order of their names,
            with numbers in the order of numbers.

    Raises:
        ValueError: no attention layers, or paths that lead to none.

    Example:
        >>> kernels = {name: {"kernel": jnp.ones((4, 2, 3))} for name in ("query",)}
        >>> layer = kernels | {"out": {"kernel": jnp.ones((2, 3, 4))}}
        >>> loss = lambda p: p["block"]["out"]["kernel"].sum()[None]
        >>> heads = FlaxHeads(loss, {"block": layer})
        >>> heads.counts, heads([jnp.array([1.0, 0.0])]).tolist()
        ((2,), [12.0])
    """

    def __init__(
        self,
        loss: Callable[[Any], Float[Array, " P"]],
        parameters: Mapping[Any, Any],
        paths: Sequence[str] = (),
    ):
        self.loss, self.parameters = loss, parameters
        layers = {"/".join(map(str, keys)): keys for keys in _layers(parameters)}
        if not layers:
            raise ValueError("parameters: no layer has kernels of query and of out.")
        for path in paths:
            if path not in layers:
                raise ValueError(
                    f"paths: {path!r} is no attention layer; there are "
                    f"{', '.join(layers)}."
                )
        self.paths = tuple(paths) or tuple(sorted(layers, key=_numbered))
        self._keys = [layers[path] for path in self.paths]

    @property
    def counts(self) -> tuple[int, ...]:
        """Number of heads of every layer."""
        return tuple(
            _at(self.parameters, keys)["out"]["kernel"].shape[0] for keys in self._keys
        )

    def gated(self, gates: Sequence[ArrayLike]) -> dict[Any, Any]:
        """The parameters with gates on the kernels of `out`.

        Args:
            gates: one array for every layer, with a number for every head.
        """
        parameters = self.parameters
        for keys, of_layer in zip(self._keys, gates, strict=True):
            gate = lambda kernel, g=of_layer: kernel * jnp.asarray(g)[:, None, None]
            parameters = _changed(parameters, (*keys, "out", "kernel"), gate)
        return dict(parameters)

    def __call__(self, gates: Sequence[ArrayLike]) -> Float[Array, " P"]:
        """Losses of the examples with such gates.

        Args:
            gates: as for `gated`.
        """
        return self.loss(self.gated(gates))

    def gradient(self, gates: Sequence[ArrayLike]) -> tuple[Float[Array, "P _H"], ...]:
        """Derivatives of the losses in the gates, (P, H) for every layer.

        Args:
            gates: as for `gated`.
        """
        return jax.jacfwd(self)(tuple(gates))


def _layers(tree: Any, keys: tuple = ()) -> Iterator[tuple]:
    """Keys that lead to the attention layers of a tree."""
    if not isinstance(tree, Mapping):
        return
    parts = [tree.get(name) for name in ("query", "out")]
    kernels = [x.get("kernel") for x in parts if isinstance(x, Mapping)]
    if [getattr(kernel, "ndim", 0) for kernel in kernels] == [3, 3]:
        yield keys
    for key, branch in tree.items():
        yield from _layers(branch, (*keys, key))


def _at(tree: Any, keys: tuple) -> Any:
    for key in keys:
        tree = tree[key]
    return tree


def _changed(tree: Mapping, keys: tuple, change: Callable[[Any], Any]) -> dict:
    """A tree with another leaf."""
    first, *rest = keys
    branch = tree[first]
    changed = _changed(branch, tuple(rest), change) if rest else change(branch)
    return dict(tree) | {first: changed}


def _numbered(path: str) -> list[tuple[str, int]]:
    """What sorts names with numbers by the numbers."""
    return [(text, int(n or 0)) for text, n in re.findall(r"(\D*)(\d*)", path)]
