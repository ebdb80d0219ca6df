r"""Simulation of N spins, each with its own random number (docs/theory/dmft.md, 5).

Spin i of class c points against its field when its uniform number U_i is below the
probability p_c = (1 - tanh |h_c|)/2.  The numbers of 32 spins are drawn bit by bit,
most significant first, as bit planes: word r_b holds bit b of all 32.  With t_b bit b
of p_c

    below  |=  equal & t_b & ~r_b        U < p decided at bit b
    equal  &=  ~(r_b ^ t_b)              still undecided

until every spin is decided or 64 bits are used: p_c is met to 2^-64, and a spin uses
about 17 random bits instead of 64.  Words are counted (population count) block by
block as they are drawn, so memory does not grow with N.

    block      (B, lanes) or (lanes, B) words of 32 spins of one class: `block_words`
    plan       (blocks,) class, first word and spins left of every block
"""

from functools import partial

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Float, Int

from statmech_attn.montecarlo.finite_networks.collapsed import by_class, class_means
from statmech_attn.montecarlo.finite_networks.randomness import threefry, Words


WORD = 32  # spins per word
BLOCK_WORDS = 8192  # words of all lanes of a block together: they stay in the cache
FIRST_PLANES = 16  # bits drawn before asking whether all spins are decided
MAX_SPINS = WORD * 2**32  # per class: one counter word numbers the words


class Plan(eqx.Module):
    """How the spins of all classes are cut into blocks of words."""

    counts: Int[Array, " S"]
    site_class: Int[Array, " blocks"]
    first_word: Int[Array, " blocks"]
    spins_left: Int[Array, " blocks"]
    block_words: int = eqx.field(static=True)


def plan_blocks(counts: Int[np.ndarray, " S"], lanes: int) -> Plan:
    """Cut classes of N_c spins into blocks for a batch of `lanes` simulations.

    No class has more than 2^37 spins.
    """
    if counts.max() > MAX_SPINS:
        raise ValueError(
            f"n_spins: at most 2^37 spins per class at the level of spins; got "
            f"{counts.max()}. Use the collapsed simulation."
        )
    words = -(-counts // WORD)
    size = int(min(max(BLOCK_WORDS // max(lanes, 1), 1), words.max()))
    blocks = -(-words // size)
    site_class = np.repeat(np.arange(len(counts)), blocks)
    first = np.concatenate([np.arange(b) * size for b in blocks])
    spins_left = counts[site_class] - WORD * first
    arrays = [jnp.asarray(x) for x in (counts, site_class, first, spins_left)]
    return Plan(arrays[0], arrays[1], arrays[2], arrays[3], size)


def draw_spins(lanes: Words, fields, plan: Plan) -> Float[Array, "S *batch"]:
    """Class means of a sampled token, one random number per spin.

    Cipher keys have words (*batch), `fields` h_c are (S, *batch).
    """
    keys, n = by_class(lanes, fields, plan.counts)
    keys = tuple(x.reshape(x.shape[0], -1) for x in keys)
    flat = fields.reshape(fields.shape[0], -1)
    # The longer axis last, which is the one that XLA vectorises.
    axis = 1 if plan.block_words > flat.shape[1] else 0
    threshold = threshold_words(jax.nn.sigmoid(-2 * jnp.abs(flat)))
    pick = lambda pair, c: tuple(
        jax.lax.dynamic_index_in_dim(x, c, 0, False) for x in pair
    )

    def add_block(i, rare):
        c, spins_left = plan.site_class[i], plan.spins_left[i]
        below = bernoulli_words(
            pick(keys, c),
            pick(threshold, c),
            plan.first_word[i],
            plan.block_words,
            axis,
        )
        return rare.at[c].add(
            _count(below & _valid(spins_left, plan.block_words, axis), axis)
        )

    rare = jnp.zeros(flat.shape, jnp.int64)
    rare = jax.lax.fori_loop(0, plan.site_class.size, add_block, rare)
    return class_means(fields, rare.reshape(fields.shape).astype(float), n)


def threshold_words(p: Float[Array, "..."]) -> Words:
    """The first 64 binary digits of p <= 1/2, as two words."""
    digits = jnp.floor(p * 2.0**64).astype(jnp.uint64)
    return (digits >> np.uint64(32)).astype(jnp.uint32), digits.astype(jnp.uint32)


def bernoulli_words(keys: Words, threshold: Words, first, size: int, axis: int):
    """`size` words of independent bits that are one with probability p.

    Cipher keys of the class and digits of p, from `threshold_words`, are (lanes,);
    `first` is the number of the first word within the class.  The result is (words,
    lanes) for axis 0 and (lanes, words) for 1.
    """
    keys, threshold = jax.tree.map(
        lambda x: jnp.expand_dims(x, axis), (keys, threshold)
    )
    index = jnp.expand_dims((first + jnp.arange(size)).astype(jnp.uint32), 1 - axis)
    below = jnp.zeros(jnp.broadcast_shapes(index.shape, keys[0].shape), jnp.uint32)
    equal = ~below
    draw = partial(_two_planes, keys, threshold, index)
    for pair in range(FIRST_PLANES // 2):
        below, equal = draw(jnp.uint32(pair), below, equal)

    def undecided(carry):
        pair, _, equal = carry
        return (equal != 0).any() & (pair < 32)

    def refine(carry):
        pair, below, equal = carry
        for _ in range(2):
            below, equal = draw(pair, below, equal)
            pair = pair + np.uint32(1)
        return pair, below, equal

    start = (jnp.uint32(FIRST_PLANES // 2), below, equal)
    return jax.lax.while_loop(undecided, refine, start)[1]


def _two_planes(keys, threshold, index, pair, below, equal):
    """Compare the next two bits of every spin with those of its threshold."""
    digits = jnp.where(pair < 16, threshold[0], threshold[1])
    shift = np.uint32(31) - (np.uint32(2) * pair & np.uint32(31))
    for r, back in zip(threefry(keys, (index, pair)), (0, 1), strict=True):
        t = np.uint32(0) - ((digits >> (shift - np.uint32(back))) & np.uint32(1))
        below, equal = below | (equal & t & ~r), equal & ~(r ^ t)
    return below, equal


def _valid(spins_left, size, axis):
    """Ones where a word holds spins of the class: the last word may be part full."""
    start = jnp.expand_dims(WORD * jnp.arange(size), 1 - axis)
    inside = jnp.clip(spins_left - start, 0, WORD).astype(jnp.uint64)
    return ((np.uint64(1) << inside) - np.uint64(1)).astype(jnp.uint32)


def _count(words, axis):
    return jax.lax.population_count(words).sum(axis, dtype=jnp.int64)
