r"""Tangent dynamics of the mean-field map, O(M) dense rows per step.

Tangent columns live in the attention window (docs/theory/dmft.md, section 3), stored
by slot as in `network.State`: the new column of the newest A overwrites the oldest
slot.  With $p_d$ the softmax weights and
$D_{d,a} = \gamma p_d (m^v_{a,d} - A_a)$, the attention responds to the tokens as

    $\delta A_a = \sum_d p_d \, \delta m^v_{a,d}
        + \sum_d D_{d,a} \sum_e (m^q_e \delta m^k_{e,d} + \delta m^q_e m^k_{e,d})$

and every token responds to the A that drew it through its own M x M Jacobian, taken by
JAX when the token is drawn and kept beside it (`response`).  Linearising the whole
step instead costs 2.4 times as much for 4 columns and 4 times for 12
(docs/performance.md); a test holds the two together.
"""

import equinox as eqx
import jax
import jax.numpy as jnp
from jaxtyping import Array, Float

from statmech_attn.batches import add_loop, add_up, WRITTEN_OUT
from statmech_attn.dmft.mean_field import attention_weights, receive, step
from statmech_attn.dmft.network import (
    Network,
    Parameters,
    require_parallel,
    State,
    token,
)
from statmech_attn.dynamics import orthonormalise, safe_log, TangentSystem


class Lifted(eqx.Module):
    """State with the response of each token in the window to the A that drew it."""

    state: State
    response: Float[Array, "C 2 M M *batch"]  # of m^v and m^k: [slot, kind, a, b]


class TangentMap(TangentSystem):
    """The mean-field map of one network with its structured tangent dynamics."""

    net: Network
    params: Parameters

    def __check_init__(self):
        require_parallel(self.params)

    @property
    def rank(self) -> int:
        """Each slot of the window acts through W^o only."""
        return self.net.context * self.net.output_rank

    def step(self, state: State) -> State:
        return step(self.net, self.params, state)

    def vector(self, state: State) -> Float[Array, "MC *batch"]:
        return state.attention.reshape(
            (self.net.dimension,) + state.attention.shape[2:]
        )

    def at(self, state: State, vector) -> State:
        attention = vector.reshape(state.attention.shape)
        draw = lambda slot: token(self.net, self.params, *slot)
        slots = (attention, jnp.arange(self.net.context))
        _, v, _, k = jnp.moveaxis(jax.lax.map(draw, slots), 1, 0)
        return State(v, k, attention, state.clock, state.tokens)

    @property
    def layout_period(self) -> int:
        """The window is a ring of C slots."""
        return self.net.context

    def lift(self, state: State) -> Lifted:
        kept_response = lambda slot: self._response(*slot)[1][jnp.array([1, 3])]
        slots = (state.attention, jnp.arange(self.net.context))
        return Lifted(state, jax.lax.map(kept_response, slots))

    def lower(self, lifted: Lifted) -> State:
        return lifted.state

    def push(self, lifted: Lifted, frame):
        return self.push_measured(lifted, frame)[:2]

    def push_measured(self, lifted: Lifted, frame):
        """The window moves up; only the A that leaves it is replaced.

        Args:
            lifted: the step with what its derivative needs, as `lift` gives it.
            frame: tangent vectors in columns.
        """
        after, rows = self._linearised(lifted)
        context, slot = self.net.context, after.state.clock
        columns = frame.reshape((context, self.net.n_patterns) + frame.shape[1:])
        new = self._product(rows, columns)
        # Not written into its slot: XLA for CPUs may fuse the product into the update
        # of the array that it reads, and then reads what it has just overwritten
        # (github.com/openxla/xla/issues/49176).
        slots = [jnp.where(slot == d, new, columns[d]) for d in range(context)]
        leaving = jax.lax.dynamic_index_in_dim(rows, slot, 0, False)
        _, lengths, _ = orthonormalise(leaving)
        log_det = add_up(safe_log(length) for length in lengths)
        return after, jnp.concatenate(slots), log_det

    def _linearised(self, lifted: Lifted):
        """The state after one step, and the dense rows of its Jacobian (C, M, M)."""
        state = lifted.state
        slot = state.clock
        overlaps, fresh = self._response(state.newest, slot)
        after = receive(self.net, self.params, state, overlaps)
        replaced = fresh[jnp.array([1, 3])]
        response = jax.lax.dynamic_update_index_in_dim(
            lifted.response, replaced, slot, 0
        )
        rows = self._rows(after, slot, overlaps[2], response, fresh[2])
        return Lifted(after, response), rows

    def _product(self, rows, columns):
        """Dense rows (C, M, M) times tangent columns (C, M, k)."""
        context, n = self.net.context, self.net.n_patterns
        term = lambda row, column, b: row[:, b][:, None] * column[b][None]
        if context * n <= WRITTEN_OUT:
            slots = range(context)
            return add_up(term(rows[d], columns[d], b) for d in slots for b in range(n))

        def of_slot(d):
            at = lambda x: jax.lax.dynamic_index_in_dim(x, d, 0, False)
            row, column = at(rows), at(columns)
            return add_up(term(row, column, b) for b in range(n))

        return add_loop(of_slot, context)

    def _response(self, attention, clock):
        """Overlaps (4, M) of a token and their Jacobian (4, M, M) in A."""
        draw = lambda A: token(self.net, self.params, A, clock)
        units = jnp.eye(self.net.n_patterns)
        units = units.reshape(units.shape + (1,) * (attention.ndim - 1))
        units = jnp.broadcast_to(units, units.shape[:1] + attention.shape)
        column = lambda unit: jax.jvp(draw, (attention,), (unit,))
        return jax.vmap(column, out_axes=(None, 2))(units)

    def _rows(self, after: State, slot, m_q, response, query_response):
        """Dense rows dA/dA_slot (C, M, M); the newest slot acts through its query too.

        Putting the query's share into the rows, not into the product, also makes XLA
        compute the rows once and not again for every column (twice the speed).
        """
        gamma, n = self.params.gamma, self.net.n_patterns
        p = attention_weights(gamma, m_q, after.k, after.tokens)
        D = gamma * p[:, None] * (after.v - after.newest)
        key_pull = add_up(m_q[e] * response[:, 1, e] for e in range(n))
        rows = p[:, None, None] * response[:, 0] + D[:, :, None] * key_pull[:, None]
        pull = add_up(after.k[d][:, None] * D[d][None] for d in range(self.net.context))
        query = add_up(pull[e][:, None] * query_response[e][None] for e in range(n))
        newest = jax.lax.dynamic_index_in_dim(rows, slot, 0, False) + query
        return jax.lax.dynamic_update_index_in_dim(rows, newest, slot, 0)
