"""The messages between the scheduler and its insight worker: frames of MessagePack.

    to the worker     Profiles, Objects ..., Assumed, then Question; again and again
    from the worker   Answer

A frame is its length in four bytes, and a message. Objects are sent as the structs that the
informers store, so that the worker's copy equals them.
"""

from __future__ import annotations

from functools import cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

import msgspec

from scheduler.config import EffectiveProfile
from scheduler.config.extender import Extender, ManagedResource
from scheduler.kinds import WATCHED
from scheduler.user_plugins.plugin_source import SOURCE_ATTRIBUTE, PluginSource

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from plugins.framework.interfaces import Plugin

    Classes: TypeAlias = Mapping[str, type[Plugin]]

LENGTH_BYTES: Final = 4
MAX_ANSWER_BYTES: Final = 32 << 20
"""A larger answer is not sent: an explanation of 15 000 nodes has a quarter of it."""

MAX_HEAD_BYTES: Final = 1 << 10
"""What an answer's frame has besides its body, at most."""

KINDS: Final = {kind.name: kind for kind in WATCHED}


class WireSource(msgspec.Struct, frozen=True):
    """The code of users' plugins: a file, or a key of a ConfigMap."""

    kind: Literal["directory", "config-map"]
    name: str
    text: str


class WireProfile(msgspec.Struct, frozen=True, tag_field="type"):
    """An effective profile without its classes: the worker has them, or loads them from code."""

    scheduler_name: str
    percentage_of_nodes_to_score: int
    points: dict[str, tuple[str, ...]]
    score_weights: dict[str, int]
    args: dict[str, bytes]
    """JSON."""
    classes: tuple[str, ...]
    sources: tuple[WireSource, ...] = ()
    """The code in force of those classes that have some."""
    extenders: tuple[tuple[str, ...], ...] = ()
    """The resources that each extender manages; the extenders themselves stay with the scheduler,
    and so do their addresses and keys."""

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
            _sources(profile),
            tuple(tuple(r.name for r in each.managed_resources) for each in profile.extenders),
        )

    def effective(
        self, known: Mapping[str, type[Plugin]], load: Callable[[PluginSource], Classes]
    ) -> EffectiveProfile:
        """Return the profile with the worker's classes; its extenders have resources only.

        Parameters
        ----------
        known
            The plugins of the worker.
        load
            Returns the plugins of some code.

        Raises
        ------
        LookupError
            A plugin is not known here.
        msgspec.MsgspecError
            Arguments cannot be read.
        PluginLoadError
            Code cannot be used.
        """
        plugins = dict(known)
        for source in self.sources:
            plugins |= load(PluginSource.of_text(source.kind, source.name, source.text))
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
            tuple(
                Extender("", managed_resources=tuple(map(ManagedResource, names)))
                for names in self.extenders
            ),
        )


def _sources(profile: EffectiveProfile) -> tuple[WireSource, ...]:
    found = {getattr(each, SOURCE_ATTRIBUTE, None) for each in profile.classes.values()}
    texts = [
        WireSource(each.kind, each.name, each.text)
        for each in found
        if isinstance(each, PluginSource) and each.kind != "entry-point" and each.text is not None
    ]
    return tuple(sorted(texts, key=lambda each: (each.kind, each.name)))


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
    only_text
        Whether the answer to ``why`` needs no data: with 5 000 nodes they are a megabyte.
    """

    id: int
    kind: str
    limit_s: float
    shows_nodes: bool = False
    shows_pods: bool = False
    pod: str = ""
    body: bytes = b""
    only_text: bool = False


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


@cache
def _decoder_of(kind: str) -> msgspec.msgpack.Decoder[Any]:
    """Return the decoder of a list of objects; only the worker needs any, and not at its start."""
    return msgspec.msgpack.Decoder(cast("Any", list)[KINDS[kind].struct])


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
    found: list[Any] = _decoder_of(message.kind).decode(message.changed)
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
