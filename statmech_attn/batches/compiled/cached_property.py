"""A property that the first thread to ask computes, such as a compiled program."""

from collections.abc import Callable
from functools import cached_property
from threading import RLock
from typing import Any, TypeVar


T = TypeVar("T")


class once(cached_property[T]):
    """A `functools.cached_property` that one thread computes while others wait for it.

    Python 3.12's own computes it in each thread that asks before it is there.
    """

    def __init__(self, compute: Callable[[Any], T]):
        super().__init__(compute)
        self._guard = RLock()

    def __get__(self, instance, owner=None):
        with self._guard:
            return super().__get__(instance, owner)
