"""Wrong arguments for what a face offers: `python arguments.py dmft [NAME ...]`.

The example of every docstring is run, and the arguments of its first call recorded.
The call is then made again with one argument wrong at a time.  A line is printed for
each that ends neither in one line of the package nor in an answer without NaN.
"""

import contextlib
import doctest
import importlib
import inspect
import io
import math
import os
import signal
import sys
import tempfile
import traceback
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import numpy as np

import statmech_attn
from statmech_attn.batches import runtime


HOUSE = os.path.dirname(statmech_attn.__file__)
NAN = {  # arguments of which finite values may give NaN, as docstrings say
    "mean_of_known: values": "a single sample has no error",
    "standard_error: values": "a single sample has no error",
    "power_law: stderr": "no weights",
    "bias_slope: shared": "no bias beyond five errors",
    "spread_ratio: predicted": "nothing fluctuates",
    "spread_slope: error": "not known",
    "ablate: pairs": "a head with itself",
    "finite_time_exponents: state": "it diverges",
    "lyapunov_spectrum: state": "it diverges",
    "returns: state": "its codes say why",
    "normal_form: kind": "a fold has no second-order term",
    "score: resamples": "no error without them",
}
NUMBERS = ("float64", "float32", "int64", "int32", "bool")
VARIADIC = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
SECONDS = 60  # for one call, most of which are refused in microseconds


class Late(BaseException):
    """A call has not ended."""


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def late(*_: Any) -> None:
    raise Late


def within(seconds: float, function: Callable[[], Any]) -> Any:
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        with contextlib.redirect_stdout(io.StringIO()):
            return function()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def wrong(value: Any) -> Iterator[Any]:
    """Of another type, sign, size or shape."""
    yield from (None, "x", {}, [], 1j, math.nan, -1, 0, True, 2.5, object(), math.inf)
    yield from (10**400, np.ones((2, 2, 2, 2, 2)), {"x": None}, b"x")
    if getattr(value, "ndim", 0) and str(getattr(value, "dtype", "")) in NUMBERS:
        array = np.asarray(value)
        unknown = array.astype(float)
        unknown.flat[0] = np.nan
        yield from (unknown, array[None], array[0], array + 0j, array[:-1], array[:0])


def offers(face: Any) -> list[str]:
    """Names that a package offers, or of the functions that a module defines."""
    functions = (name for name in dir(face) if name[0] != "_")
    own = lambda name: getattr(getattr(face, name), "__module__", "") == face.__name__
    return getattr(face, "__all__", None) or [*filter(own, functions)]


def recorded(face: Any, name: str) -> tuple[Any, inspect.BoundArguments | None]:
    """The arguments of the first call of a function in its example."""
    offered, calls = getattr(face, name), []
    plain = inspect.unwrap(offered)

    def recorder(*given: Any, **named: Any) -> Any:
        calls.append((given, named))
        return offered(*given, **named)

    home = dict(vars(importlib.import_module(plain.__module__)))
    home[plain.__name__] = face.__dict__[name] = recorder
    text = plain.__doc__ or ""
    examples = doctest.DocTestParser().get_doctest(text, home, name, None, 0)
    runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
    told = io.StringIO()
    try:
        within(600, lambda: runner.run(examples, out=told.write, clear_globs=False))
    finally:
        face.__dict__[name] = offered
    if runner.failures:
        say(f"{name}: its example fails: {' '.join(told.getvalue().split())[-600:]}")
    calls = [call for call in calls if not any(map(traced, jax.tree.leaves(call)))]
    if not calls:
        return offered, None
    given, named = calls[0]
    call = inspect.signature(plain).bind(*given, **named)
    call.apply_defaults()
    return offered, call


def traced(leaf: Any) -> bool:
    return isinstance(leaf, jax.core.Tracer)


def unknown(result: Any) -> bool:
    """NaN among the numbers of a result."""
    arrays = np.ndarray | np.generic | jax.Array
    leaves = [x for x in jax.tree.leaves(result) if isinstance(x, arrays)]
    return any(np.isnan(x).any() for x in leaves if np.asarray(x).dtype.kind == "f")


def finite(value: Any) -> bool:
    """Whether a wrong argument holds finite numbers, of which none may become NaN."""
    try:
        return bool(np.isfinite(np.asarray(value, float)).all())
    except (TypeError, ValueError, OverflowError):
        return True


def fault(function: Callable[[], Any], name: str, nan: bool) -> str:
    """What is wrong with how a call ends, or ""; NaN is not, where it may come."""
    try:
        result = within(SECONDS, lambda: jax.block_until_ready(function()))
        known = nan or hasattr(result, "reason") or not unknown(result)
        return "" if known else "an answer with NaN"
    except Late:
        return "no end"
    except Exception as error:
        message = str(error)
        where = traceback.extract_tb(error.__traceback__)[-1].filename
        ours = where.startswith(HOUSE) or name in message
        lawful = isinstance(error, ValueError | TypeError | OSError | RuntimeError)
        if lawful and ours and "\n" not in message and len(message) < 1000:
            return ""
        return f"{type(error).__name__}: {' '.join(message.split())[:200]}"


def main(package: str, *chosen: str) -> None:
    room, *module = package.split(".")
    face: Any = importlib.import_module(f"statmech_attn.{room}")
    face = getattr(face, module[0]) if module else face
    count = 0
    for name in chosen or offers(face):
        offered = getattr(face, name)
        if inspect.isclass(offered) or not inspect.isfunction(inspect.unwrap(offered)):
            continue
        offered, call = recorded(face, name)
        if call is None:
            continue
        nan = bool(fault(lambda: offered(*call.args, **call.kwargs), "", False))
        for argument, value in call.arguments.items():
            if call.signature.parameters[argument].kind in VARIADIC:
                continue
            may = nan or f"{name}: {argument}" in NAN
            for other in wrong(value):
                given = {**call.arguments, argument: other}
                again = inspect.BoundArguments(call.signature, given)
                call_again = lambda: offered(*again.args, **again.kwargs)
                count += 1
                if ends := fault(call_again, argument, may or not finite(other)):
                    shown = " ".join(repr(other).split())[:40]
                    say(f"{name}: {argument} = {shown}: {ends}")
    sys.stderr.write(f"{count} calls\n")


if __name__ == "__main__":
    jax.config.update("jax_enable_x64", True)
    runtime.compile_quickly()
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, late)
    os.chdir(tempfile.mkdtemp())
    main(*sys.argv[1:])
