r"""Gradient descent of all weights, heads included, on minibatches (needs optax).

    $L = \frac1B \sum_\mu (f(x_\mu) - y_\mu)^2$, labels $y_\mu = \pm 1$,

by Adam, with the weight decay in the gradient, $\nabla L + \lambda \theta$, and not
beside it.  The examples are one-shot tasks, drawn where they are
used: a pass takes all pairs of classes once, in an order of its own, and draws the
drawings, the order of the two and the labels anew; pairs that do not fill a batch at
the end of a pass are left out of it.  At every record all validation tasks are
answered, and the weights that answer most of them are kept.

    B                 `batch`             rms f             `output_rms`
    lambda            `weight_decay`      theta             `Transformer`
"""

import math
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int, Key

from statmech_attn.batches import Compiled, devices
from statmech_attn.options import Count
from statmech_attn.storage import BlockFolder, BlockMemory
from statmech_attn.tasks import one_shot
from statmech_attn.training.descent import follow, optax_module
from statmech_attn.training.options import Minibatches
from statmech_attn.training.results import DIVERGED, RECORDS, RUNNING, VANISHED
from statmech_attn.training.transformer import (
    acting,
    answers,
    Embedding,
    Precision,
    Transformer,
)


SILENT = 0.05  # rms of f on the validation tasks; where it is less, L > (1 - 0.05)^2
PILOT_STEPS = 10
CACHED = 16  # tasks of a piece of a step, whose arrays stay in the cache of a processor
MEASURED = "accuracy", "output_rms", "loss_validation"


def precision_here(choices: Minibatches) -> Precision:
    """Precision of matrix products on this device."""
    if choices.precision == "auto":
        return "single" if devices()[0].platform == "cpu" else "mixed"
    return choices.precision


class ClassPatches(NamedTuple):
    """The parts of one-shot tasks: patches of all drawings, and what makes tokens.

    Patches have one channel of n features; `tokens` is their `token_embedding`.
    """

    train: Float[Array, "C D p n"]
    validation: Float[Array, "C_v D p n"]
    tokens: Embedding


class State(eqx.Module):
    """The state of a training: all that the next step depends on."""

    weights: Transformer
    memory: Any  # of the optimiser
    key: Key[Array, ""]
    order: Int[Array, "pairs 2"]  # of this pass
    steps: Int[Array, ""]
    result: Int[Array, ""]
    best: Transformer
    best_accuracy: Float[Array, ""]
    best_step: Int[Array, ""]


class Learnt(NamedTuple):
    """The weights that did best on the validation tasks, and records on the way.

    Records are at `Minibatches.recorded`: the mean loss of the steps since the record
    before (at zero: of the validation tasks, as new to the network as any), share of
    validation tasks answered rightly, rms of f and loss on them.  After the end of a
    run they stay what they are, NaN where it diverged.

    Attributes:
        weights: the best weights, by the validation set.
        loss: mean loss of the steps since the record before.
        accuracy: share of the validation tasks that are answered correctly.
        output_rms: root mean square of f on the validation tasks.
        loss_validation: loss on the validation tasks.
        best_step: step of the weights that are kept.
        steps: steps that were made.
        result: index into `RESULTS`.
    """

    weights: Transformer
    loss: Float[np.ndarray, " records"]
    accuracy: Float[np.ndarray, " records"]
    output_rms: Float[np.ndarray, " records"]
    loss_validation: Float[np.ndarray, " records"]
    best_step: int
    steps: int
    result: int


class StochasticTrainer:
    """A compiled descent on minibatches, for weights of one shape."""

    def __init__(
        self,
        choices: Minibatches,
        patches: ClassPatches,
        weights: Transformer,
        validation_key: Key[Array, ""],
    ):
        self._precision: Precision = precision_here(choices)
        at_once = CACHED if devices()[0].platform == "cpu" else choices.batch
        self._piece = math.gcd(choices.batch, at_once)
        optax, self.choices, self.patches = optax_module(), choices, patches
        self._optimiser = optax.chain(
            optax.add_decayed_weights(choices.weight_decay),
            optax.adam(rate(choices)),
        )
        keys = jax.random.split(validation_key, choices.validation_batches)
        self._validation = _choose_all(
            keys, *patches.validation.shape[:2], examples=choices.batch
        )
        state = self._fresh(validation_key, weights)
        self._begin = Compiled(self._first, patches, state, shared=2)
        self._advance = Compiled(self._block, patches, state, shared=2)

    @property
    def memory(self) -> int:
        """Bytes of one run while it goes on."""
        return self._advance.bytes

    def start(self, key: Key[Array, ""], weights: Transformer):
        """State before the first step, and its records."""
        return self._begin(self.patches, self._fresh(key, weights))

    def near_the_end(self, state: State) -> State:
        """The state as if `PILOT_STEPS` were left, for the time that they take."""
        done = max(self.choices.steps - PILOT_STEPS, 0)
        return eqx.tree_at(lambda s: s.steps, state, jnp.asarray(done, int))

    def advance(self, state: State):
        """A block of steps, or what is left to the end of the run, and its records."""
        return self._advance(self.patches, state)

    def run(
        self,
        key: Key[Array, ""],
        weights: Transformer,
        store: BlockFolder | BlockMemory,
        after: Callable[[int], None] = lambda steps: None,
    ) -> Learnt:
        """Train from given weights, or from the last block in the store.

        `after` is called after each block that is stored, with its number of steps.
        """
        start, first = self.start(key, weights)
        steps, block = self.choices.steps, self.choices.block
        told = lambda: after(min(block, steps - (store.done - 1) * block))
        state = follow(self.advance, start, store, self.choices.blocks, told)
        return self._learnt(state, first, store)

    def _learnt(self, state: State, first, store) -> Learnt:
        recorded, code = np.array(self.choices.recorded), int(state.result)
        records, last = [first, *store.draws()], np.searchsorted(recorded, state.steps)
        curves = {}
        for name in first:
            values = np.concatenate([np.atleast_1d(r[name]) for r in records])
            end = np.nan if code == DIVERGED else values[last]
            values[last + (code != DIVERGED) :] = end
            rest = max(recorded.size - values.size, 0)
            values = np.pad(values, (0, rest), constant_values=end)
            curves[name] = values[: recorded.size]
        return Learnt(
            weights=state.best,
            **curves,
            best_step=int(state.best_step),
            steps=int(state.steps),
            result=code,
        )

    def _fresh(self, key: Key[Array, ""], weights: Transformer) -> State:
        zero, pairs = jnp.asarray(0, int), math.comb(len(self.patches.train), 2)
        return State(
            weights=weights,
            memory=self._optimiser.init(weights),
            key=key,
            order=jnp.zeros((pairs, 2), jnp.int32),
            steps=zero,
            result=zero,
            best=weights,
            best_accuracy=jnp.asarray(-1, weights.a.dtype),
            best_step=zero,
        )

    def _first(self, patches: ClassPatches, state: State):
        state, record = self._validated(patches, state)
        return state, record | {"loss": record["loss_validation"]}

    def _block(self, patches: ClassPatches, state: State):
        """One block of steps, or fewer where the run ends before, and its records."""
        between, last = self.choices.block // RECORDS, self.choices.steps
        zero = jnp.zeros((), state.weights.a.dtype)
        no_record = dict.fromkeys(MEASURED, zero + jnp.nan)

        def stretch(state, _):
            until = jnp.minimum((state.steps // between + 1) * between, last)
            going = lambda c: (c[0].steps < until) & (c[0].result == RUNNING)
            step = lambda c: self._step(patches, *c)
            before = state.steps
            state, total = jax.lax.while_loop(going, step, (state, zero))
            state, record = jax.lax.cond(
                state.steps > before,
                lambda s: self._validated(patches, s),
                lambda s: (s, no_record),
                state,
            )
            steps = (state.steps - before).astype(zero.dtype)
            return state, record | {"loss": total / steps}

        return jax.lax.scan(stretch, state, None, length=RECORDS)

    def _step(self, patches: ClassPatches, state: State, total):
        """One step of the optimiser; the run ends where it diverges."""
        begins = state.steps % self._steps_of_pass(patches) == 0
        new_order = lambda: self._order(patches, state)
        order = jax.lax.cond(begins, new_order, lambda: state.order)
        chosen = self._tasks(patches, state, order)
        loss, gradient = self._gradient(patches, state.weights, chosen)
        changes, memory = self._optimiser.update(gradient, state.memory, state.weights)
        moved = jax.tree.map(jnp.add, state.weights, changes)
        finite = jnp.isfinite(loss) & _finite(moved)
        result = jnp.where(finite, state.result, DIVERGED)
        new = eqx.tree_at(
            lambda s: (s.weights, s.memory, s.order, s.steps, s.result),
            state,
            (moved, memory, order, state.steps + 1, result),
        )
        return new, total + loss

    def _validated(self, patches: ClassPatches, state: State):
        """The state after a look at the validation tasks, and what they say."""
        choices = self.choices
        network = acting(state.weights, patches.tokens)

        def answered(chosen):
            features, y = tasks(patches.validation, chosen)
            f = answers(network, features, self._precision)
            right = (jnp.sign(f) == y).mean(dtype=f.dtype)
            return right, (f**2).mean(), ((f - y) ** 2).mean()

        measured = jax.lax.map(answered, self._validation)
        accuracy, squares, loss = (part.mean() for part in measured)
        rms = jnp.sqrt(squares)
        patience = min(choices.steps, choices.patience or choices.steps)
        silent = (rms < SILENT) & (state.steps >= patience)
        result = jnp.where(silent & (state.result == RUNNING), VANISHED, state.result)
        better = (accuracy > state.best_accuracy) & (result != DIVERGED)
        pick = lambda new, old: jnp.where(better, new, old)
        state = eqx.tree_at(
            lambda s: (s.result, s.best, s.best_accuracy, s.best_step),
            state,
            (
                result,
                jax.tree.map(pick, state.weights, state.best),
                pick(accuracy, state.best_accuracy),
                pick(state.steps, state.best_step),
            ),
        )
        return state, dict(zip(MEASURED, (accuracy, rms, loss), strict=True))

    def _steps_of_pass(self, patches: ClassPatches) -> int:
        pairs = math.comb(patches.train.shape[0], 2)
        return max(1, pairs // self.choices.batch)

    def _order(self, patches: ClassPatches, state: State) -> Int[Array, "pairs 2"]:
        """All pairs of classes in the order of this pass."""
        number = state.steps // self._steps_of_pass(patches)
        epoch_key = jax.random.fold_in(jax.random.fold_in(state.key, 0), number)
        return one_shot.pairs(epoch_key, patches.train.shape[0])

    def _tasks(self, patches: ClassPatches, state: State, order):
        """Choices of the tasks of this step."""
        (n_classes, n_drawings), batch = patches.train.shape[:2], self.choices.batch
        first = state.steps % self._steps_of_pass(patches) * batch
        classes = order[(first + jnp.arange(batch)) % len(order)]
        step_key = jax.random.fold_in(jax.random.fold_in(state.key, 1), state.steps)
        return one_shot.choose(
            step_key,
            n_classes=n_classes,
            n_drawings=n_drawings,
            examples=batch,
            classes=classes,
        )

    def _gradient(self, patches: ClassPatches, weights: Transformer, chosen):
        """Loss of the tasks of a step and its gradient, a piece of them at a time."""
        pieces = self.choices.batch // self._piece
        split = lambda part: part.reshape(pieces, self._piece, *part.shape[1:])

        def loss(network, chosen):
            features, y = tasks(patches.train, chosen)
            f = answers(network, features, self._precision)
            return ((f - y) ** 2).mean() / pieces

        def add(total, chosen):
            part = jax.value_and_grad(loss)(network, chosen)
            return jax.tree.map(jnp.add, total, part), None

        network, pull = jax.vjp(partial(acting, tokens=patches.tokens), weights)
        zero = jax.tree.map(jnp.zeros_like, (weights.a[0], network))
        (total, along), _ = jax.lax.scan(add, zero, jax.tree.map(split, chosen))
        return total, *pull(along)


def tasks(
    patches: Float[Array, "C D p n"], chosen: one_shot.Choices
) -> tuple[Float[Array, "B T n+1"], Float[Array, " B"]]:
    """Features of tokens and labels of the choices, those of `one_shot.sequences`.

    The last feature is the sign of an image's symbol, 0 of the one that is asked.
    """
    v = one_shot.shown(patches, chosen)
    of_images = np.array([1, -1, 0], v.dtype)[:, None, None]
    signs = one_shot.first_symbol(chosen)[:, None, None, None] * of_images
    u = jnp.concatenate([v, jnp.broadcast_to(signs, (*v.shape[:3], 1))], -1)
    return u.reshape(len(u), -1, u.shape[-1]), jnp.asarray(chosen.y, v.dtype)


def token_embedding(codes: one_shot.Codes, channels: Count) -> Embedding:
    """Tokens of images: n features and, as the last, the sign of their symbol."""
    positions, (plus, minus, asked) = (np.asarray(x, np.float32) for x in codes)
    middle, half = (plus + minus) / 2, (plus - minus) / 2
    of_images = np.repeat([middle, middle, asked], len(positions) // 3, 0)
    copies = np.tile(np.eye(len(plus) // channels, dtype=np.float32), (channels, 1))
    matrix = np.column_stack([copies, half])
    return Embedding(jnp.asarray(matrix), jnp.asarray(positions + of_images))


def rate(choices: Minibatches):
    """The learning rate, or its schedule: a function of the number of steps."""
    if choices.schedule == "constant":
        return choices.learning_rate
    return optax_module().cosine_decay_schedule(choices.learning_rate, choices.steps)


@partial(jax.jit, static_argnums=(1, 2), static_argnames="examples")
def _choose_all(keys, n_classes: int, n_drawings: int, *, examples: int):
    """Choices of independent tasks, as many for every key."""
    chosen = partial(
        one_shot.choose, n_classes=n_classes, n_drawings=n_drawings, examples=examples
    )
    return jax.vmap(chosen)(keys)


def _finite(weights: Any) -> Bool[Array, ""]:
    return jnp.stack([jnp.isfinite(w).all() for w in jax.tree.leaves(weights)]).all()
