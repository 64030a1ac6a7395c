"""What happened in a world, line by line, as a regression scenario would say it.

A world is played once more while everybody who acts in it is listened to: users, controllers and
kubelets by what changes in etcd, Berth by its attempts and its requests. What has no line (clocks,
leases, connections, a second replica) is left out; whether the lines still tell the story is for
:mod:`tests.storm.scenario_text` to find out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final
from unittest.mock import patch

from scheduler.cycle.schedule_one import SchedulingLoop
from tests.storm.cluster import OWN
from tests.storm.objects import is_over, requests_of
from tests.storm.world import World

if TYPE_CHECKING:
    from tests.storm.etcd import Change
    from tests.storm.histories import History
    from tests.storm.playing import Played
    from tests.storm.requests import Request
    from tests.storm.troubles import Fate

_PAUSE_S: Final = 1.0
"""A shorter time is none in a scenario."""

_REFUSED: Final = "refuse binds of {} with {}"
_LOST: Final = "lose answers of binds of {}"


class Recorder:
    """The lines of a world that is being played.

    Attributes
    ----------
    lines
        What has happened so far.
    """

    def __init__(self) -> None:
        self.lines: list[str] = []
        self._world: World | None = None
        self._said_s = 0.0
        self._is_berth = False
        self._before: dict[tuple[str, tuple[str, str]], dict[str, Any]] = {}
        self._cycles: dict[str, int] = {}
        self._refused: set[str] = set()

    # --- listening ----------------------------------------------------------------------------

    def listen(self, world: World) -> None:
        """Begin to listen to a world in which nothing has happened yet."""
        self._world = world
        servers, troubles = world.servers, world.troubles
        changed, perform, fate = servers.on_change, servers.perform, troubles.fate

        def on_change(resource: str, change: Change) -> None:
            self._changed(resource, change)
            changed(resource, change)

        def performed(request: Request) -> tuple[int, bytes]:
            self._is_berth = True
            try:
                return perform(request)
            finally:
                self._is_berth = False

        def befallen(replica: str, request: Request) -> Fate | None:
            found = fate(replica, request)
            if request.verb == "bind":
                self._sent(request.name, found)
            return found

        servers.on_change = on_change
        servers.perform = performed  # type: ignore[method-assign]
        troubles.fate = befallen  # type: ignore[method-assign]

    def attempt(self, name: str) -> None:
        """Take in that a pod is tried."""
        self._pass_time()
        self._cycles[name] = len(self.lines)
        self.lines.append("cycle")

    def _sent(self, name: str, fate: Fate | None) -> None:
        """Take in what becomes of a binding; it is said before the attempt."""
        at = self._cycles.get(name, len(self.lines))
        if fate is None or not fate.is_bad:
            if name in self._refused:
                self._refused.discard(name)
                self._insert(at, f"refuse binds of {name} no longer")
        elif name not in self._refused and fate.problem is not None and not fate.carried_out:
            self._refused.add(name)
            self._insert(at, _REFUSED.format(name, fate.problem.status))
        elif fate.carried_out:
            self._insert(at, _LOST.format(name))

    def _insert(self, at: int, line: str) -> None:
        self.lines.insert(at, line)
        self._cycles = {name: each + (each >= at) for name, each in self._cycles.items()}

    def _pass_time(self) -> None:
        assert self._world is not None
        now_s = self._world.simulation.now_s
        if now_s - self._said_s >= _PAUSE_S:
            self.lines.append(f"advance {int(now_s - self._said_s)}s")
            self._said_s = now_s

    # --- changes ------------------------------------------------------------------------------

    def _changed(self, resource: str, change: Change) -> None:
        if resource not in ("pods", "nodes"):
            return
        key = (resource, change.key)
        before, after = self._before.get(key), change.stored.data
        if change.type == "DELETED":
            self._before.pop(key, None)
        else:
            self._before[key] = after
        if resource == "pods":
            line = _of_pod(change.key[1], before, after, gone=change.type == "DELETED")
        else:
            line = _of_node(change.key[1], before, after, gone=change.type == "DELETED")
        is_lost = self._is_lost(resource, change.type)
        if self._is_berth or not line:
            line = ""
        else:
            self._pass_time()
        if is_lost:
            at = self._cycles.get(change.key[1], len(self.lines)) if not line else len(self.lines)
            self._insert(at, f"hold watch of {resource}")
        if line:
            self.lines.append(line)
        if is_lost:
            self.lines += [f"lose events of {resource}", f"release watch of {resource}"]

    def _is_lost(self, resource: str, kind: str) -> bool:
        """Return whether the leader's watch will not be told of a change."""
        assert self._world is not None
        leader, now_s = self._world.leader(), self._world.simulation.now_s
        return any(
            kind in watch.drop or now_s < watch.deaf_until_s
            for server in self._world.servers.frontends
            for watch in server.watches(resource)
            if leader is None or watch.connection.machine is leader.machine
        )


def _of_node(name: str, old: dict[str, Any] | None, new: dict[str, Any], *, gone: bool) -> str:
    """Return the line of a change of a node; empty where there is none."""
    if gone:
        return f"delete node {name}"
    size = new["status"]["allocatable"]["cpu"]
    if old is None or old["status"]["allocatable"]["cpu"] != size:
        return f"node {name} cpu={size}"
    was, now = (each["spec"].get("unschedulable", False) for each in (old, new))
    if was != now:
        return f"cordon node {name}" if now else f"uncordon node {name}"
    return ""


def _of_pod(name: str, old: dict[str, Any] | None, new: dict[str, Any], *, gone: bool) -> str:
    """Return the line of a change of a pod by anybody but Berth; empty where there is none."""
    spec, metadata = new["spec"], new["metadata"]
    if gone:
        if "deletionTimestamp" in metadata and spec.get("nodeName"):
            return "deleted pods end"
        return f"end pod {name}" if spec.get("nodeName") else f"delete pod {name}"
    if old is None:
        return "" if spec["schedulerName"] != OWN else _new_pod(name, new)
    if spec["schedulerName"] != OWN and not old["spec"].get("nodeName"):
        return f"{_new_pod(name, new)} on={spec['nodeName']}" if spec.get("nodeName") else ""
    if spec.get("nodeName") != old["spec"].get("nodeName"):
        return f"another scheduler binds {name} to {spec['nodeName']}"
    if "deletionTimestamp" in metadata and "deletionTimestamp" not in old["metadata"]:
        return f"delete pod {name}"
    if is_over(new) and not is_over(old):
        reason = new["status"].get("reason", "")
        return f"the kubelet rejects {name} with {reason}" if reason else f"finish pod {name}"
    if old["spec"].get("schedulingGates") and not spec.get("schedulingGates"):
        return f"ungate pod {name}"
    labels = metadata.get("labels", {})
    if labels != old["metadata"].get("labels", {}):
        return f"label pod {name} app={labels.get('app', 'none')}"
    return ""


def _new_pod(name: str, pod: dict[str, Any]) -> str:
    spec, metadata = pod["spec"], pod["metadata"]
    words = [f"pod {name} cpu={_cpu(spec)}"]
    if spec.get("priority"):
        words.append(f"priority={spec['priority']}")
    if spec.get("schedulingGates"):
        words.append("gate=wait")
    if metadata.get("finalizers"):
        words.append(f"finalizer={metadata['finalizers'][0]}")
    if metadata["namespace"] != "default":
        words.append(f"namespace={metadata['namespace']}")
    return " ".join(words)


def _cpu(spec: dict[str, Any]) -> str:
    amount = spec["containers"][0]["resources"]["requests"]["cpu"]
    return amount if "e" in amount else f"{requests_of(spec)[0]}m"


def record(history: History) -> tuple[Played, list[str]]:
    """Play a history; return what came of it, and the lines of what happened."""
    recorder = Recorder()

    class Recorded(World):
        def __init__(self, *args: Any, **named: Any) -> None:
            super().__init__(*args, **named)
            recorder.listen(self)

    real = SchedulingLoop.attempt

    def attempt(self: Any, queued: Any) -> None:
        recorder.attempt(queued.info.name)
        real(self, queued)

    with (
        patch("tests.storm.playing.World", Recorded),
        patch.object(SchedulingLoop, "attempt", attempt),
    ):
        return history.play(), recorder.lines
