"""Functions inside transformations of JAX: which derivatives exist, which are refused.

docs/python.md has the table.  Loops of a length that is no part of the program have
derivatives in forward mode alone; functions that choose their work by numbers have to
know these.  Where JAX would say so in words of its own, it is a line of this package.
"""

import functools
from collections.abc import Callable
from typing import Any, cast, TypeVar

import jax
from jax.core import Tracer
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

from statmech_attn import presentation


Traced = TypeVar("Traced", bound=Callable[..., Any])


def forward_only(function: Traced) -> Traced:
    """A function whose derivatives in reverse mode are refused in one line.

    Example:
        >>> @forward_only
        ... def square(x):
        ...     return x**2
        >>> float(jax.jacfwd(square)(3.0))
        6.0
        >>> try:
        ...     jax.grad(square)(3.0)
        ... except ValueError as error:
        ...     print(str(error).splitlines()[0])
        square has derivatives in forward mode only: use jax.jacfwd.
    """

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        result = function(*arguments, **options)
        mark = lambda x: _mark.bind(x, name=function.__name__)
        return jax.tree.map(lambda x: mark(x) if isinstance(x, Tracer) else x, result)

    return presentation.knows_given(cast(Traced, wrapped))


def untraced(function: Traced) -> Traced:
    """A function that has to know its numbers, and refuses those that JAX traces.

    Example:
        >>> @untraced
        ... def sign(x):
        ...     return 1 if x > 0 else -1
        >>> try:
        ...     jax.jit(sign)(3.0)
        ... except ValueError as error:
        ...     print(str(error).splitlines()[0])
        sign works with numbers: not inside jax.jit, vmap or grad.
    """

    @functools.wraps(function)
    def wrapped(*arguments: Any, **options: Any) -> Any:
        if any(isinstance(x, Tracer) for x in jax.tree.leaves((arguments, options))):
            raise ValueError(
                f"{function.__name__} works with numbers: not inside jax.jit, vmap or "
                "grad."
            )
        return function(*arguments, **options)

    return presentation.knows_given(cast(Traced, wrapped))


def _transposed(_: Any, *__: Any, name: str) -> None:
    raise ValueError(f"{name} has derivatives in forward mode only: use jax.jacfwd.")


_mark = Primitive("forward_only")  # the identity
_mark.def_impl(lambda x, *, name: x)
_mark.def_abstract_eval(lambda x, *, name: x)
mlir.register_lowering(_mark, lambda context, x, *, name: [x])
batching.defvectorized(_mark)
ad.deflinear2(_mark, _transposed)
