"""Compiled programs that other processes load without a trace.

XLA's own store is asked by the program, which must be traced and lowered first.  Here a
program is also known by what its trace depends on (`Origin`), where that has a name.
Such an entry names the program, so that after a change of this package, whose programs
are mostly the same, it is traced once and not compiled anew.
"""

import pickle
from collections.abc import Callable, Sequence
from typing import NamedTuple

import jax
from jax.experimental import serialize_executable

from statmech_attn import kept_files
from statmech_attn.batches.compiled import compilations


FOLDER = "stages"  # below the store of JAX
# XLA finds a program in its own store by its options as well, and what it has read from
# there cannot be stored here: a default that is spelled out keeps both stores apart.
OPTIONS = {"xla_embed_ir_in_executable": False}


class Origin(NamedTuple):
    """What programs depend on beside the function and its examples.

    Attributes:
        trace: all that the traces depend on, settings of JAX included.
        machine: all that decides what is made of a trace.
    """

    trace: tuple[str, ...]
    machine: tuple[str, ...]

    def parts(self, function: Callable, examples: tuple) -> tuple[str, ...]:
        """All that the program of a function depends on."""
        name = f"{function.__module__}.{function.__qualname__}"
        leaves, structure = jax.tree.flatten(examples)
        kinds = [f"{jax.typeof(x)!r} {getattr(x, 'weak_type', False)}" for x in leaves]
        return *self.trace, *self.machine, name, str(structure), *kinds


def kept(
    origin: Origin,
    function: Callable,
    examples: tuple,
    lower: Callable[[], jax.stages.Lowered],
) -> jax.stages.Compiled:
    """The stored program, or the one that is compiled, and stored where it can be.

    `origin` is all that it depends on beside the rest; `lower` traces the function,
    with `OPTIONS` among those of the compiler.
    """
    parts = origin.parts(function, examples)
    name = kept_files.read(FOLDER, parts)
    if name is not None and (program := _loaded([name.decode()], examples)):
        return program
    lowered = lower()
    texts = lowered.as_text(), *origin.machine
    before = compilations.count()
    compiled = lowered.compile()
    requests = compilations.count().since(before)
    name = kept_files.digest(texts)
    # XLA can store only what it has just compiled.
    if requests.compiled and not requests.read:
        program, _, tree = serialize_executable.serialize(compiled)
        results = jax.tree.unflatten(tree, range(tree.num_leaves))
        kept_files.write(FOLDER, [name], pickle.dumps((program, results)))
    kept_files.write(FOLDER, parts, name.encode())
    return compiled


def _loaded(parts: Sequence[str], examples: tuple) -> jax.stages.Compiled | None:
    """A stored program; None where there is none, or one that cannot be loaded."""
    content = kept_files.read(FOLDER, parts)
    if content is None:
        return None
    try:
        program, results = pickle.loads(content)
        trees = map(jax.tree.structure, ((examples, {}), results))
        return serialize_executable.deserialize_and_load(program, *trees)
    except (RuntimeError, TypeError, ValueError):
        return None
