"""Members that plugins cannot distinguish: they are counted and refused together."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
from msgspec.structs import replace

from cache.objects import Volume
from cache.value import MutableValue
from plugins.framework.interfaces import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from plugins.names import IN_TREE

if TYPE_CHECKING:
    from collections.abc import Hashable, Sequence

    from cache.objects import PodSpec
    from cache.pod_info import PodInfo
    from scheduler.runtime.framework_runner import FrameworkRunner

pack: Final = msgspec.msgpack.Encoder().encode

_SOURCES: Final = tuple(name for name in Volume.__struct_fields__ if name != "name")


class Shape(MutableValue, eq=False):
    """Members with equal specs, as far as plugins read them; their labels may differ.

    Attributes
    ----------
    members
        At least one, in the order of their creation.
    """

    index: int
    members: list[PodInfo] = msgspec.field(default_factory=list)

    @property
    def first(self) -> PodInfo:
        """The member that stands for all others."""
        return self.members[0]


class Likeness(NamedTuple):
    """What plugins can tell of a member: equal values get equal verdicts at one moment."""

    shape: int
    rest: Hashable


class Shapes:
    """The members of a group by shape.

    Parameters
    ----------
    framework
        The profile of the members.
    members
        All of one namespace.

    Notes
    -----
    *Cost*: some 3 us for each member.
    """

    def __init__(self, framework: FrameworkRunner, members: Sequence[PodInfo]) -> None:
        users = _plugins_of_users(framework)
        strangers = [p for p in users if isinstance(p, (PreFilterPlugin, FilterPlugin))]
        self._signing = tuple(p for p in strangers if type(p).signature is not Plugin.signature)
        self._has_unknown = len(self._signing) < len(strangers)
        self.has_strangers = bool(users)
        """Whether a user's plugin judges nodes."""
        self._by_key: dict[Hashable, Shape] = {}
        self.shapes: list[Shape] = []
        """The shapes, in the order of their first members."""
        self._of: dict[str, Shape] = {}
        self._likeness: dict[str, Likeness] = {}
        last: PodSpec | None = None
        last_shape: Shape | None = None
        for info in members:
            spec = info.pod.spec
            if last_shape is None or spec != last or self._signing:
                last, last_shape = spec, self._shape(info)
            last_shape.members.append(info)
            self._of[info.uid] = last_shape

    def __len__(self) -> int:
        return len(self.shapes)

    def of(self, info: PodInfo) -> Shape:
        """Return the shape of a member."""
        return self._of[info.uid]

    def likeness(self, info: PodInfo) -> Likeness:
        """Return what plugins can tell of a member besides the cluster."""
        known = self._likeness.get(info.uid)
        if known is None:
            known = self._likeness[info.uid] = Likeness(self._of[info.uid].index, self._rest(info))
        return known

    def _shape(self, info: PodInfo) -> Shape:
        key = self._key(info)
        known = self._by_key.get(key)
        if known is None:
            known = self._by_key[key] = Shape(len(self.shapes))
            self.shapes.append(known)
        return known

    def _key(self, info: PodInfo) -> Hashable:
        spec = info.pod.spec
        if spec.volumes:
            # A pod's token has a name of its own in each pod.
            volumes = tuple(each for each in spec.volumes if _is_read(each))
            spec = replace(spec, volumes=volumes)
        status = info.pod.status
        # A running pod may request other amounts than its spec says.
        own = info.uid if status.container_statuses or status.resources else ""
        return pack(spec), own, self._signatures(info)

    def _signatures(self, info: PodInfo) -> Hashable:
        try:
            return tuple(plugin.signature(info) for plugin in self._signing)
        except Exception:  # noqa: BLE001 - its filter is asked in any case, and says whose fault it is
            return info.uid

    def _rest(self, info: PodInfo) -> Hashable:
        if self._has_unknown or has_claims(info):
            return info.uid
        metadata = info.pod.metadata
        owners = tuple(owner.uid for owner in metadata.owner_references)
        return frozenset(metadata.labels.items()), owners


def has_claims(info: PodInfo) -> bool:
    """Return whether a pod has volumes that plugins look at, or resource claims."""
    spec = info.pod.spec
    return bool(spec.resource_claims) or any(map(_is_read, spec.volumes))


def _is_read(volume: Volume) -> bool:
    """Return whether a plugin looks at a volume: it has one of the sources that are kept."""
    return any(getattr(volume, source) is not None for source in _SOURCES)


def _plugins_of_users(framework: FrameworkRunner) -> tuple[Plugin, ...]:
    judges = (PreFilterPlugin, FilterPlugin, PreScorePlugin, ScorePlugin)
    return tuple(p for p in framework.plugins if isinstance(p, judges) and p.name not in IN_TREE)
