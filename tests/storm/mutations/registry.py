"""The list of protections that can be taken away, each with a context in which it is gone."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from tests.regressions.broken_variants import VARIANTS
from tests.regressions.replaced import name_of, replaced

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager


@dataclass(frozen=True, slots=True)
class Mutation:
    """A protection.

    Attributes
    ----------
    removed
        What is missing without it.
    apply
        Returns a context without it.
    theme
        Of the worlds that shall notice it; empty for all.
    extra
        That those worlds have; several are joined by ``+``, empty for any.
    """

    removed: str
    apply: Callable[[], AbstractContextManager[None]]
    theme: str = ""
    extra: str = ""


MUTATIONS: Final[dict[str, Mutation]] = {}
FORMER: Final[dict[str, Mutation]] = {}
"""Mistakes that Berth once had, put back: see :mod:`tests.storm.mutations.step7`."""


def without(name: str) -> AbstractContextManager[None]:
    """Return a context in which a protection is gone; an empty name stands for none."""
    if not name:
        return nullcontext()
    found = MUTATIONS.get(name) or FORMER.get(name)
    return VARIANTS[name]() if found is None else found.apply()


def mutation(
    patched: Any, *attributes: str, theme: str = "", extra: str = ""
) -> Callable[..., Any]:
    """Register what makes other methods, of a class or a module, out of the real ones.

    The docstring says what is missing then. What is made of several methods is several ones.
    """

    def register(make: Callable[..., Any]) -> Callable[..., Any]:
        removed = (make.__doc__ or "").strip()
        broken = partial(replaced, patched, attributes, make)
        MUTATIONS[name_of(make)] = Mutation(removed, broken, theme, extra)
        return make

    return register


def variant(name: str, removed: str, theme: str = "", extra: str = "") -> None:
    """Take a variant of the regression scenarios into the list."""
    MUTATIONS[name] = Mutation(removed, VARIANTS[name], theme, extra)
