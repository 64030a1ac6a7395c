"""What ``kubectl get ... -o json`` printed, as single objects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator


class DumpError(ValueError):
    """A dump that cannot be read; the message is one sentence."""


class _Document(msgspec.Struct, frozen=True):
    kind: str = ""
    items: tuple[msgspec.Raw, ...] | None = None


_DOCUMENT: Final = msgspec.json.Decoder(_Document)


def read_dump(text: bytes, source: str) -> Iterator[tuple[msgspec.Raw, str]]:
    """Yield the objects of a list, or the one object that there is, with their presumed kinds.

    The items of a ``PodList`` do not say that they are pods; those of kubectl's ``List`` do.

    Parameters
    ----------
    text
        JSON.
    source
        What it was read from, for messages.

    Raises
    ------
    DumpError
        When it is no JSON object.
    """
    try:
        document = _DOCUMENT.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        why = f"{source} is not what kubectl get -o json prints: {error}"
        raise DumpError(why) from error
    if document.items is None:
        yield msgspec.Raw(text), document.kind
        return
    kind = "" if document.kind == "List" else document.kind.removesuffix("List")
    for raw in document.items:
        yield raw, kind
