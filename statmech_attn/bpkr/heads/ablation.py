r"""What a network loses without its heads, by gates on the heads of any model.

A loss takes one gate for every head: 1 leaves the head as it is, 0 switches it off.
With $L_p(g)$ the loss of example p, and $e_h$ the gate of head h alone,

    $d_h = \langle L_p(1 - e_h) - L_p(1) \rangle_p$             loss gained    `gained`
    $d_{hh'} = \langle L_p(1 - e_h - e_{h'}) - L_p(1) \rangle_p$  without two   `pairs`
    $d_{hh'} - d_h - d_{h'}$                       what two heads share  `interaction`
    $\langle |\partial L_p / \partial g_h| \rangle_p$      gradient score    `gradient`
    $-\langle \partial L_p / \partial g_h \rangle_p$    $d_h$ to first order  `linear`

Nothing is trained again.  All are means over the same examples, whose scatter gives the
standard errors.  Where $(\sum d_p^2)^2 / \sum d_p^4$ examples carry a mean, fewer than
about ten, others would carry it in another sample, and the error says nothing: rare
losses of one in P examples are 0 +- 0 in a third of all samples.  The gradient score is
that of Michel, Levy and Neubig (arXiv:1905.10650).
"""

import dataclasses
import itertools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import equinox as eqx
import numpy as np
from jaxtyping import Float, Real
from numpy.typing import ArrayLike

from statmech_attn import presentation
from statmech_attn.bpkr.attention.attention import head_names
from statmech_attn.bpkr.heads.score_agreement import score_agreement, ScoreAgreement
from statmech_attn.bpkr.posed.quantities import HEAD
from statmech_attn.labels import Variable, Variables
from statmech_attn.statistics import standard_error


REPEATED = 1e-5  # two calls of one loss agree to this, relative to its largest value

Gates = tuple[Float[np.ndarray, " _H"], ...]


class Mean(NamedTuple):
    """A mean over examples, and its standard error."""

    value: Float[np.ndarray, "*shape"]
    stderr: Float[np.ndarray, "*shape"]

    @classmethod
    def of(cls, values: Real[np.ndarray, "*shape P"]) -> "Mean":
        """Of values of examples, which are on the last axis."""
        return cls(values.mean(axis=-1), standard_error(values))


def _row(field: str, dims: str, long_name: str, symbol: str, **more) -> Variable:
    """A row of a mean with its error, where it was asked for."""
    of = lambda part: (
        lambda ablation: getattr(getattr(ablation, field), part, None)  # of None, None
    )
    return Variable(
        more.pop("name", field),
        dims,
        long_name,
        symbol=symbol,
        value=of("value"),
        error=of("stderr"),
        **more,
    )


_HEADS = "attention_head"
_PAIRS = "attention_head attention_head_pair"
_ROWS = (
    _row("loss", "", "mean loss of the network with all heads", "L"),
    _row("gained", _HEADS, "loss gained without the head", "d_h", name="loss_gained"),
    Variable(
        "effective_examples",
        _HEADS,
        "examples that carry the loss gained, of which fewer than ten know no error",
        symbol="(Σd²)²/Σd⁴",
    ),
    _row(
        "gradient",
        _HEADS,
        "mean size of the derivative of the loss in the gate",
        "⟨|∂L/∂g|⟩",
        name="gradient_score",
    ),
    _row(
        "linear",
        _HEADS,
        "loss gained without the head, to first order in the gate",
        "-⟨∂L/∂g⟩",
        name="loss_gained_linear",
    ),
    _row(
        "pairs",
        _PAIRS,
        "loss gained without two heads",
        "d_hh'",
        name="loss_gained_pair",
        line=False,
    ),
    _row(
        "interaction",
        _PAIRS,
        "loss gained without two heads, beyond the sum of both",
        "d_hh' - d_h - d_h'",
        name="head_interaction",
    ),
    _row(
        "pruned",
        "pruned_head",
        "loss gained without this head and those before it",
        "d",
        name="loss_gained_pruned",
    ),
)
VARIABLES = Variables(
    *_ROWS,
    HEAD,
    Variable("attention_head_pair", "attention_head_pair", "layer.head", "1", "(l, h)"),
    Variable(
        "pruned_head", "pruned_head", "layer.head in the order of pruning", "1", "(l,h)"
    ),
)


class Ablation(eqx.Module):
    """Losses gained without heads of a network, with errors over examples.

    Attributes:
        heads: number of heads of every layer.
        names: of the heads, layer by layer.
        loss: of the network with all heads.
        gained: without each head, (n,).
        differences: the same of every example, (n, P).
        gradient, linear: scores by derivatives in the gates, (n,), or None.
        pairs, interaction: without two heads, (n, n), and beyond the sum of both; the
            diagonal has the head alone, and NaN.  Or None.
        order: heads in the order in which greedy pruning takes them, or None.
        pruned: loss gained along this order, (n,), or None.
    """

    heads: tuple[int, ...] = eqx.field(static=True)
    names: tuple[str, ...] = eqx.field(static=True)
    loss: Mean
    gained: Mean
    differences: Float[np.ndarray, "n E"]
    gradient: Mean | None = None
    linear: Mean | None = None
    pairs: Mean | None = None
    interaction: Mean | None = None
    order: tuple[int, ...] | None = eqx.field(static=True, default=None)
    pruned: Mean | None = None

    @property
    def effective_examples(self) -> Float[np.ndarray, " n"]:
        """How many examples carry the loss gained without each head; NaN if none do."""
        d = self.differences
        with np.errstate(invalid="ignore"):
            squares = (d / abs(d).max(axis=1, keepdims=True)) ** 2  # no underflow
            return squares.sum(axis=1) ** 2 / (squares**2).sum(axis=1)

    @property
    def silent(self) -> tuple[str, ...]:
        """Heads without which no loss changes."""
        return tuple(
            name
            for name, difference in zip(self.names, self.differences, strict=True)
            if not difference.any()
        )

    def agreement(
        self, scores: Mapping[str, ArrayLike], *, resamples: int = 1000
    ) -> ScoreAgreement:
        """How scores of the heads agree with the losses gained without them.

        Args:
            scores: by name, each of all heads, layer by layer.
            resamples: sets of examples that errors come from.

        Returns:
            `ScoreAgreement`: rank correlations over all heads and within layers.

        Raises:
            ValueError: a score that has no finite number for every head.

        Example:
            >>> drop = {"1.1": 1.0, "1.2": 0.1, "1.3": 0.3}
            >>> loss = lambda gates: sum(
            ...     d * (1 - g) for d, g in zip(drop.values(), gates[0])
            ... ) * np.array([0.9, 1.0, 1.1])
            >>> agreement = ablate(loss, heads=(3,)).agreement({"mine": [3, 1, 2]})
            >>> round(float(agreement.correlation[0]), 9)
            1.0
        """
        return score_agreement(
            scores, self.differences, self.heads, resamples=resamples
        )

    _shown = _ROWS
    __repr__, _repr_html_, _to_dataset = presentation.METHODS

    def to_dataset(self):
        """All numbers with names, errors and units, and the names of heads.

        `statmech_attn.storage.write` writes it, and `plotting.ablation` draws it.
        """
        names = list(self.names)
        coordinates = {"attention_head": names}
        if self.pairs is not None:
            coordinates["attention_head_pair"] = names
        if self.order is not None:
            coordinates["pruned_head"] = [names[h] for h in self.order]
        return self._to_dataset().assign_coords(
            {
                name: (name, values, VARIABLES.attributes(name))
                for name, values in coordinates.items()
            }
        )


def ablate(
    loss: Callable[[Gates], ArrayLike],
    heads: Sequence[int],
    *,
    names: Sequence[str] = (),
    gradient: Callable[[Gates], Sequence[ArrayLike]] | None = None,
    pairs: bool = False,
    greedy: bool = False,
) -> Ablation:
    """Loss gained without heads of a network: one by one, in pairs, in greedy order.

    Args:
        loss: gates -> losses of P examples.  Gates are one array for every layer, with
            a number for every head; heads multiply what they add to their layer by it,
            or mix it with a mean (docs/data.md).  Any model is taken whose losses
            become an array of NumPy.  It is called once for each ablation, n + 2 times
            for n heads.
        heads: number of heads of every layer.
        names: of the heads, layer by layer; layer.head when omitted.
        gradient: gates -> derivatives of the losses in the gates, (P, H) of every
            layer: `jax.jacfwd(loss)` of a loss in JAX.
        pairs: ablate all pairs of heads, too: n (n - 1) / 2 more calls.
        greedy: switch off all heads one after the other, each time the one without
            which the loss is smallest: n (n + 1) / 2 more calls.  The order is chosen
            on the examples on which it is measured, so losses along it are low.

    Returns:
        `Ablation`: losses with standard errors over examples.

    Raises:
        ValueError: heads or names that do not fit, losses that are not one finite
            number for every example, that differ between two calls with the same
            gates, or that no gate changes; a gradient that is zero in every gate.

    Warns:
        UserWarning: heads whose gates change no loss.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> x = jnp.array([[1.0, 0.2], [-1.0, 0.1], [0.5, -0.3]])
        >>> loss = lambda gates: (x @ gates[0] - x[:, 0]) ** 2
        >>> ablation = ablate(loss, heads=(2,), gradient=jax.jacfwd(loss))
        >>> ablation.gained.value.round(2).tolist()
        [0.78, -0.05]
    """
    heads = tuple(heads)
    if not heads or min(heads) < 1:
        raise ValueError(f"heads must be a number >= 1 for every layer; got {heads}.")
    count = sum(heads)
    names = tuple(names or head_names(heads))
    if len(names) != count:
        raise ValueError(
            f"names: need one for each of {count} heads; got {len(names)}."
        )
    whole = _losses(loss, heads, (), names)
    again = _losses(loss, heads, (), names)
    apart = float(abs(again - whole).max())
    if apart > REPEATED * abs(whole).max():
        raise ValueError(
            "loss differs between two calls with the same gates (by up to "
            f"{apart:.2g}): switch off dropout, and draw examples once."
        )

    def gained(*without: int) -> Float[np.ndarray, " P"]:
        losses = _losses(loss, heads, without, names)
        if losses.shape != whole.shape:
            raise ValueError(
                f"loss must return as many losses for all gates; got {losses.shape} "
                f"and {whole.shape}."
            )
        return losses - whole

    differences = np.array([gained(head) for head in range(count)])
    if not differences.any():
        raise ValueError("loss does not change with any gate: no head reads its gate.")
    slopes = None if gradient is None else _slopes(gradient, heads, len(whole))
    result = Ablation(
        heads=heads,
        names=names,
        loss=Mean.of(whole),
        gained=Mean.of(differences),
        differences=differences,
        gradient=None if slopes is None else Mean.of(abs(slopes)),
        linear=None if slopes is None else Mean.of(-slopes),
    )
    if result.silent:
        warnings.warn(
            f"no loss changes without {', '.join(result.silent)}: the gate is not "
            "read, or the output of the head is not.",
            stacklevel=2,
        )
    if pairs:
        both, beyond = _pairs(gained, differences)
        result = dataclasses.replace(result, pairs=both, interaction=beyond)
    if greedy:
        order, pruned = _greedy(gained, differences)
        result = dataclasses.replace(result, order=order, pruned=pruned)
    return result


def _losses(loss, heads, without, names) -> Float[np.ndarray, " P"]:
    """Losses of all examples with some heads switched off."""
    gates = np.ones(sum(heads), np.float32)  # which no model's precision is below
    gates[list(without)] = 0.0
    losses = np.asarray(loss(_by_layer(gates, heads)), float)
    if losses.ndim != 1 or not len(losses):
        raise ValueError(
            "loss must return the loss of every example, (P,); got an array of shape "
            f"{losses.shape}."
        )
    if wrong := np.sum(~np.isfinite(losses)):
        place = " and ".join(names[head] for head in without)
        raise ValueError(
            f"loss{place and f' without head {place}'} is not finite for {wrong} of "
            f"{len(losses)} examples."
        )
    return losses


def _by_layer(gates, heads) -> Gates:
    return tuple(np.split(gates, np.cumsum(heads)[:-1]))


def _slopes(gradient, heads, examples: int) -> Float[np.ndarray, "n P"]:
    """Derivatives of all losses in all gates, at the network with all heads."""
    of_layers = gradient(_by_layer(np.ones(sum(heads), np.float32), heads))
    slopes = [np.asarray(of_layer, float) for of_layer in of_layers]
    expected = [(examples, number) for number in heads]
    if (shapes := [of_layer.shape for of_layer in slopes]) != expected:
        raise ValueError(f"gradient must return shapes {expected}; got {shapes}.")
    joined = np.concatenate(slopes, axis=1).T
    if not np.isfinite(joined).all():
        raise ValueError("gradient has numbers that are not finite.")
    if not joined.any():
        raise ValueError(
            "gradient is zero in every gate, while losses change with gates: the loss "
            "does not carry the derivative (detach, .item(), inference_mode)."
        )
    return joined


def _pairs(gained, differences) -> tuple[Mean, Mean]:
    """Without two heads, and beyond the sum of both."""
    count = len(differences)
    together, beyond = np.full((2, 2, count, count), np.nan)
    for part, alone in zip(together, Mean.of(differences)):
        np.fill_diagonal(part, alone)
    for i, j in itertools.combinations(range(count), 2):
        both = gained(i, j)
        together[:, i, j] = together[:, j, i] = Mean.of(both)
        excess = both - differences[i] - differences[j]
        beyond[:, i, j] = beyond[:, j, i] = Mean.of(excess)
    return Mean(*together), Mean(*beyond)


def _greedy(gained, differences) -> tuple[tuple[int, ...], Mean]:
    """Order in which heads are switched off, and the loss gained along it."""
    remaining, order, along = set(range(len(differences))), [], []
    while remaining:
        trials = {
            head: gained(*order, head) if order else differences[head]
            for head in sorted(remaining)
        }
        least = min(trials, key=lambda head: trials[head].mean())
        along.append(trials[least])
        order.append(least)
        remaining.remove(least)
    return tuple(order), Mean.of(np.array(along))
