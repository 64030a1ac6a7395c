"""Define the base of plain values: frozen classes that only hold what they were made of."""

from __future__ import annotations

import msgspec


class Value(msgspec.Struct, frozen=True):
    """Base of plain values: immutable, equal if all fields are, with a readable repr.

    For values that every start defines: to define a subclass takes 0.1 ms, and a frozen dataclass
    0.5 ms, because it compiles its methods. :func:`dataclasses.replace` does not accept a value,
    :func:`msgspec.structs.replace` does.

    *Concurrency*: immutable.
    """
