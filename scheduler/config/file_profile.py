"""Define the structs of profiles in a configuration file.

*Source*: k8s.io/kube-scheduler config/v1/types.go (0.36): KubeSchedulerProfile, Plugins, PluginSet,
Plugin, PluginConfig; later versions for the fields that are named with theirs.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Annotated, Final, TypeAlias

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

Int32: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
Int64: TypeAlias = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]
Percentage: TypeAlias = Annotated[int, msgspec.Meta(ge=0, le=100)]

MULTI_POINT: Final = "multiPoint"

ALL_PLUGINS: Final = "*"
"""In ``disabled``: all plugins that the defaults would enable there."""


class FileStruct(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Base of what stands in a file: immutable, strict, camelCase outside."""


class PluginEntry(FileStruct, frozen=True):
    """A plugin of a set. ``weight`` counts where it scores; None and 0 mean 1 there."""

    name: str
    weight: Int32 | None = None


class PluginSet(FileStruct, frozen=True):
    """What is enabled on top of the defaults, and which of the defaults are not."""

    enabled: tuple[PluginEntry, ...] = ()
    disabled: tuple[PluginEntry, ...] = ()

    def disables(self, name: str) -> bool:
        """Tell whether a default plugin is not wanted."""
        return any(entry.name in (name, ALL_PLUGINS) for entry in self.disabled)


NOTHING_SET: Final = PluginSet()


class Plugins(FileStruct, frozen=True):
    """The sets by extension point; ``multi_point`` stands for every point a plugin serves."""

    pre_enqueue: PluginSet = NOTHING_SET
    queue_sort: PluginSet = NOTHING_SET
    pre_filter: PluginSet = NOTHING_SET
    filter: PluginSet = NOTHING_SET
    post_filter: PluginSet = NOTHING_SET
    pre_score: PluginSet = NOTHING_SET
    score: PluginSet = NOTHING_SET
    reserve: PluginSet = NOTHING_SET
    permit: PluginSet = NOTHING_SET
    pre_bind: PluginSet = NOTHING_SET
    bind: PluginSet = NOTHING_SET
    post_bind: PluginSet = NOTHING_SET
    multi_point: PluginSet = NOTHING_SET
    placement_generate: PluginSet = NOTHING_SET
    placement_score: PluginSet = NOTHING_SET
    pod_group_post_filter: PluginSet = NOTHING_SET  # 1.37
    placement_feasible: PluginSet = NOTHING_SET  # 1.38

    def by_point(self) -> Mapping[str, PluginSet]:
        """Return the sets by the names of the points in the file, multiPoint among them."""
        return MappingProxyType(
            {
                field.encode_name: getattr(self, field.name)
                for field in msgspec.structs.fields(Plugins)
            }
        )


NO_PLUGINS: Final = Plugins()


class PluginConfig(FileStruct, frozen=True):
    """The arguments of a plugin: plain data in the file, the plugin's own struct once checked."""

    name: str
    args: object = None


class Profile(FileStruct, frozen=True):
    """A scheduler within the scheduler, chosen by pods with ``spec.schedulerName``.

    Parameters
    ----------
    scheduler_name
        Never empty once the defaults are filled in.
    percentage_of_nodes_to_score
        None to do as the whole configuration says.
    percentage_of_placements_to_score
        Of 1.38; not honoured.
    """

    scheduler_name: str = ""
    percentage_of_nodes_to_score: Percentage | None = None
    percentage_of_placements_to_score: Percentage | None = None
    plugins: Plugins = NO_PLUGINS
    plugin_config: tuple[PluginConfig, ...] = ()
