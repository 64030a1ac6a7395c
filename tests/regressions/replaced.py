"""Put something else in place of a method: what all variants of the scheduler are made with."""

from __future__ import annotations

from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager


@contextmanager
def replaced(patched: Any, attributes: tuple[str, ...], make: Callable[..., Any]) -> Iterator[None]:
    """Have other attributes of a class or a module, made of the real ones, until the end.

    What is made of several attributes is several ones.
    """
    made = make(*(getattr(patched, attribute) for attribute in attributes))
    others = made if len(attributes) > 1 else (made,)
    with ExitStack() as stack:
        for attribute, other in zip(attributes, others, strict=True):
            stack.enter_context(patch.object(patched, attribute, other))
        yield


def name_of(make: Callable[..., Any]) -> str:
    """Return the name of the variant that a function makes."""
    return make.__name__.strip("_").replace("_", "-")


def registering(table: dict[str, Callable[[], AbstractContextManager[None]]]) -> Callable[..., Any]:
    """Return a decorator for functions that make other attributes of the real ones.

    It takes the class or module and the names of the attributes, and puts the variant into a table
    under the name of the function.
    """

    def variant(patched: Any, *attributes: str) -> Callable[..., Any]:
        def register(make: Callable[..., Any]) -> Callable[..., Any]:
            table[name_of(make)] = partial(replaced, patched, attributes, make)
            return make

        return register

    return variant
