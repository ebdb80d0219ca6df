r"""Gradient descent of all weights, to the maximum of their posterior (needs optax).

    $L(z) = \frac1{2T} \sum_{\mu k} (f_k(x_\mu) - Y_{\mu k})^2 + \frac12 |z|^2$

is the loss of whitened weights z, weights over their standard deviations a priori:
$L = -\ln p(z | Y)$ + const. of the posterior that `montecarlo.weight_space` samples, so
T, widths and variances mean the same (docs/theory/bpkr_weights.md, 8).  Every step
takes all examples.  `Trainer` knows nothing of networks: any pytree of weights and any
function of it that gives a data term and a prior term can be trained.

    z                 pytree     weights                                  `weights`
    data, prior       ()         the two terms of the loss                `terms`
    |grad L|          ()         its gradient's Euclidean norm       `gradient_norm`
"""

import hashlib
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from statmech_attn import extras, presentation
from statmech_attn.batches import Compiled
from statmech_attn.labels import Variable
from statmech_attn.reporting import Silent
from statmech_attn.storage import BlockFolder, BlockMemory, toml
from statmech_attn.training.options import Descent
from statmech_attn.training.results import (
    CONVERGED,
    DIVERGED,
    RECORDS,
    RESULTS,
    RUNNING,
)


Terms = Callable[[Any, Any], tuple[Array, Array]]
QUICK = 5.0  # seconds of a block that is run for its time


class State(eqx.Module):
    """The state of a training: all that the next step depends on.

    Attributes:
        weights: weights of the network, a tree of arrays.
        memory: memory of the optimiser.
        steps: steps that were made.
        result: index into `RESULTS`.
    """

    weights: Any
    memory: Any
    steps: Int[Array, ""]
    result: Int[Array, ""]


class Trained(NamedTuple):
    """The trained weights, and the losses at `Descent.recorded`.

    They stay what they are after the end of a run, NaN where it diverged.

    Attributes:
        weights: weights at the end.
        data: data term of the loss at every record.
        prior: prior term of the loss at every record.
        gradient_norm: length of the gradient at the end.
        steps: steps that were made.
        result: index into `RESULTS`.
    """

    weights: Any
    data: Float[np.ndarray, " records"]
    prior: Float[np.ndarray, " records"]
    gradient_norm: float
    steps: int
    result: int

    _shown = (
        Variable("result", "", "result", flags=RESULTS),
        Variable("steps", "", "steps"),
        Variable("loss", "record", "loss on the data", value="data"),
        Variable("loss_prior", "record", "loss of the prior", value="prior"),
        Variable("gradient_norm", "", "norm of the gradient at the end"),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


class Trainer:
    """A compiled gradient descent, for weights and problems of one shape."""

    def __init__(self, terms: Terms, descent: Descent, problem: Any, weights: Any):
        self.descent, self._terms = descent, terms
        self._optimiser = _optimiser(descent)
        state = self._start(weights)
        self._advance = Compiled(self._block, problem, state, shared=2)
        self._measure = Compiled(self._measured, problem, state, shared=2)

    @property
    def memory(self) -> int:
        """Bytes of one run while it goes on."""
        return self._advance.bytes

    def block_seconds(self, problem: Any, weights: Any) -> float:
        """About how long a block takes: it is run where that is quick.

        Otherwise it is told from one gradient, which takes as long as a step.
        """
        start = self._start(weights)
        seconds = self.descent.block_size * _seconds(self._measure, problem, start)
        quick = seconds < QUICK
        return _seconds(self._advance, problem, start) if quick else seconds

    def run(
        self,
        problem: Any,
        weights: Any,
        store: BlockFolder | BlockMemory,
        after: Callable[[int], None] = lambda steps: None,
    ) -> Trained:
        """Train from given weights, or from the last block in the store."""
        start = self._start(weights)
        blocks = self.descent.steps // self.descent.block_size
        state = follow(
            lambda state: self._advance(problem, state),
            start,
            store,
            blocks,
            lambda: after(self.descent.block_size),
        )
        first = self._measure(problem, start)
        return self._trained(state, first, self._measure(problem, state), store)

    def _trained(self, state: State, first, last, store) -> Trained:
        norm, code = float(last[2]), int(state.result)
        if code == RUNNING and not np.isfinite([*last]).all():
            code = DIVERGED
        elif code == RUNNING and norm <= self.descent.tolerance:
            code = CONVERGED
        curves = np.empty((2, len(self.descent.recorded)))
        curves.T[:] = last[:2]  # where the run has ended before
        curves[:, 0] = first[:2]
        for number, record in enumerate(store.draws()):
            columns = slice(1 + number * RECORDS, 1 + (number + 1) * RECORDS)
            curves[:, columns] = record["data"], record["prior"]
        if code == DIVERGED:
            curves[:, np.array(self.descent.recorded) >= state.steps] = np.nan
        data, prior = curves
        return Trained(state.weights, data, prior, norm, int(state.steps), code)

    def _start(self, weights: Any) -> State:
        zero = jnp.asarray(0, int)
        return State(weights, self._optimiser.init(weights), zero, zero)

    def _block(self, problem: Any, state: State):
        """One block of steps, or fewer where the run ends before, and its losses."""

        def stretch(state, _):
            until = state.steps + self.descent.block_size // RECORDS
            going = lambda s: (s.steps < until) & (s.result == RUNNING)
            state = jax.lax.while_loop(going, lambda s: self._step(problem, s), state)
            data, prior = self._terms(problem, state.weights)
            return state, {"data": data, "prior": prior}

        return jax.lax.scan(stretch, state, None, length=RECORDS)

    def _step(self, problem: Any, state: State) -> State:
        """One step of the optimiser, unless the run is at its end."""
        loss, gradient = jax.value_and_grad(self._loss, argnums=1)(
            problem, state.weights
        )
        norm = _norm(gradient)
        finite = jnp.isfinite(loss) & jnp.isfinite(norm)
        result = jnp.where(norm <= self.descent.tolerance, CONVERGED, RUNNING)
        result = jnp.where(finite, result, DIVERGED)
        changes, memory = self._optimiser.update(gradient, state.memory, state.weights)
        moved = jax.tree.map(jnp.add, state.weights, changes)
        new = State(moved, memory, state.steps + 1, result)
        old = State(state.weights, state.memory, state.steps, result)
        return jax.tree.map(lambda a, b: jnp.where(result == RUNNING, a, b), new, old)

    def _measured(self, problem: Any, state: State):
        """Data term, prior term and gradient norm."""
        gradient = jax.grad(self._loss, argnums=1)(problem, state.weights)
        return *self._terms(problem, state.weights), _norm(gradient)

    def _loss(self, problem: Any, weights: Any) -> Array:
        data, prior = self._terms(problem, weights)
        return data + prior


def block_store(
    folder: Path | None, identity: Mapping[str, Any], inputs: Iterable[bytes]
) -> BlockFolder | BlockMemory:
    """Where blocks of one training are kept; in memory without a folder.

    `identity` is that of the computation that it is a point of, `inputs` are what its
    numbers depend on besides.
    """
    if folder is None:
        return BlockMemory(warmup=0)
    digest = hashlib.sha256()
    for part in inputs:
        digest.update(part)
    return BlockFolder(
        folder,
        warmup=0,
        run=digest.hexdigest(),
        report=Silent(),
        study=toml.dumps(dict(identity)),
    )


def follow(
    advance: Callable[[Any], tuple[Any, Any]],
    start: Any,
    store: BlockFolder | BlockMemory,
    blocks: int,
    after: Callable[[], None],
) -> Any:
    """Blocks from the start, or from the last one in the store, to the end of the run.

    `advance` gives the state after a block and its records; `after` is called after
    each block that is stored.  Returns the last state.
    """
    state = store.state(start)
    while store.done < blocks and state.result == RUNNING:
        state, record = advance(state)
        store.append(state, jax.tree.map(np.asarray, record))
        after()
    return state


def _seconds(function: Callable[..., Any], *given: Any) -> float:
    begin = time.perf_counter()
    jax.block_until_ready(function(*given))
    return time.perf_counter() - begin


def _norm(gradient: Any) -> Float[Array, ""]:
    squares = [(leaf**2).sum() for leaf in jax.tree.leaves(gradient)]
    return jnp.sqrt(jnp.stack(squares).sum())


def optax_module():
    """optax, which only training needs; `ValueError` where it is not installed."""
    try:
        import optax
    except ImportError:
        raise ValueError(extras.needed("training", "optax", "training")) from None
    return optax


def _optimiser(descent: Descent):
    optax = optax_module()
    rate = descent.learning_rate
    if descent.schedule == "cosine":
        rate = optax.cosine_decay_schedule(rate, descent.steps)
    return {"gd": optax.sgd, "adam": optax.adam}[descent.optimiser](rate)
