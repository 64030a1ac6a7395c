"""The annotations of pods and nodes that are stored.

Annotations can be large: the last applied manifest, the data of a network plugin. None of them
matters to the rules of kube-scheduler, and storing all would double a pod's memory. So only those
annotations are stored whose keys a policy may read: they are selected by prefix.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

EMPTY_MAP: Final[Mapping[str, str]] = MappingProxyType({})
"""The one empty map that stands for every absent map."""

OWN_PREFIX: Final = "scheduling.berth.dev/"
"""Annotations that begin so are always kept."""

MIRROR_ANNOTATION: Final = "kubernetes.io/config.mirror"
"""The kubelet writes it to the mirror pod of a static pod."""

_prefixes: tuple[str, ...] = (OWN_PREFIX,)


def keep_annotations(prefixes: Iterable[str]) -> None:
    """Keep annotations whose keys begin with one of these prefixes, besides Berth's own.

    Holds for the whole process, since structs are decoded everywhere, and for objects that are
    read from now on: to be called once, before the first.

    Raises
    ------
    ValueError
        When a prefix is empty: it would keep all.
    """
    global _prefixes  # noqa: PLW0603 - decoders make structs, and nothing can be handed to them
    wanted = tuple(sorted({OWN_PREFIX, *prefixes}))
    if "" in wanted:
        raise ValueError("an empty prefix would keep every annotation")
    _prefixes = wanted


def kept_prefixes() -> tuple[str, ...]:
    """Return the prefixes of the annotations that are kept."""
    return _prefixes


def kept_annotations(annotations: Mapping[str, str]) -> Mapping[str, str]:
    """Return the annotations to keep in a new mapping; the shared empty one for none."""
    kept = {key: text for key, text in annotations.items() if key.startswith(_prefixes)}
    return kept or EMPTY_MAP
