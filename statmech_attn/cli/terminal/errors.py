"""What is said when a command ends with an exception, and with which exit code.

Errors of the input, of files and of the machine are one line and code 1.  Any other
exception is an error of this package: it says so, with a code of its own.
"""

import dis
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from statmech_attn.reporting import line_of


INPUT = 1
INTERNAL = 70  # EX_SOFTWARE of sysexits.h
PACKAGE = __name__.partition(".")[0]
NO_THREAD = "can't start new thread"  # of Python, where memory or a limit is reached
NO_PATH = ("embedded null ", "Symlink loop ")  # of Python, about paths
STUDY = "statmech_attn_study_"  # of the names of modules that are files of studies
COMMAND_LINE = ("click", "typer")  # which print their own exceptions: wrong options


def of_the_command_line(error: BaseException) -> bool:
    """Whether an exception ends the program, or is about words that it was given."""
    return type(error).__module__.partition(".")[0] in COMMAND_LINE


def described(error: BaseException) -> tuple[str, int]:
    """One line for an exception, and the exit code."""
    from statmech_attn.scan import signals

    if isinstance(error, signals.Unfinished):
        return str(error), error.exit_code
    if isinstance(error, KeyboardInterrupt) or signals.interrupted():
        return "interrupted; no output is left half written.", signals.exit_code()
    if isinstance(error, SystemExit):
        who = _place_of_others(error) or "code that this command runs"
        return f"{who} ends in SystemExit: {error.code!r}.", INPUT
    if isinstance(error, MemoryError):
        return f"there is not enough memory{_in_brackets(error)}.", INPUT
    if isinstance(error, OSError) and error.filename and error.strerror:
        missing = isinstance(error, FileNotFoundError)
        reason = "no such file" if missing else error.strerror
        return f"{error.filename}: {reason}.", INPUT
    if _expected(error):
        return line_of(error) or type(error).__name__, INPUT
    if place := _place_of_others(error):
        return f"{place} ends in {type(error).__name__}{_in_brackets(error)}.", INPUT
    return (
        f"this is an error of statmech-attn, not of its input: {type(error).__name__}"
        f"{_in_brackets(error)}; please report it with the output of the same command "
        "after statmech-attn --debug.",
        INTERNAL,
    )


def _place_of_others(error: BaseException) -> str:
    """The last line of a study's or a plug-in's code that an error went through."""
    from statmech_attn import kinds

    place, trace = "", error.__traceback__
    while trace is not None:
        frame = trace.tb_frame
        module, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
        owner = "the study" if module.startswith(STUDY) else kinds.owner(module)
        if owner:
            place = f"line {trace.tb_lineno} of {os.path.basename(file)} ({owner})"
        trace = trace.tb_next
    return place


def _expected(error: BaseException) -> bool:
    """Whether input, a file or the machine is at fault."""
    if isinstance(error, RuntimeError) and str(error) == NO_THREAD:
        return True
    if isinstance(error, (ValueError, RuntimeError)) and str(error).startswith(NO_PATH):
        return True
    code = sys.modules.get("statmech_attn.studies.files.user_code")
    if code is not None and isinstance(error, code.Refused):
        return True
    jax = sys.modules.get("jax")
    if isinstance(error, OSError) or (
        jax is not None and isinstance(error, jax.errors.JaxRuntimeError)
    ):
        return True
    return isinstance(error, (ValueError, RuntimeError)) and raised_on_purpose(error)


def raised_on_purpose(error: BaseException) -> bool:
    """Whether an exception comes from a `raise` of this package.

    What an expression or another package raises is not foreseen.
    """
    last = error.__traceback__
    if last is None:
        return False
    while last.tb_next is not None:
        last = last.tb_next
    frame = last.tb_frame
    instruction = dis.opname[frame.f_code.co_code[last.tb_lasti]]
    module = frame.f_globals.get("__name__", "")
    return instruction == "RAISE_VARARGS" and module.partition(".")[0] == PACKAGE


@contextmanager
def of_file(file: str | Path, what: str) -> Iterator[None]:
    """What nobody foresaw while the content of a file is shown names the file."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as err:
        if raised_on_purpose(err):
            raise
        raise ValueError(
            f"{file}: {what} ({type(err).__name__}: {line_of(err)}): values of the "
            "file do not fit together, or this is an error of statmech-attn; "
            "statmech-attn --debug shows where."
        ) from err


def _in_brackets(error: BaseException) -> str:
    line = line_of(error)
    return f" ({line})" if line else ""
