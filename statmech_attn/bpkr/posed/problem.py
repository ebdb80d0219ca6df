r"""A Bayesian learning problem, posed once (docs/theory/bpkr.md, sections 1 and 2).

What is learned from, with which network, at which temperature.  Everything is checked
and scaled when a problem is built, and its kernels are computed then; what the theory
says of it is asked of `bpkr.Problem`.

    xi                (P, N_0, Pi)       attentioned inputs, or kernels   `xi`
    c                 (Pi,)              their prefactor in the kernel,
                                         sigma_0 / sqrt(N_0 |Pi|), with skips
                                         sigma_0 c_pi / sqrt(N_0)         `scale`
    Y                 (P,) or (P, K)     labels                           `Y`
    T                 ()                 temperature                      `temperature`
    N_1 ... N_L, N_a  (L+1,)             widths                           `widths`
    sigma_0^2 ... sigma_a^2  (L+2,)      variances of the prior           `variances`
    b_1 ... b_L       (L,)               skip connections, None without   `skip`
    K(U)                                 kernel of U_1                    `operator`
"""

import math
from collections.abc import Sequence
from typing import Any, TypeVar

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array, Bool, Float, Int

from statmech_attn import presentation
from statmech_attn.arguments import checks
from statmech_attn.batches import require_double
from statmech_attn.bpkr.posed import compression, prior
from statmech_attn.bpkr.posed.activations import Kernels
from statmech_attn.bpkr.posed.checked_arrays import (
    check_test,
    checked_inputs,
    checked_labels,
)
from statmech_attn.bpkr.posed.kernel_forms import (
    choose_form,
    CrossInputs,
    fitting_operator,
    FORMS,
    MEMORY_LIMIT,
    Operator,
    path_kernels,
    PathFactors,
    PathKernels,
)
from statmech_attn.bpkr.posed.kernels import prefactor
from statmech_attn.bpkr.posed.quantities import (
    heuristic_row,
    TEMPERATURE_OF_ONE,
    WIDTHS_OF_ONE,
)
from statmech_attn.labels import Variable
from statmech_attn.options import Count, NotNegatives, Numbers, Positive, Temperature


_Problem = TypeVar("_Problem", bound="Posed")
Inputs = Float[Array, "_Q _N_0 _Pi"] | Kernels
POSED = {  # what makes a problem, in words
    "xi": "inputs xi",
    "Y": "labels Y",
    "heads": "heads",
    "widths": "widths",
    "temperature": "temperature",
    "variances": "variances",
    "skipped": "skip connections",
}

_rows = jax.jit(lambda values, indices: values[indices])  # else many operations


class Posed(eqx.Module):
    """Data, network and temperature of one posterior: the data of `bpkr.Problem`."""

    xi: Float[Array, "P N_0 Pi"] | Any  # Kernels where kernels were given
    Y: Float[Array, "P *K"]
    temperature: Float[Array, ""]
    widths: Float[Array, " layers"]  # L + 1 with the readout
    variances: Float[Array, " layers+1"]
    skip: prior.Skip
    scale: Float[Array, " Pi"]
    operator: Operator
    compressed: compression.Compressed | None
    heads: tuple[int, ...] = eqx.field(static=True)
    form: str | None = eqx.field(static=True)
    memory_limit: int = eqx.field(static=True)

    _shown = (
        Variable("examples", "", "examples", symbol="P", value=lambda p: p.shape[0]),
        Variable(
            "inputs",
            "",
            "size of an input",
            symbol="N_0",
            value=lambda p: p.shape[1] or None,
        ),
        Variable("heads", "layer_with_heads", "heads per layer", symbol="H"),
        Variable(
            "skip",
            "layer_with_heads",
            "skip connections",
            symbol="b",
            value=lambda p: [b if b is not None else 0.0 for b in p.skip],
        ),
        Variable(
            "paths", "", "attention paths", symbol="|Π|", value=lambda p: p.shape[2]
        ),
        Variable("outputs", "", "outputs", symbol="K"),
        WIDTHS_OF_ONE._replace(value="widths"),
        TEMPERATURE_OF_ONE,
        Variable("variance", "weights", "variances of the prior", value="variances"),
        heuristic_row(),
    )
    __repr__, _repr_html_, to_dataset = presentation.METHODS

    @checks
    def __init__(
        self,
        xi: Kernels | Numbers,
        Y: Numbers,
        *,
        heads: Sequence,
        width: Numbers,
        temperature: Temperature,
        variances: NotNegatives | None = None,
        skip: Sequence | Numbers | None = None,
        form: str | None = None,
        memory_limit: Count = MEMORY_LIMIT,
    ):
        require_double()
        law = prior.prior(width, heads, variances, skip)
        prior.check_temperature(temperature)
        self.heads = law.heads
        self.skip = jax.tree.map(jnp.asarray, law.skip)
        self.temperature = jnp.asarray(float(temperature))
        self.widths, self.variances = map(jnp.asarray, (law.widths, law.variances))
        self.memory_limit = memory_limit
        if isinstance(xi, Kernels):
            self._given(xi, Y, form)
            return
        self.xi = checked_inputs(xi, self.heads, self.branches)
        self.Y = checked_labels(Y, len(self.xi))
        shares = prior.path_shares(law.heads, law.skip)
        scale = prefactor(float(law.variances[0]), self.xi.shape[1], shares)
        self.scale = jnp.asarray(scale)
        self.form = form
        self.compressed = self._compression(self.Y, self.widths, self.temperature)
        self.operator = (
            PathFactors(self.xi, self.scale)
            if self._more_than_rank
            else fitting_operator(self.xi, self.scale, self.outputs, **self._options)
        )

    def _given(self, kernels: Kernels, Y, form: str | None) -> None:
        """Kernels in place of inputs: there are no factors, and no sigma_0."""
        kernels.check_training(math.prod(self.branches))
        if self.variances[0] != 1 or form == "factors":
            wrong = "form" if form == "factors" else "variances"
            raise ValueError(
                f'{wrong}: kernels that are given contain sigma_0^2 and have form "'
                'kernels"; leave sigma_0^2 = 1 and the form out.'
            )
        self.xi = kernels
        self.Y = checked_labels(Y, kernels.shape[0])
        self.scale = jnp.ones(kernels.shape[2])
        self.form = "kernels"
        self.operator = PathKernels(kernels.blocks)
        self.compressed = self._compression(self.Y, self.widths, self.temperature)

    @property
    def _options(self) -> dict[str, Any]:
        return {"form": self.form, "memory_limit": self.memory_limit}

    def _compression(self, Y, widths, T) -> compression.Compressed | None:
        variance = float(np.prod(np.asarray(self.variances)[1:]))
        posed = Y, float(T), float(np.asarray(widths).max()), variance
        if isinstance(self.xi, Kernels):
            return compression.of_kernels(self.xi, *posed)
        return compression.of_inputs(self.xi, self.scale, *posed, **self._options)

    @property
    def _more_than_rank(self) -> bool:
        """Whether there are more examples than inputs have features, of all paths."""
        examples, *features = self.xi.shape[:3]
        return not isinstance(self.xi, Kernels) and examples > math.prod(features)

    @property
    def rows(self: _Problem) -> _Problem:
        """The problem on rows in the place of examples, or itself.

        Order parameters, corrections and predictions are the same; the energy lacks
        `outside`.
        """
        if self.compressed is None:
            return self
        rows = self.compressed
        changed = lambda p: (p.xi, p.Y, p.operator, p.compressed)
        return eqx.tree_at(changed, self, (rows.xi, rows.Y, rows.operator, None))

    @property
    def outside(self) -> Array | float:
        r"""What E has from labels outside the rows, $m \ln T + |Y_\perp|^2 / T$."""
        if self.compressed is None:
            return 0.0
        return self.compressed.constant(self.temperature, self.lost)

    @property
    def lost(self) -> int:
        """Number of directions of the labels outside the rows."""
        return 0 if self.compressed is None else self.Y.size - self.compressed.Y.size

    @property
    def heuristic(self) -> bool:
        """Whether kernels were given that are not those of a linear network."""
        return isinstance(self.xi, Kernels) and not self.xi.linear

    @property
    def training(self) -> CrossInputs | Kernels:
        """The training examples beside themselves."""
        if isinstance(self.xi, Kernels):
            return self.xi
        return CrossInputs(self.xi, self.xi, self.scale)

    @checks
    def cross_inputs(self, xi_test: Inputs) -> CrossInputs | Kernels:
        """New inputs, or kernels of them, beside the training examples, or `rows`."""
        if not isinstance(self.xi, Kernels):
            return CrossInputs(self.test_inputs(xi_test), self.rows.xi, self.scale)
        paths, examples, got = self.xi.shape[2], self.xi.shape[0], "an array"
        if isinstance(xi_test, Kernels):
            got = xi_test.blocks.shape
            if (*got[:2], got[3]) == (paths, paths, examples):
                test = xi_test.beside(self.xi)
                basis = self.compressed and self.compressed.basis
                return test if basis is None else test.along(basis)
        raise ValueError(
            "this problem has kernels: give bpkr.Kernels of shape "
            f"({paths}, {paths}, Q, {examples}) with own; got {got}."
        )

    @property
    def outputs(self) -> int:
        """Number of outputs K."""
        return 1 if self.Y.ndim == 1 else self.Y.shape[1]

    @property
    def y(self) -> Float[Array, " n"]:
        """Labels with the outputs of an example together, n = P K."""
        return self.Y.ravel()

    @property
    def branches(self) -> tuple[int, ...]:
        """Ways through every layer: its skip first if it has one, then its heads."""
        return prior.branches(self.heads, self.skip)

    @property
    def skipped(self) -> dict[int, Array | float]:
        """b_l of the layers that have a skip connection, by layer counted from one."""
        return {l: b for l, b in enumerate(self.skip, 1) if b is not None}

    @property
    def sizes(self) -> tuple[int, ...]:
        """(d_1, ..., d_L, K), the sizes of U_1 ... U_L and U_a."""
        return prior.sizes(self.branches, self.outputs)

    @property
    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Shapes of the factors of U_1 ... U_L and U_a: `prior.factor_shapes`."""
        return prior.factor_shapes(self.heads, self.skip, self.outputs)

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Examples, input features, paths and outputs, (P, N_0, |Pi|, K)."""
        n_examples, n_inputs, n_paths = self.xi.shape
        return n_examples, n_inputs, n_paths, self.outputs

    @checks
    def at(
        self: _Problem,
        *,
        width: Numbers | None = None,
        temperature: Temperature | None = None,
        Y: Numbers | None = None,
    ) -> _Problem:
        """The same inputs at another width or temperature, or with other labels.

        Inputs, kernels and what is not given stay as they are.

        Args:
            width, temperature, Y: as in `Problem`; Y of the same shape.

        Raises:
            ValueError: as `Problem`.

        Example:
            >>> import jax, jax.numpy as jnp
            >>> jax.config.update("jax_enable_x64", True)
            >>> from statmech_attn.bpkr import Problem
            >>> problem = Problem(
            ...     jnp.ones((1, 1, 1)), jnp.ones(1), heads=(1,), width=10,
            ...     temperature=0.1)
            >>> problem.at(width=20).widths.tolist()
            [20.0, 20.0]
        """
        widths, T, labels = self.widths, self.temperature, self.Y
        if width is not None:
            widths = prior.layer_widths(width, len(self.heads))
            prior.check_widths(widths, self.skip)
            widths = jnp.asarray(widths)
        if temperature is not None:
            prior.check_temperature(temperature)
            T = jnp.asarray(float(temperature))
        if Y is not None:
            labels = checked_labels(Y, self.shape[0])
            if labels.shape != self.Y.shape:
                raise ValueError(
                    f"Y must have shape {self.Y.shape}, as before; got {labels.shape}."
                )
        rows = self.compressed
        if Y is not None or not self._more_than_rank:
            rows = self._compression(labels, widths, T)
        parts = lambda p: (p.widths, p.temperature, p.Y, p.compressed)
        changed = (widths, T, labels, rows)
        return eqx.tree_at(parts, self, changed, is_leaf=lambda x: x is None)

    @checks
    def subset(
        self: _Problem,
        indices: Int[Array | np.ndarray, " n"] | Bool[Array | np.ndarray, " P"],
        *,
        form: str | None = None,
    ) -> _Problem:
        """The same network on some of the examples, or on some of them several times.

        Args:
            indices: of the examples; or, for each example, whether it is among them.
            form: as in `Problem`.

        Example:
            >>> import jax, jax.numpy as jnp
            >>> jax.config.update("jax_enable_x64", True)
            >>> from statmech_attn.bpkr import Problem
            >>> problem = Problem(
            ...     jnp.ones((3, 1, 1)), jnp.arange(3.0), heads=(1,), width=10,
            ...     temperature=0.1)
            >>> problem.subset(jnp.array([2, 0])).Y.tolist()
            [2.0, 0.0]
            >>> problem.subset(problem.Y > 0).Y.tolist()
            [1.0, 2.0]
        """
        if indices.dtype == bool:
            indices = np.flatnonzero(indices)
        xi = self.xi
        kernels = isinstance(xi, Kernels)
        return type(self)(
            xi.training_among(indices) if kernels else _rows(xi, indices),
            _rows(self.Y, indices),
            heads=self.heads,
            width=self.widths,
            temperature=self.temperature,
            variances=self.variances,
            skip=self.skip,
            form=None if kernels else form,
            memory_limit=self.memory_limit,
        )

    @checks
    def test_inputs(self, xi_test: Inputs) -> Float[Array, "_Q N_0 Pi"]:
        """New attentioned inputs as an array that fits the training inputs."""
        if isinstance(self.xi, Kernels) or isinstance(xi_test, Kernels):
            raise ValueError(
                "this needs attentioned inputs, of the training examples and of "
                "others; got kernels."
            )
        return check_test(xi_test, *self.xi.shape[1:])

    def fitted(self: _Problem, steps: Positive = 1.0) -> _Problem:
        """The problem with its kernels in a form whose Newton steps fit in memory."""
        rows = self.rows
        form = choose_form(*rows.shape, steps=steps, **self._options)
        if isinstance(rows.operator, FORMS[form]):
            return self
        of_rows = lambda p: (p.compressed or p).operator
        return eqx.tree_at(of_rows, self, path_kernels(rows.xi, rows.scale, form=form))

    def check_finite_width(self, where: str) -> None:
        """Raise `ValueError` unless widths are whole and the temperature is > 0."""
        widths = np.asarray(self.widths)
        prior.check_finite_width(widths, float(self.temperature), where)

    def check_same(self, other: "Posed", what: str) -> None:
        """Raise `ValueError` unless another problem is this one, in any form."""
        if other is self:
            return
        posed = lambda problem, name: jax.tree.map(np.asarray, getattr(problem, name))
        names = [
            words
            for name, words in POSED.items()
            if not eqx.tree_equal(posed(self, name), posed(other, name))
        ]
        if names:
            raise ValueError(
                f"{what} must be of this problem, and is of one with other "
                f"{' and '.join(names)}: ask that one (`{what}.problem`)."
            )
