"""The scripts of incidents: each says what happens on a stage, and what must come of it."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING, Any, Final

from plugins.inline_disks import DisksInUse
from plugins.node_volume_limits.usage import VolumeUsage
from scheduler.queueing import QueueState
from tests.storm.api_servers import stamp
from tests.storm.extras.policies import Policies
from tests.storm.extras.volumes import PROVISIONED, SELECTED_NODE, claim_object
from tests.storm.faults.answers import MISSING
from tests.storm.stage import NAMESPACE
from tests.storm.troubles import FORBIDDEN, INTERNAL, Fate

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.columns import Columns
    from tests.storm.stage import Actor, Script, Stage

SCRIPTS: Final[dict[str, Callable[[Stage], Script]]] = {}
NEEDS: Final[dict[str, str]] = {}
"""The other extra without which a world cannot play a script."""

BETWEEN_STEPS: Final[set[str]] = set()
"""Scripts that show something only where threads stop at locks: it has to happen between two steps
of an attempt. Worlds of that kind play each of them in every calm."""

MANY: Final = 100
"""Values of a label: a table is tidied when it has some 64 too many."""

RELOADS: Final = 6

SOON_S: Final = 25.0
"""Who can be bound is bound in so long: the longest pause is ten seconds."""


def _script(script: Callable[[Stage], Script]) -> Callable[[Stage], Script]:
    SCRIPTS[script.__name__] = script
    return script


def _script_with(extra: str) -> Callable[[Callable[[Stage], Script]], Callable[[Stage], Script]]:
    def register(script: Callable[[Stage], Script]) -> Callable[[Stage], Script]:
        NEEDS[script.__name__] = extra
        return _script(script)

    return register


def _script_between_steps(script: Callable[[Stage], Script]) -> Callable[[Stage], Script]:
    BETWEEN_STEPS.add(script.__name__)
    return _script(script)


def _waits(actor: Actor) -> bool:
    return actor.state is QueueState.UNSCHEDULABLE


# --- bindings -----------------------------------------------------------------------------------


@_script
def room_of_a_failed_binding(stage: Stage) -> Script:
    """A binding fails late, its pod may not go there any more, and another one waits for it."""
    stage.label(stage.node, "lent", "yes")
    stage.trouble("bind", "first", Fate(False, FORBIDDEN, delay_s=3.0), 2.0)
    first = stage.pod("first", selector={"lent": "yes"})
    yield from stage.until(lambda: first.assumed_on)
    second = stage.pod("second")
    yield from stage.until(lambda: _waits(second))
    stage.label(stage.node, "lent", None)
    yield from stage.expect(
        lambda: second.node_name, SOON_S, "I3", "nobody gets the room of a failed binding"
    )


@_script
def bound_elsewhere(stage: Stage) -> Script:
    """Somebody binds a pod elsewhere while our binding hangs; another one waits for its room."""
    other = stage.add_node()
    stage.put("third", node_name=other)
    yield 1.5
    stage.trouble("bind", "first", Fate(delay_s=25.0), 2.0)
    first = stage.pod("first")
    yield from stage.until(lambda: first.assumed_on)
    second = stage.pod("second")
    yield from stage.until(lambda: _waits(second))
    stage.world.servers.bind(first.key, other, first.uid)
    yield from stage.expect(
        lambda: second.node_name, 12.0, "I3", "nobody gets the room of a pod that is elsewhere"
    )


@_script
def room_while_a_status_is_written(stage: Stage) -> Script:
    """There is room for a pod while it is being called unschedulable: see I7."""
    low = stage.put("low")
    stage.trouble("status", "first", Fate(delay_s=3.0), 3.0)
    first = stage.pod("first")
    yield from stage.until(lambda: _waits(first))
    low.kill()
    yield from stage.expect(lambda: first.node_name, SOON_S, "I3", "the first does not get room")
    yield 4.0


@_script
def bound_there_by_another(stage: Stage) -> Script:
    """While a binding waits, somebody else makes it, and fills the node: see I7."""
    low = stage.put("low")
    yield 1.5
    stage.world.cluster.dead_kubelets.add(stage.node)
    stage.trouble("status", "first", Fate(delay_s=3.0), 3.0)
    first = stage.pod("first", 2000)
    yield from stage.until(lambda: _waits(first))
    low.kill()
    yield from stage.until(lambda: first.assumed_on)
    stage.world.servers.bind(first.key, stage.node, first.uid)
    stage.put("second", 3000)
    yield 6.0


@_script
def one_race_after_another(stage: Stage) -> Script:
    """Wherever a pod is about to be bound somebody else takes the room: it comes to rest (I16)."""
    for _ in range(6):
        stage.add_node()
    yield 1.5
    stage.trouble("bind", "pod", Fate(False, INTERNAL), 40.0)
    pod, clock, paused = stage.pod("pod"), stage.world.simulation, 0
    for number in range(6):
        began_s = clock.now_s
        yield from stage.until(lambda: pod.assumed_on, 12.0)
        paused += number > 0 and clock.now_s - began_s > 0.5
        before = pod.assumed_on
        stage.put(f"taker-{number}", node_name=before)
        yield from stage.until(lambda before=before: pod.assumed_on != before)
    if not paused:
        stage.broken("I16", "a pod that loses each race is tried again and again at once")


@_script
def confirmation_that_is_late(stage: Stage) -> Script:
    """A pod that no watch has confirmed is asked for, and gone before the answer comes."""
    world = stage.world
    first = stage.pod("first", 1000)
    yield from stage.until(lambda: first.assumed_on)
    for server in world.servers.frontends:
        server.frozen.add("pods")
    world.blind_until_s = world.simulation.now_s + 60.0
    stage.trouble("get", first, Fate(late_s=3.0), 45.0)
    label = "incident: get"
    try:
        yield from stage.until(lambda: first.node_name)
        asked = world.simulation.counts[label]
        yield from stage.until(lambda: world.simulation.counts[label] > asked, 40.0)
        yield 1.0
        first.kill()
    finally:
        for server in world.servers.frontends:
            server.thaw()
    yield 4.0
    if stage.leader.cache.is_placed_pod(first.uid):
        stage.broken("I4", "a pod that is gone has come back")


@_script_between_steps
def room_during_an_attempt(stage: Stage) -> Script:
    """Room appears while a pod is being tried."""
    for number in range(10):
        low = stage.put(f"low-{number}")
        yield 0.1
        delay_s = stage.world.rng.random() * 0.004
        pod = stage.pod(f"pod-{number}")
        yield delay_s
        low.kill()
        yield from stage.expect(
            lambda pod=pod: pod.node_name, SOON_S, "I3", "room during an attempt is not seen"
        )
        pod.kill()
        yield 0.1


@_script
def pod_that_is_skipped(stage: Stage) -> Script:
    """A pod is being deleted before it is tried, and waits for a finalizer."""
    pod = stage.pod("pod", finalizer="example.com/wait")
    yield 0.8
    if pod.state is QueueState.IN_FLIGHT:
        stage.broken("I5", "an attempt that was skipped does not end")


@_script_between_steps
def update_during_an_attempt(stage: Stage) -> Script:
    """A pod changes while it is being tried, and its binding fails then."""
    for number in range(10):
        name = f"pod-{number}"
        stage.trouble("bind", name, Fate(False, FORBIDDEN, delay_s=0.3), 0.5)
        delay_s = stage.world.rng.random() * 0.004
        pod = stage.pod(name)
        yield delay_s
        stage.label_pod(pod, "step", "changed")
        yield from stage.expect(
            lambda pod=pod: pod.node_name, SOON_S, "I3", "a pod that changes meanwhile is lost"
        )
        pod.kill()
        yield 0.1


@_script
def successor_that_nobody_has_announced(stage: Stage) -> Script:
    """A pod is made again under its name while its binding hangs, and the watch loses both."""
    servers, machine = stage.world.servers, stage.leader.machine
    stage.trouble("bind", "pod", Fate(delay_s=25.0), 1.0)
    first = stage.pod("pod")
    yield from stage.until(lambda: first.assumed_on)
    every = [watch for server in servers.frontends for watch in server.watches()]
    own = [each for each in every if each.connection.machine is machine]
    losing = [each for each in own if each.resource == "pods"]
    for watch in losing:
        watch.drop += ["DELETED", "ADDED"]
    first.kill()
    second = stage.pod("pod")
    yield 1.2
    for watch in losing:
        watch.drop.clear()
    stage.label_pod(second, "seen", "at-last")
    yield 0.1
    known = {pod.metadata.uid for pod in stage.leader.watches.pods.list()}
    if known == {each.data["metadata"]["uid"] for each in servers.etcd.objects["pods"].values()}:
        servers.lossy.discard(machine.name)  # it knows all the same
    yield from stage.expect(
        lambda: second.node_name, 12.0, "I3", "a pod that was made again unheard gets no room"
    )


# --- preemption ---------------------------------------------------------------------------------


@_script
def nomination_that_is_late(stage: Stage) -> Script:
    """Somebody of the same rank comes when the victim has gone: the room is the preemptor's."""
    low = stage.put("low")
    yield 1.5
    stage.trouble("status", "first", Fate(delay_s=6.0), 8.0)
    first = stage.pod("first", priority=10)
    yield from stage.until(lambda: low.is_leaving)
    low.kill()
    stage.pod("second", priority=10)
    yield from stage.expect(
        lambda: first.node_name, SOON_S, "I3", "others have the room that a preemptor has made"
    )


@_script
def nomination_that_nobody_has_heard_of(stage: Stage) -> Script:
    """A preemptor goes before the API server knows of its nomination; another one waits for it."""
    low = stage.put("low", 2000)
    yield 1.5
    stage.world.cluster.dead_kubelets.add(stage.node)
    stage.trouble("status", "first", Fate(delay_s=8.0), 15.0)
    first = stage.pod("first", priority=10)
    yield from stage.until(lambda: low.is_leaving)
    second = stage.pod("second", 2000, priority=5)
    yield from stage.until(lambda: _waits(second))
    first.kill()
    yield from stage.expect(
        lambda: second.node_name, SOON_S, "I3", "the room of a preemptor that is gone is kept"
    )


@_script
def nomination_without_room(stage: Stage) -> Script:
    """A more important pod takes the room beside a victim, which then ends."""
    low = stage.put("low", 2000)
    yield 1.5
    stage.world.cluster.dead_kubelets.add(stage.node)
    middle = stage.pod("middle", priority=10)
    yield from stage.until(lambda: low.is_leaving)
    yield from stage.until(lambda: stage.leader.queue.nominator.node_of(middle.uid))
    high = stage.pod("high", 2000, priority=20)
    yield from stage.until(lambda: high.node_name)
    stage.world.cluster.dead_kubelets.discard(stage.node)
    low.kill()
    yield 4.0
    small = stage.pod("small", 1000)
    yield from stage.expect(
        lambda: small.node_name, SOON_S, "I3", "a nomination that cannot hold keeps others away"
    )


@_script
def victim_that_does_not_end(stage: Stage) -> Script:
    """The victim on the nominated node should have ended long ago; there is another node."""
    other, now_s = stage.add_node(), stage.world.simulation.now_s
    low = stage.put("low")
    stage.put("middle", priority=1, node_name=other)
    yield 1.5
    stage.world.cluster.dead_kubelets.add(stage.node)
    reason = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}

    def leave(pod: dict[str, Any]) -> None:
        pod["metadata"]["deletionTimestamp"] = stamp(now_s - 900.0)
        pod["status"]["conditions"] = [reason]

    stage.world.servers.etcd.edit("pods", low.key, leave)
    high = stage.pod("high", priority=10, nominated=stage.node)
    yield from stage.expect(
        lambda: high.node_name, SOON_S, "I3", "a victim that does not end is waited for"
    )


@_script
def preemptor_that_goes(stage: Stage) -> Script:
    """A preemptor goes before its victim is deleted."""
    low = stage.put("low")
    yield 1.5
    stage.trouble("status", low, Fate(delay_s=3.0), 5.0)
    first = stage.pod("first", priority=10)
    yield from stage.until(lambda: first.uid in stage.leader.acting.preemptions._running)
    yield 0.3
    first.kill()
    yield 5.0
    if low.is_leaving:
        stage.broken("I8", "a victim goes though nobody needs its room any more")


@_script
def deletion_that_is_denied(stage: Stage) -> Script:
    """A webhook denies the deletion of a victim for a while, and says 404."""
    low = stage.put("low")
    yield 1.5
    stage.trouble("delete", low, Fate(False, MISSING), 2.0)
    first = stage.pod("first", priority=10)
    yield from stage.expect(
        lambda: first.node_name, 40.0, "I3", "a victim that stays counts as gone"
    )


# --- with other extras --------------------------------------------------------------------------


@_script_with("groups")
def node_of_a_member_is_taken(stage: Stage) -> Script:
    """A gang is decided, and one of its nodes taken before the first binding: see I18."""
    etcd, key = stage.world.servers.etcd, (NAMESPACE, stage.name)
    metadata = {"namespace": NAMESPACE, "name": stage.name}
    stage.add_node()
    etcd.create("podgroups", {"metadata": metadata, "spec": {"minMember": 2}})
    try:
        fillers = [stage.put(f"low-{node}", node_name=node) for node in stage.nodes]
        yield 1.5
        for name in ("first", "second"):
            stage.trouble("status", name, Fate(delay_s=4.0), 5.0)
        members = [stage.pod(name, group=stage.name) for name in ("first", "second")]
        yield 0.5
        for filler in fillers:
            filler.kill()
        yield from stage.until(lambda: all(each.assumed_on for each in members))
        stage.put("taker", node_name=members[1].assumed_on)
        yield 6.0
    finally:
        if etcd.find("podgroups", key) is not None:
            etcd.delete("podgroups", key)


@_script_with("volumes")
def node_of_a_claim_is_taken(stage: Stage) -> Script:
    """A node is taken before anything is written about the claim of a pod."""
    etcd, key = stage.world.servers.etcd, (NAMESPACE, stage.name)
    etcd.create("persistentvolumeclaims", claim_object(*key, PROVISIONED, "ReadWriteOnce"))
    try:
        yield 0.5
        stage.trouble("status", "pod", Fate(delay_s=4.0), 5.0)
        pod = stage.pod("pod", claim=stage.name)
        yield from stage.until(lambda: pod.assumed_on)
        stage.put("taker")
        yield 9.0
        claim = etcd.get("persistentvolumeclaims", key).data
        if SELECTED_NODE in claim["metadata"].get("annotations", {}):
            stage.broken("I21", "a claim is bound for a node that has long been taken")
    finally:
        if etcd.find("persistentvolumeclaims", key) is not None:
            etcd.delete("persistentvolumeclaims", key)


@_script_with("hostile")
def label_of_many_values(stage: Stage) -> Script:
    """A label that pods ask for has a new value again and again."""
    other = stage.add_node()
    running = stage.put("running", 1000)
    for number in range(MANY):
        stage.label_pod(running, "step", f"value-{number}")
        yield 0.05
        shy = stage.pod(f"shy-{number}", 1000, apart="step")
        yield from stage.until(lambda shy=shy: shy.node_name)
        if shy.node_name != other:
            stage.broken("I4", "a pod is beside one that it keeps away from")
        shy.kill()
    counts = _columns(stage).terms._counts
    labels = {} if counts is None else counts._table._labels
    kept = max((len(column.values) for column in labels.values()), default=0)
    if kept > MANY * 0.9:
        stage.broken("I9", f"{kept} values are kept of a label that one pod has")


@_script_with("policies")
def profiles_that_are_replaced(stage: Stage) -> Script:
    """A plugin is replaced, and its profile with it, and what that has counted goes, too."""
    policies = stage.world.extras["policies"]
    assert isinstance(policies, Policies)
    at_first = 0
    for number in range(RELOADS):
        policies.renew_plugin(number)
        yield from stage.until(policies.has_last_plugin, 60.0)
        yield 1.0
        pod = stage.pod(f"pod-{number}", disk="disk")
        yield from stage.until(lambda pod=pod: pod.node_name)
        pod.kill()
        yield 1.0
        found = _num_followers(stage)
        at_first = at_first or found
        if found >= at_first + RELOADS - 1:
            stage.broken("I9", f"{found} objects follow the nodes, {at_first} after one reload")


_FOLLOWERS: Final = (VolumeUsage, DisksInUse)


def _num_followers(stage: Stage) -> int:
    """Return how many objects follow the nodes of the leader's snapshot."""
    gc.collect()
    followers: list[Any] = [each for each in gc.get_objects() if type(each) in _FOLLOWERS]
    return sum(each.columns is _columns(stage) for each in followers)


def _columns(stage: Stage) -> Columns:
    return stage.leader.deciding.loop._cycle.snapshot.columns
