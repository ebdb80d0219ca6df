"""Packages that import what they offer when it is first asked for (PEP 562).

A package says once where its contents come from, in a form that type checkers read:

    if TYPE_CHECKING:
        from statmech_attn.bpkr.problem import Problem as Problem
        from statmech_attn.bpkr.heads.scores import score as score

    lazy.attach(__name__)

so importing it costs nothing, and `bpkr.Problem` imports `bpkr.problem`.  A name as
itself is for users and in `__all__` (PEP 484); one without `as` is for other packages.
"""

import ast
import importlib
import sys
from collections.abc import Container
from types import ModuleType
from typing import Any


GUARD = "TYPE_CHECKING"
# Name offered -> module that has it, and its name there; "" is the module itself.
Places = dict[str, tuple[str, str]]


class Package(ModuleType):
    """A package whose contents are imported one by one."""

    __sources__: Places
    __checks__: bool
    __checked__: Container[str]

    def __getattr__(self, name: str) -> Any:
        if name not in self.__sources__:
            words = f"module {self.__name__!r} has no attribute {name!r}"
            raise AttributeError(words, name=name, obj=self)
        path, original = self.__sources__[name]
        module = importlib.import_module(path)
        value = getattr(module, original, None) if original else module
        if value is None:  # a module of a package
            value = importlib.import_module(f"{path}.{original}")
        return self._offer(name, value)

    def _offer(self, name: str, value: Any) -> Any:
        function = not isinstance(value, ModuleType)
        offered = name in self.__checked__ or (function and self.__checks__)
        if name in self.__sources__ and offered:
            from statmech_attn.arguments import checked  # once something is asked for

            value = checked(value, self.__name__, name)
        self.__dict__[name] = value
        return value

    def __setattr__(self, name: str, value: Any) -> None:
        # An imported submodule is set on its package, where a function may be offered
        # by the same name: `bpkr.evidence` is one of module `bpkr.evidence`.
        _, original = self.__sources__.get(name, ("", ""))
        submodule = isinstance(value, ModuleType) and value.__name__.endswith(
            f".{name}"
        )
        if not (original and submodule):
            self._offer(name, value)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *self.__sources__})

    def __reduce__(self) -> tuple[Any, ...]:  # other processes import it
        return importlib.import_module, (self.__name__,)


def attach(name: str, *, checks: bool = True, modules: Container[str] = ()) -> None:
    """Make a package offer what it imports under `if TYPE_CHECKING:`.

    Args:
        name: `__name__` of the package, at the end of its `__init__`.
        checks: whether functions refuse arguments that are not what they ask for.
        modules: names of those whose functions do so, too.
    """
    package = sys.modules[name]
    assert package.__spec__ is not None and package.__spec__.loader is not None
    text = package.__spec__.loader.get_source(name)  # type: ignore[attr-defined]
    public = sorted(sources(text, name, public=True))
    package.__dict__.update(__sources__=sources(text, name), __all__=public)
    package.__dict__.update(__checks__=checks, __checked__=modules)
    package.__class__ = Package


def sources(text: str, name: str, public: bool = False) -> dict[str, tuple[str, str]]:
    """Where contents of a package, or those for users, come from: of its `__init__`.

    Example:
        >>> sources("if TYPE_CHECKING:\\n from a import b\\n from a.b import c", "a")
        {'b': ('a.b', ''), 'c': ('a.b', 'c')}
    """
    places = {}
    for block in ast.parse(text).body:
        if not (isinstance(block, ast.If) and ast.unparse(block.test) == GUARD):
            continue
        for statement in block.body:
            assert isinstance(statement, ast.ImportFrom) and statement.module
            path = statement.module
            for alias in statement.names:
                module = f"{path}.{alias.name}", ""
                place = module if path == name else (path, alias.name)
                if alias.asname or not public:
                    places[alias.asname or alias.name] = place
    return places
