"""The messages between the scheduler and its insight worker: frames of MessagePack.

    to the worker     Profiles, Objects ..., Assumed, then Question; again and again
    from the worker   Answer

A frame is its length in four bytes, and a message. Objects are sent as the structs that the
informers store, so that the worker's copy equals them.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from scheduler.config import EffectiveProfile
from scheduler.kinds import WATCHED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from plugins.framework.interfaces import Plugin

LENGTH_BYTES: Final = 4
MAX_ANSWER_BYTES: Final = 32 << 20
"""A larger answer is not sent: an explanation of 15 000 nodes has a quarter of it."""

KINDS: Final = {kind.name: kind for kind in WATCHED}


class WireProfile(msgspec.Struct, frozen=True, tag_field="type"):
    """An effective profile without its classes, which the worker has itself."""

    scheduler_name: str
    percentage_of_nodes_to_score: int
    points: dict[str, tuple[str, ...]]
    score_weights: dict[str, int]
    args: dict[str, bytes]
    """JSON."""
    classes: tuple[str, ...]

    @classmethod
    def of(cls, profile: EffectiveProfile) -> WireProfile:
        """Return a profile in this form."""
        return cls(
            profile.scheduler_name,
            profile.percentage_of_nodes_to_score,
            dict(profile.points),
            dict(profile.score_weights),
            {name: msgspec.json.encode(args) for name, args in profile.args.items()},
            tuple(profile.classes),
        )

    def effective(self, plugins: Mapping[str, type[Plugin]]) -> EffectiveProfile:
        """Return the profile with the worker's classes; extenders are not asked.

        Raises
        ------
        LookupError
            A plugin is not known here.
        msgspec.MsgspecError
            Arguments cannot be read.
        """
        unknown = sorted(name for name in self.classes if name not in plugins)
        if unknown:
            raise LookupError(f"the plugin {unknown[0]} is known to the scheduler only")
        args = {
            name: msgspec.json.decode(text, type=plugins[name].args_type)
            for name, text in self.args.items()
        }
        return EffectiveProfile(
            self.scheduler_name,
            self.percentage_of_nodes_to_score,
            MappingProxyType(self.points),
            MappingProxyType(self.score_weights),
            MappingProxyType(args),
            MappingProxyType({name: plugins[name] for name in self.classes}),
        )


class Profiles(msgspec.Struct, frozen=True, tag="profiles"):
    """The profiles in force."""

    profiles: tuple[WireProfile, ...]


class Objects(msgspec.Struct, frozen=True, tag="objects"):
    """Changes of objects of one kind: new versions, and the UIDs of those that are gone."""

    kind: str
    changed: msgspec.Raw
    """A list of structs of that kind."""
    gone: tuple[str, ...] = ()


class Assumed(msgspec.Struct, frozen=True, tag="assumed"):
    """The nodes of all assumed pods by UID, in place of what was sent before."""

    nodes: dict[str, str]


class Question(msgspec.Struct, frozen=True, tag="question"):
    """A question.

    Parameters
    ----------
    id
        Returned with the answer.
    kind
        ``why`` or ``what-if``.
    limit_s
        How long the answer may take.
    shows_nodes, shows_pods
        Whether the user may see the names of nodes, and of pods of all namespaces.
    pod
        ``namespace/name``, for ``why``.
    body
        JSON, for ``what-if``.
    """

    id: int
    kind: str
    limit_s: float
    shows_nodes: bool = False
    shows_pods: bool = False
    pod: str = ""
    body: bytes = b""


class Answer(msgspec.Struct, frozen=True, tag="answer"):
    """An answer: JSON, or why there is none.

    Parameters
    ----------
    status
        As of HTTP; 200 if ``body`` is the answer, else it is a sentence.
    """

    id: int
    status: int
    body: bytes


Message: TypeAlias = Profiles | Objects | Assumed | Question | Answer

_DECODER: Final = msgspec.msgpack.Decoder(Message)
_LISTS: Final[Mapping[str, msgspec.msgpack.Decoder[Any]]] = {
    name: msgspec.msgpack.Decoder(list[kind.struct])  # type: ignore[name-defined]
    for name, kind in KINDS.items()
}


def _plain(value: object) -> dict[Any, Any]:
    """Return an immutable mapping, which is none of MessagePack's types, as a dict."""
    if isinstance(value, MappingProxyType):
        return dict(value)
    raise NotImplementedError(f"{type(value)} cannot be sent")


_ENCODER: Final = msgspec.msgpack.Encoder(enc_hook=_plain)


def frame(message: Message) -> bytes:
    """Return a message as a frame."""
    body = _ENCODER.encode(message)
    return len(body).to_bytes(LENGTH_BYTES, "big") + body


def objects_frame(kind: str, changed: Sequence[Any], gone: Sequence[str]) -> bytes:
    """Return changes of objects of a kind as a frame."""
    return frame(Objects(kind, msgspec.Raw(_ENCODER.encode(changed)), tuple(gone)))


def decode(body: bytes | memoryview) -> Message:
    """Return the message of a frame without its length."""
    message: Message = _DECODER.decode(body)
    return message


def changed_objects(message: Objects) -> list[Any]:
    """Return the new versions of objects."""
    found: list[Any] = _LISTS[message.kind].decode(message.changed)
    return found


class Frames:
    """Splits received bytes into messages."""

    def __init__(self) -> None:
        self._bytes = bytearray()

    def feed(self, received: bytes) -> Iterator[Message]:
        """Yield the messages that are complete."""
        data = self._bytes
        data += received
        start = 0
        try:
            while len(data) - start >= LENGTH_BYTES:
                end = start + LENGTH_BYTES
                end += int.from_bytes(data[start:end], "big")
                if len(data) < end:
                    return
                body = bytes(data[start + LENGTH_BYTES : end])
                start = end
                yield decode(body)
        finally:
            del data[:start]
