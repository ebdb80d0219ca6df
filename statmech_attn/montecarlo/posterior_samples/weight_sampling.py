r"""Draws of all weights, reduced to what is asked of them while they are drawn.

A run is `warmup` steps that are thrown away and `draws` that count, of several chains,
in blocks.  A block keeps of every draw

    U_1 ... U_L, U_a   order parameters of the network             `U`, `U_a`
    accuracy           on the test set
    ln p(z | Y)        log density of the weights                  `log_density`
    H                  minus the same, plus kinetic energy         `energy`

and of f on the test inputs only the mean and the mean square of `STRETCHES` parts of
the block, from which come $\langle f \rangle$, its Monte Carlo error and
$\langle \delta f^2 \rangle$.  The weights of the last draw alone are kept, and the
parts of blocks in a folder are merged as they are read, so memory does not grow with
the number of draws times the number of weights or test inputs.
"""

import hashlib
import time
from pathlib import Path
from typing import NamedTuple

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int, Key

from statmech_attn import presentation
from statmech_attn.bpkr import correct
from statmech_attn.kinds import SamplerKind, SAMPLERS
from statmech_attn.labels import Variable
from statmech_attn.montecarlo.posterior_samples import weight_space
from statmech_attn.montecarlo.posterior_samples.langevin import stiffness
from statmech_attn.montecarlo.posterior_samples.nuts import Sampler
from statmech_attn.options import Count, Positive, WholeNumber
from statmech_attn.reporting import duration, Reporter
from statmech_attn.statistics import bfmi, summary
from statmech_attn.storage import BlockFolder, BlockMemory


STRETCHES = 10  # parts of a block whose mean f is kept
STRETCHES_HELD = 100  # per chain, of which the errors of f are made
NOT_FINITE = (
    "the density of the weights is not a finite number: xi or Y are too large for this "
    "temperature."
)
FIRST_STEP = 0.5  # over the largest frequency: of Langevin, and where NUTS starts


class WeightDraws(NamedTuple):
    """Draws of all weights with their diagnostics; chains first.

    Attributes:
        U: order parameters (U_1, ..., U_L) of every draw.
        U_a: order parameter of the readout.
        accuracy: share of the test examples that the network of a draw classifies
            correctly.
        predictor_mean: mean of f over all draws, for every test example.
        predictor_mean_stderr: its Monte Carlo standard error.
        predictor_variance: variance of f over the draws.
        predictor_variance_stderr: its Monte Carlo standard error.
        log_density: ln p(z | Y) up to a constant.
        energy: Hamiltonian of the sampler, for `bfmi`.
        divergences: number of transitions whose energy error diverged.
        leapfrog_steps: gradients that a draw took.
        acceptance: mean acceptance probability of a transition.
        bfmi: fraction of missing information of every chain, where every draw has new
            momenta.
        step_size: step size of every chain.
    """

    U: tuple[Float[np.ndarray, "chains draws d d"], ...]
    U_a: Float[np.ndarray, "chains draws *KK"]
    accuracy: Float[np.ndarray, "chains draws"]
    predictor_mean: Float[np.ndarray, "Q *K"]
    predictor_mean_stderr: Float[np.ndarray, "Q *K"]
    predictor_variance: Float[np.ndarray, "Q *K"]
    predictor_variance_stderr: Float[np.ndarray, "Q *K"]
    log_density: Float[np.ndarray, "chains draws"]
    energy: Float[np.ndarray, "chains draws"]
    divergences: int
    leapfrog_steps: Int[np.ndarray, "chains draws"]
    acceptance: Float[np.ndarray, "chains draws"]
    bfmi: Float[np.ndarray, " chains"] | None
    step_size: Float[np.ndarray, " chains"]

    _shown = (
        Variable(
            "accuracy", "chain draw", "share of test examples with the right sign"
        ),
        Variable("acceptance", "chain draw", "acceptance"),
        Variable("divergences", "", "divergences"),
        Variable("step_size", "chain", "step size"),
        Variable(
            "U_a", "", "order parameter of the readout", value=lambda d: d.U_a.mean()
        ),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS


def sample_weights(
    key: Key[Array, ""],
    posterior: weight_space.WeightPosterior,
    *,
    method: str = "weights",
    xi_test: Float[Array, "Q N_0 Pi"],
    y_test: Float[Array, "Q *K"],
    draws: Count,
    warmup: WholeNumber,
    chains: Count,
    block: Count,
    folder: Path | None,
    study: str,
    report: Reporter,
    step_size: Positive | None = None,
) -> WeightDraws:
    """Draw weights from their posterior, in blocks that survive a kill.

    A run that was cut off goes on from the blocks in `folder`, which are those of the
    `study`; without one they are kept in memory.
    """
    check_sizes(method, draws, warmup, chains, block, step_size)
    inputs = posterior.rotated_inputs(xi_test)
    y_test = _fitting_labels(y_test, inputs, posterior)
    settings = {
        "method": method,
        "warmup": warmup,
        "chains": chains,
        "block": block,
        "step_size": step_size,
    }
    state, advance = _chains(key, posterior, inputs, y_test, **settings)
    pieces = [min(block, warmup - n) for n in range(0, warmup, block)]
    n_warmup = len(pieces)
    pieces += [block] * (draws // block)
    if folder is None:
        store = BlockMemory(warmup=n_warmup)
    else:
        run = _digest(key, posterior, inputs, y_test, draws=draws, **settings)
        store = BlockFolder(
            folder, warmup=n_warmup, study=study, run=run, report=report
        )
    _run(store, store.state(state), advance, method, pieces, report)
    return _collect(store, method)


def check_sizes(method, draws, warmup, chains, block, step_size) -> None:
    """Refuse what cannot be sampled."""
    sampler = _row(method)
    if block < STRETCHES or block % STRETCHES:
        raise ValueError(f"block must be a multiple of {STRETCHES}; got {block}.")
    if draws < block or draws % block:
        raise ValueError(f"draws must be a multiple of block = {block}; got {draws}.")
    if warmup < 1 or chains < 1:
        raise ValueError(
            f"warmup and chains must be at least 1; got {warmup} and {chains}."
        )
    if step_size is not None and (sampler.adapts or not 0 < step_size < 1):
        raise ValueError(
            "step_size must lie between 0 and 1, and be left out for a sampler that "
            f"adapts it; got {step_size} for {method!r}."
        )


def _row(method: str) -> SamplerKind:
    """The sampler of a name; `ValueError` for one that samples no weights."""
    for row in SAMPLERS.named(method):
        if row.build:
            return row
    names = [row.name for row in SAMPLERS if row.build]
    raise ValueError(f"method must be one of {', '.join(names)}; got {method!r}.")


def _fitting_labels(y_test, inputs, posterior) -> Float[Array, "Q *K"]:
    y_test = jnp.asarray(y_test, float)
    if y_test.shape != inputs.shape[:1] + posterior.Y.shape[1:]:
        raise ValueError(
            "y_test must have one label per input of xi_test, as Y of the training "
            f"set; got {y_test.shape} for {inputs.shape[0]} inputs."
        )
    return y_test


def _chains(
    key, posterior, inputs, y_test, *, method, warmup, chains, block, step_size
):
    """State of all chains before the first step, and what advances it."""
    start_keys, run_keys, free_keys = (
        jax.random.split(k, chains) for k in jax.random.split(key, 3)
    )
    starts, rates = _starts(posterior, start_keys)
    if not np.isfinite(rates):
        raise ValueError(NOT_FINITE)
    sampler = _sampler(method, posterior, warmup, step_size or FIRST_STEP / rates)
    state = jax.jit(jax.vmap(sampler.start))(run_keys, starts)
    observe = _observer(sampler, posterior, inputs, y_test)
    compiled = _compiled(sampler, observe, block)
    advance = lambda state, first, steps: compiled(state, free_keys, first, steps)
    # No step at all compiles, and gives the state the types that it keeps.
    return advance(state, 0, 0)[0], advance


@eqx.filter_jit
def _starts(posterior: weight_space.WeightPosterior, keys):
    """Initial weights of the chains, and the largest frequency there."""

    def one(key):
        start_key, power_key = jax.random.split(key)
        z = posterior.draw_start(start_key)
        return z, stiffness(posterior.log_density, z, power_key)

    starts, rates = jax.lax.map(one, keys)
    return starts, rates.max()


def _sampler(method, posterior, warmup: int, step_size) -> Sampler:
    row = _row(method)
    adapting = {"warmup": warmup} if row.adapts else {}
    build = SAMPLERS.part(row, "build")
    return build(posterior.log_density, step_size=float(step_size), **adapting)


def _observer(sampler: Sampler, posterior, inputs, y_test):
    """What is record of every draw, and f on the test inputs."""

    def observe(state, key):
        now = sampler.describe(state)
        U, U_a = posterior.order_parameters(now.z)
        f = posterior.predict(now.z, inputs, key)
        record = {f"U_{l}": matrix for l, matrix in enumerate(U, 1)}
        record |= {
            "U_a": U_a,
            "accuracy": correct(f, y_test).mean(),
            "log_density": posterior.log_density(now.z),
            "energy": now.energy,
            "leapfrog_steps": now.leapfrog_steps,
            "acceptance": now.acceptance,
            "diverging": now.diverging,
            "step_size": now.step_size,
        }
        return record, f

    return observe


def _compiled(sampler: Sampler, observe, block: int):
    """All chains by any number of steps up to a block: new state, and a record."""

    def one(state, free_key, first, steps):
        shapes, f = jax.eval_shape(observe, state, free_key)
        record = {k: jnp.zeros((block, *v.shape), v.dtype) for k, v in shapes.items()}
        sums = jnp.zeros((2, STRETCHES, *f.shape))

        def body(i, carry):
            state, record, sums = carry
            state = sampler.step(state)
            values, f = observe(state, jax.random.fold_in(free_key, first + i))
            record = {k: record[k].at[i].set(v) for k, v in values.items()}
            sums = sums.at[:, i * STRETCHES // block].add(jnp.stack([f, f**2]))
            return state, record, sums

        carry = (state, record, sums)
        state, record, sums = jax.lax.fori_loop(0, steps, body, carry)
        means = sums * STRETCHES / block
        return state, record | {"f_mean": means[0], "f_square": means[1]}

    @jax.jit
    def advance(state, free_keys, first, steps):
        chain = lambda state, free_key: one(state, free_key, first, steps)
        # Side by side all chains wait for the longest tree: on a CPU twice the time.
        if jax.default_backend() == "cpu":
            return jax.lax.map(lambda pair: chain(*pair), (state, free_keys))
        return jax.vmap(chain)(state, free_keys)

    return advance


def trouble(method: str, step_size: float) -> str:
    """What to do about an energy that is not finite."""
    if _row(method).adapts:
        return NOT_FINITE
    return (
        f"{method} is unstable at this step size: take a smaller step_size than "
        f"{step_size:.3g}."
    )


def forecast(seconds: float, warming: bool) -> str:
    """Time that is left, in words."""
    pace = "the first steps of the warm-up" if warming else "the first block of draws"
    return f"about {duration(seconds)} left at the pace of {pace}"


def _run(store, state, advance, method: str, pieces: list[int], report) -> None:
    """All pieces that are not stored yet."""
    first, total = sum(pieces[: store.done]), sum(pieces)
    report.begin("sampling", total, total)
    if store.done:
        report.note(f"continued after step {first} of {total}")
        report.advance(first)
    for number in range(store.done, len(pieces)):
        steps, begun = pieces[number], time.monotonic()
        state, record = jax.block_until_ready(advance(state, first, steps))
        if not np.isfinite(record["energy"]).all():
            raise ValueError(trouble(method, float(record["step_size"].max())))
        store.append(state, jax.tree.map(np.asarray, record))
        first += steps
        report.advance(steps)
        if number in (0, store.warmup):
            seconds_left = (total - first) / steps * (time.monotonic() - begun)
            report.note(forecast(seconds_left, number < store.warmup))
    report.finish()


class Predictor(NamedTuple):
    """Posterior mean and variance of f with their Monte Carlo errors."""

    mean: Float[np.ndarray, "Q *K"]
    mean_stderr: Float[np.ndarray, "Q *K"]
    variance: Float[np.ndarray, "Q *K"]
    variance_stderr: Float[np.ndarray, "Q *K"]


class StretchMeans:
    """Means of f and f^2, and their errors from a bounded number of stretches.

    Neighbouring stretches are merged until at most `STRETCHES_HELD` per chain remain.
    The means take all of them; the errors leave out the last stretch when not full.
    """

    def __init__(self, stretches: int) -> None:
        """For as many stretches per chain as will be added."""
        self._merged = -(-stretches // STRETCHES_HELD)
        self._full = stretches // self._merged
        self._stretches, self._added = stretches, 0
        self._sums: np.ndarray | None = None

    def add(self, f_mean, f_square) -> None:
        """The next stretches: arrays (chains, stretches, Q, *K)."""
        if self._sums is None:
            slot = -(-self._stretches // self._merged)
            shape = (2, f_mean.shape[0], slot, *f_mean.shape[2:])
            self._sums = np.zeros(shape)
        for stretch in range(f_mean.shape[1]):
            slot = self._added // self._merged
            self._sums[0, :, slot] += f_mean[:, stretch]
            self._sums[1, :, slot] += f_square[:, stretch]
            self._added += 1

    def predictor(self) -> Predictor:
        """Mean and variance of f over all stretches, once they are added."""
        assert self._sums is not None and self._added == self._stretches
        chains = self._sums.shape[1]
        mean, square = self._sums.sum(axis=(1, 2)) / (chains * self._stretches)
        f, f_square = self._sums[:, :, : self._full] / self._merged
        # <f^2> - <f>^2 to first order in the deviations of both means from theirs.
        spread = f_square - 2 * mean * f
        used = np.sqrt(self._full * self._merged / self._stretches)
        return Predictor(
            mean,
            used * summary(f).stderr,
            square - mean**2,
            used * summary(spread).stderr,
        )


def _collect(store, method: str) -> WeightDraws:
    """All blocks, joined; of f only the means of merged stretches, one block a time."""
    means = StretchMeans(STRETCHES * (store.done - store.warmup))
    blocks = []
    for block in store.draws():
        means.add(block.pop("f_mean"), block.pop("f_square"))
        blocks.append(block)
    joined = {k: np.concatenate([b[k] for b in blocks], axis=1) for k in blocks[0]}
    f, energy = means.predictor(), joined["energy"]
    layers = sum(name.startswith("U_") for name in joined) - 1
    return WeightDraws(
        U=tuple(joined[f"U_{l}"] for l in range(1, layers + 1)),
        U_a=joined["U_a"],
        accuracy=joined["accuracy"],
        predictor_mean=f.mean,
        predictor_mean_stderr=f.mean_stderr,
        predictor_variance=f.variance,
        predictor_variance_stderr=f.variance_stderr,
        log_density=joined["log_density"],
        energy=energy,
        divergences=int(joined["diverging"].sum()),
        leapfrog_steps=joined["leapfrog_steps"],
        acceptance=joined["acceptance"],
        bfmi=bfmi(energy) if _row(method).momenta else None,
        step_size=joined["step_size"][:, -1],
    )


def _digest(key, posterior: weight_space.WeightPosterior, *arrays, **settings) -> str:
    """SHA-256 of all that the numbers depend on besides the study."""
    digest = hashlib.sha256(repr(sorted(settings.items())).encode())
    static = (posterior.shapes, posterior.variances, posterior.temperature)
    optional = (*posterior.skip, posterior.activation)
    static += tuple(
        x if isinstance(x, str) else float(x) for x in optional if x is not None
    )
    digest.update(repr(static).encode())
    for array in (jax.random.key_data(key), posterior.inputs, posterior.Y, *arrays):
        digest.update(repr((array.shape, array.dtype.name)).encode())
        digest.update(np.asarray(array).tobytes())
    return digest.hexdigest()
