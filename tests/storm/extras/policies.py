"""Policies and users' plugins that change while pods are scheduled, and that are wrong.

Each replica has the real reload of the configuration file, the real catalogue of plugins with their
guards, and the real choice between the file's profiles and SchedulingProfiles. What is absent is
what stands before them: the trial of a plugin in a process of its own, the watchdog that ends the
process, and kopf.

F29 is checked at rest: what is in force is the last configuration, the last plugin and the last
SchedulingProfile that can be used. F27: pods that have nothing to do with a plugin that raises are
scheduled all the same. A plugin's filter holds for each pod that is bound while it is in force.
"""

from __future__ import annotations

import zlib
from typing import TYPE_CHECKING, Any, Final

from scheduler.config import Mistake, Profile, SchedulerConfig, parse_config
from scheduler.config.file_profile import PluginEntry, Plugins, PluginSet
from scheduler.profiles.config_reload import ConfigSource
from scheduler.profiles.known_profiles import KnownProfiles
from scheduler.profiles.live_profiles import LiveProfiles
from scheduler.profiles.profile_compiler import ProfileCompiler
from scheduler.profiles.profile_spec import ProfileVersion
from scheduler.user_plugins.catalogue import PluginCatalogue
from scheduler.user_plugins.containment import ContainmentOptions
from scheduler.user_plugins.containment.circuit_breaker import State
from scheduler.user_plugins.containment.crash_note import Note
from scheduler.user_plugins.containment.guard import ContainedGuard
from scheduler.user_plugins.containment.plugin_code import PluginCode
from scheduler.user_plugins.finding import Found
from scheduler.user_plugins.plugin_source import PluginSource
from tests.storm import objects
from tests.storm.cluster import OWN, Controller
from tests.storm.extras.extra import Actions, Extra

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Iterator, Mapping

    from plugins.framework.interfaces import Plugin
    from tests.storm.replica import Replica
    from tests.storm.requests import Request
    from tests.storm.world import World

action: Final = Actions()

SECOND: Final = "berth-second"
"""The schedulerName that comes and goes."""

LATELY_S: Final = 30.0
"""For how long after a change the policy before it may still decide."""

PLUGIN: Final = """
from tests.storm.machine import running

class Picky:
    failure_policy = {policy!r}

    def filter(self, pod, nodes):
        wants = pod.labels.get("picky", "")
        {trouble}
        return nodes.label({key!r}).isin([{zone!r}]) if wants else nodes.names != ""
"""
TROUBLES: Final = {
    "": "pass",
    "poison": "if wants == 'poison': raise RuntimeError('poison')",
    "raises": "raise RuntimeError('always')",
    "exits": "raise SystemExit(1)",
    "slow": "running().park(0.05)",
    "nonsense": "return [7]",
}
BROKEN: Final = ("class Picky:\n    def filter(self\n", "raise RuntimeError\n", "x = 1\n")

CONFIG: Final = """
apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles:
"""
FILE_PROFILE: Final = """
- schedulerName: {name}
  plugins:
    multiPoint:
      enabled:
      - name: Picky
        weight: {weight}
"""
BAD_CONFIGS: Final = (
    "profiles: [",
    CONFIG.replace("/v1\n", "/v1beta3\n"),
    CONFIG + FILE_PROFILE.format(name="berth", weight=1).replace("Picky", "Nobody"),
    CONFIG + 2 * FILE_PROFILE.format(name="berth", weight=1),
)


class Policies(Extra):
    """Files and SchedulingProfiles as they are, and as they were when they could be used last.

    Attributes
    ----------
    plugin, config
        The texts of the plugin's file and of the configuration.
    good_plugin, good_config
        The last ones of which all is in order.
    profile
        The SchedulingProfile for :data:`SECOND`, if there is one.
    good_profile
        Its last version that can be used.
    unseen
        Which files were spoilt before every process had taken in the last good text.
    """

    NAME = "policies"
    actions = action

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.zone = self.rng.choice(objects.ZONES)
        self.trouble = ""
        self.policy = "Ignore"
        self.plugin = self.good_plugin = plugin_text(self.zone)
        self.config = self.good_config = config_text()
        self.profile: ProfileVersion | None = None
        self.good_profile: ProfileVersion | None = None
        self.made = 0
        self.unseen: set[str] = set()
        self._changed_s = -1e9
        world.cluster.limits.append(self._allows)

    def changed_now(self) -> None:
        """Take note that what is in force changes from now on."""
        self._changed_s = self.simulation.now_s

    def calm(self) -> None:
        """Leave everything as it is: what is wrong must do no harm.

        Only a file that was spoilt too soon is put right: a process that has never seen the last
        good text, or stood still meanwhile, rightly keeps the one before.
        """
        self.changed_now()
        if "plugin" in self.unseen:
            self.plugin = self.good_plugin
        if "config" in self.unseen:
            self.config = self.good_config
        self.unseen.clear()

    def spoil_plugin(self, text: str) -> None:
        """Write a plugin that cannot be used."""
        self.plugin = text
        if not self.has_last_plugin():
            self.unseen.add("plugin")

    def renew_plugin(self, number: int) -> None:
        """Write the plugin anew: a scheduler makes its profiles anew."""
        self.changed_now()
        self.trouble = ""
        self.plugin = self.good_plugin = f"{plugin_text(self.zone)}\n# version {number}"
        self.unseen.discard("plugin")

    def spoil_config(self, text: str) -> None:
        """Write a configuration that cannot be used."""
        self.config = text
        if not all(self._has_config(replica) for replica in self.world.replicas.values()):
            self.unseen.add("config")

    def has_last_plugin(self) -> bool:
        """Return whether each process has the last plugin that can be used."""
        return all(self._has_plugin(replica) for replica in self.world.replicas.values())

    def _has_plugin(self, replica: Replica) -> bool:
        catalogue = replica.live._supply.catalogue
        return bool(catalogue.sources["Picky"].digest == source_of(self.good_plugin).digest)

    def _has_config(self, replica: Replica) -> bool:
        return bool(replica.live.known.config.source == name_of(self.good_config))

    # --- in each replica ----------------------------------------------------------------------

    def make_profiles(self, replica: Replica) -> LiveProfiles:
        """Return what changes the profiles of a replica, with the last good files at first."""
        supply = Supply(replica, self)
        compiler = ProfileCompiler(lambda: supply.catalogue.plugins, replica.deciding.services)
        known = KnownProfiles(compiler)
        source = ConfigSource(lambda: self._parsed(self.config, supply), _File(self))  # type: ignore[arg-type]
        config = self._parsed(self.good_config, supply)
        live = LiveProfiles(
            config,
            known,
            replica.deciding.swap,
            replica.metrics,
            supply,  # type: ignore[arg-type]
            source,
        )
        if self.good_profile is not None:
            known.put(self.good_profile)
        return live

    def _parsed(self, text: str, supply: Supply) -> SchedulerConfig:
        return parse_config(text, name_of(text), supply.catalogue.plugins)

    def tell(self, change: Callable[[KnownProfiles], object]) -> None:
        """Have the operator of each replica pass on a change of a SchedulingProfile."""
        self.changed_now()
        for replica in self.world.replicas.values():
            known = replica.live.known
            replica.live.thread.do(lambda known=known: change(known))

    # --- what must hold -----------------------------------------------------------------------

    def names(self) -> set[str]:
        """Return the schedulerNames that are served."""
        in_file = SECOND in self.good_config
        return {OWN, SECOND} if in_file or self.good_profile is not None else {OWN}

    def _allows(self, pod: dict[str, Any], node: dict[str, Any]) -> bool:
        wants = pod["metadata"].get("labels", {}).get("picky", "")
        return not wants or node["metadata"]["labels"].get(objects.ZONE) == self.zone

    def is_decided_elsewhere(self, pod: dict[str, Any]) -> bool:
        """Return whether a pod may have to wait because of the plugin."""
        wants = pod["metadata"].get("labels", {}).get("picky", "")
        if self.policy == "Fail" and self.trouble:
            return True
        return wants == "poison"

    def written(self, replica: Replica, request: Request, status: int) -> None:
        """F27: a filter that works holds."""
        if request.verb != "bind" or status >= 300:
            return
        pod = self.etcd.get("pods", request.key).data
        node = self.etcd.find("nodes", ("", pod["spec"]["nodeName"]))
        if not pod["metadata"].get("labels", {}).get("picky") or node is None:
            return
        self.simulation.counts["picky pod bound"] += 1
        is_old = self.simulation.now_s - self._changed_s < LATELY_S
        if is_old or self.unseen or self.trouble:
            return
        if self.world.is_excused() or self._is_open(replica):
            return
        if not self._allows(pod, node.data):
            self.simulation.broken(
                "F27", f"{replica.name} binds {request.name} beside what the plugin allows"
            )

    def _is_open(self, replica: Replica) -> bool:
        supply = replica.live._supply
        return any(
            guard.report().state is not State.CLOSED
            for guard in supply.guards.values()  # type: ignore[union-attr]
        )

    def unrest(self, leader: Replica) -> Iterator[tuple[str, str]]:
        for replica in self.world.replicas.values():
            names = set(replica.deciding.profiles.names())
            if names != self.names():
                yield "F29", f"{replica.name} serves {names}, not {self.names()}"
            if not self._has_config(replica):
                yield "F29", f"{replica.name} has another configuration than the last good one"
            if not self._has_plugin(replica):
                yield "F29", f"{replica.name} has another plugin than the last good one"
            wanted = source_of(self.good_plugin).digest
            for profile in replica.deciding.profiles:
                for plugin in profile.points.get("filter", ()):
                    source = getattr(type(plugin), "plugin_source", None)
                    if source is not None and source.digest != wanted:
                        yield "F29", f"{profile.profile_name} of {replica.name} runs an old plugin"


class _File:
    """The configuration file."""

    def __init__(self, extra: Policies) -> None:
        self._extra = extra

    def read_bytes(self) -> bytes:
        return self._extra.config.encode()


class Supply:
    """The plugins of one replica: the real catalogue and guards, over a directory in memory.

    See :class:`scheduler.profiles.available_plugins.PluginSupply`.
    """

    LOOK_S: Final = 0.5

    def __init__(self, replica: Replica, extra: Policies) -> None:
        self._replica = replica
        self._extra = extra
        self._note = Note(None)
        self.guards: dict[PluginCode, ContainedGuard] = {}
        self.catalogue = PluginCatalogue(None, self._guard_for)
        self._seen = extra.good_plugin
        self._take(self._seen)
        self._troubles: Mapping[str, str] = {}

    def _guard_for(self, source: PluginSource, cls: type) -> ContainedGuard:
        code = PluginCode.of(cls, source.digest)
        if code not in self.guards:
            clock = self._replica.machine.clock.monotonic
            self.guards[code] = ContainedGuard(code, self._note, ContainmentOptions(), None, clock)
        return self.guards[code]

    def _take(self, text: str) -> None:
        self.catalogue.replace("directory", Found((source_of(text),)))

    def plugins(self) -> Mapping[str, type[Plugin]]:
        """Return all plugins."""
        return self.catalogue.plugins

    def start(
        self,
        on_change: Callable[[frozenset[str]], None],
        on_trouble: Callable[[Mapping[str, str]], None],
    ) -> None:
        """Look at the directory and at the guards again and again."""
        self.catalogue.subscribe(on_change)
        executor = self._replica.executor
        waits = executor.event()

        def look() -> None:
            while True:
                if self._extra.plugin != self._seen:
                    self._seen = self._extra.plugin
                    self._take(self._seen)
                troubles = {
                    code.name: report.trouble
                    for code, guard in self.guards.items()
                    if (report := guard.report()).trouble
                }
                if troubles != self._troubles:
                    self._troubles = troubles
                    on_trouble(troubles)
                waits.wait(self.LOOK_S)

        executor.thread(look, "plugin-dir").start()

    def stop(self) -> None:
        """Nothing: the process ends with its threads."""


def source_of(text: str) -> PluginSource:
    """Return the source of the plugin's file."""
    return PluginSource.of_text("directory", "/plugins/picky.py", text)


def plugin_text(zone: str, trouble: str = "", policy: str = "Ignore") -> str:
    """Return the text of the plugin's file."""
    text = PLUGIN.format(zone=zone, key=objects.ZONE, trouble=TROUBLES[trouble], policy=policy)
    return f"{text}\n# {trouble}"


def config_text(names: tuple[str, ...] = (OWN,), weight: int = 1) -> str:
    """Return the text of a configuration."""
    return CONFIG + "".join(FILE_PROFILE.format(name=name, weight=weight) for name in names)


def name_of(text: str) -> str:
    """Return the name of a configuration, by which it is known again."""
    return f"file-{zlib.crc32(text.encode())}"


def _extra(world: World) -> Policies:
    extra = world.extras["policies"]
    assert isinstance(extra, Policies)
    return extra


# --- what happens -------------------------------------------------------------------------------


@action(4.0)
def new_picky_app(world: World, dice: random.Random) -> None:
    """An app appears that the plugin concerns, or that the second profile schedules."""
    cluster = world.cluster
    name = f"picky-{len(cluster.controllers)}"
    wants = dice.choice(("zone", "zone", "poison", ""))
    spec = objects.pod_spec(dice, dice.choice((OWN, OWN, SECOND)))
    labels = {"app": name, **({"picky": wants} if wants else {})}
    wanted = sum(each.wanted for each in cluster.controllers.values())
    if wanted > 60:
        return
    template = {"metadata": {"labels": labels}, "spec": spec}
    controller = Controller(name, "default", dice.choice((1, 2, 3)), template)
    cluster.controllers[name] = controller
    cluster.reconcile(controller)


@action(3.0)
def new_plugin(world: World, dice: random.Random) -> None:
    """The file of the plugin changes: it works, fails at times or always, or cannot be used."""
    extra = _extra(world)
    extra.changed_now()
    if dice.random() < 0.3:
        extra.spoil_plugin(dice.choice(BROKEN))
        world.simulation.counts["F27 plugin that cannot be loaded"] += 1
        return
    extra.zone = dice.choice(objects.ZONES)
    extra.trouble = dice.choice(("", "", *TROUBLES))
    extra.policy = dice.choice(("Ignore", "Ignore", "Fail"))
    extra.plugin = extra.good_plugin = plugin_text(extra.zone, extra.trouble, extra.policy)
    extra.unseen.discard("plugin")
    if extra.trouble:
        world.simulation.counts[f"F27 plugin: {extra.trouble}"] += 1


@action(2.0)
def new_config(world: World, dice: random.Random) -> None:
    """The configuration file changes: to one that can be used, or not."""
    extra = _extra(world)
    extra.changed_now()
    if dice.random() < 0.4:
        extra.spoil_config(dice.choice(BAD_CONFIGS))
        world.simulation.counts["F29 configuration that cannot be used"] += 1
        return
    names = (OWN, SECOND) if dice.random() < 0.4 else (OWN,)
    extra.config = extra.good_config = config_text(names, dice.choice((1, 2, 3)))
    extra.unseen.discard("config")


@action(2.0)
def new_scheduling_profile(world: World, dice: random.Random) -> None:
    """A SchedulingProfile appears, changes, or changes into one that cannot be used."""
    extra = _extra(world)
    extra.made += 1
    uid = f"profile-{extra.made}" if extra.profile is None else extra.profile.uid
    is_bad = dice.random() < 0.4
    entry = PluginEntry("Nobody" if is_bad and dice.random() < 0.5 else "Picky")
    plugins = Plugins(multi_point=PluginSet((entry,)))
    mistakes = (Mistake("spec.plugins", "is wrong"),) if is_bad else ()
    profile = Profile(scheduler_name=SECOND, plugins=plugins)
    version = ProfileVersion("second", uid, extra.made, profile, mistakes=mistakes)
    extra.profile = version
    if is_bad:
        world.simulation.counts["F29 SchedulingProfile that cannot be used"] += 1
    else:
        extra.good_profile = version
    extra.tell(lambda known: known.put(version))


@action(0.7)
def end_scheduling_profile(world: World, dice: random.Random) -> None:
    """The SchedulingProfile is deleted."""
    extra = _extra(world)
    extra.profile = extra.good_profile = None
    extra.tell(lambda known: known.remove("second"))
