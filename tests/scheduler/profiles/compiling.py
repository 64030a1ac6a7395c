"""KnownProfiles over plugins that a test names, without an API server."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import msgspec

from plugins.framework.interfaces import PreEnqueuePlugin, ScorePlugin
from plugins.framework.status import Status, unschedulable
from plugins.priority_sort import PrioritySort
from plugins.registry import PLUGINS
from scheduler.config import Profile, default_config
from scheduler.config.file_profile import PluginConfig, PluginEntry, Plugins, PluginSet
from scheduler.profiles import Mode, ProfileVersion
from scheduler.profiles.known_profiles import KnownProfiles
from scheduler.profiles.profile_compiler import ProfileCompiler
from tests.scheduler.parts import NoBinding

if TYPE_CHECKING:
    from cache.objects import Pod
    from plugins.framework.handle import Handle
    from plugins.framework.interfaces import Plugin
    from scheduler.config import SchedulerConfig
    from scheduler.profiles.known_profiles import Shadows
    from scheduler.profiles.profile_compiler import PythonLoader


class DialArgs(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    level: int = 0


class Dial(ScorePlugin):
    """Scores nothing; its arguments tell policies apart."""

    name = "Dial"
    args_type = DialArgs

    def __init__(self, args, handle):
        super().__init__(args, handle)
        self.level = 0 if args is None else args.level

    def score(self, state, info, nodes):
        raise AssertionError("nothing is scored here")


class Shut(PreEnqueuePlugin):
    """Lets no pod in."""

    name = "Shut"

    def pre_enqueue(self, pod: Pod) -> Status:
        return unschedulable("shut")


class OtherSort(PrioritySort):
    """Sorts the queue, under another name."""

    name = "OtherSort"


class Breaks(ScorePlugin):
    """Cannot be made."""

    name = "Breaks"

    def __init__(self, args: object, handle: object) -> None:
        raise RuntimeError("boom")

    def score(self, state, info, nodes):
        raise AssertionError("nothing is scored here")


KNOWN: dict[str, type[Plugin]] = {
    **PLUGINS,
    **{each.name: each for each in (Dial, Shut, OtherSort, Breaks)},
}


class Compiling:
    """KnownProfiles, and what they have swapped in."""

    def __init__(
        self,
        *,
        config: SchedulerConfig | None = None,
        plugins: dict[str, type[Plugin]] | None = None,
        shadows: Shadows | None = None,
        load_python: PythonLoader | None = None,
    ) -> None:
        self.plugins = dict(KNOWN if plugins is None else plugins)
        compiler = ProfileCompiler(
            lambda: self.plugins, cast("Handle", NoBinding()), None, load_python
        )
        self.policies = KnownProfiles(compiler, shadows)
        self.swaps: list[dict[str, str]] = []
        self.told: list[frozenset[str]] = []
        assert not self.policies.set_file(config or default_config("berth"))
        self.policies.go_live(
            lambda frameworks: self.swaps.append(
                {each.profile_name: each.policy.text for each in frameworks}
            )
        )
        self.policies.subscribe(self.told.append)

    def running(self) -> dict[str, str]:
        """Which policy decides, by schedulerName."""
        return {each.profile_name: each.policy.text for each in self.policies.frameworks()}


def enabled(*names: str, level: int | None = None, scheduler_name: str = "gpu") -> Profile:
    """A profile with plugins on top of the default ones."""
    multi_point = PluginSet(tuple(PluginEntry(name) for name in names))
    config = () if level is None else (PluginConfig("Dial", {"level": level}),)
    return Profile(scheduler_name, plugins=Plugins(multi_point=multi_point), plugin_config=config)


def spec(
    name: str = "gpu",
    generation: int = 1,
    profile: Profile | None = None,
    *,
    created: str = "2026-01-01T00:00:00Z",
    mode: Mode = Mode.ACTIVE,
    uid: str = "",
    **more,
) -> ProfileVersion:
    return ProfileVersion(
        name,
        uid or f"uid-{name}",
        generation,
        profile or enabled(),
        created=created,
        mode=mode,
        **more,
    )
