"""Groups of pods: gangs that come before or after their objects, change, are refused, and end.

I18 is checked at each binding: the first member of a gang is bound only when as many are decided as
the gang needs. I19 and I3 are checked at rest: a gang that would fit does not wait, one that is
below its minimum is known as such, and a gang that waits holds no room.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from cache.pod_group_objects import GROUP_LABEL, PARTIAL_GANG_GRACE, GroupKey, GroupSource
from scheduler.kinds import X_POD_GROUPS
from tests.storm import objects
from tests.storm.cluster import OTHER, OWN, Controller
from tests.storm.extras.extra import Actions, Extra

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator

    from tests.storm.etcd import Change, Key
    from tests.storm.replica import Replica
    from tests.storm.requests import Request
    from tests.storm.world import World

action: Final = Actions()

LATELY_S: Final = 90.0
"""How long ago a gang may have been decided whose bindings are still under way."""

MOST_GANGS: Final = 6


class Groups(Extra):
    """Gangs.

    Attributes
    ----------
    losses
        When each group lost a member or a binding: it may be below its minimum because of that.
    _minimums
        The minimums of each group, 1 for none, each with when it began to hold.
    _needed
        The minimum of each group when it began: what is left of it is placed one by one then,
        whatever becomes of the minimum.
    _ours
        UIDs of the members that a replica has bound.
    """

    NAME = "groups"
    KINDS = (X_POD_GROUPS,)
    actions = action

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.losses: dict[Key, deque[float]] = {}
        self._named: dict[str, str] = {}
        self._minimums: dict[Key, deque[tuple[float, int]]] = {}
        self._needed: dict[Key, int] = {}
        self._ours: set[str] = set()

    # --- what is lost -------------------------------------------------------------------------

    def changed(self, resource: str, change: Change) -> None:
        metadata = change.stored.data["metadata"]
        if resource == "podgroups":
            # Statuses change, too, and nothing is lost by that.
            minimums = self._minimums.setdefault(change.key, deque(maxlen=64))
            minimum = self.minimum(change.key) or 1
            if not minimums or minimums[-1][1] != minimum:
                minimums.append((self.simulation.now_s, minimum))
        elif resource == "pods":
            pod, namespace = change.stored.data, metadata["namespace"]
            name = group_of(pod)
            before = self._named.get(metadata["uid"], name)
            if before != name and before:
                self._lose((namespace, before))
            if change.type == "DELETED":
                self._named.pop(metadata["uid"], None)
            elif name or before:
                self._named[metadata["uid"]] = name
            leaves = change.type == "DELETED" or "deletionTimestamp" in metadata
            if name and (leaves or objects.is_over(pod)):
                self._lose((namespace, name))

    def _lose(self, key: Key) -> None:
        self.losses.setdefault(key, deque(maxlen=64)).append(self.simulation.now_s)

    def _lost_lately(self, key: Key) -> int:
        since_s = self.simulation.now_s - LATELY_S
        return sum(at_s >= since_s for at_s in self.losses.get(key, ()))

    def _least_lately(self, key: Key) -> int:
        """Return the least minimum of a group that a decision may have known."""
        since_s, least = self.simulation.now_s - LATELY_S, self.minimum(key) or 1
        for at_s, minimum in reversed(self._minimums.get(key, ())):
            least = min(least, minimum)
            if at_s < since_s:
                break
        return least

    # --- at each binding ----------------------------------------------------------------------

    def written(self, replica: Replica, request: Request, status: int) -> None:
        """I18: no member of a gang is bound before as many are decided as it needs."""
        if request.verb != "bind":
            return
        stored = self.etcd.find("pods", request.key)
        name = group_of(stored.data) if stored is not None else ""
        if stored is None or not name:
            return
        key = (request.namespace, name)
        if status >= 300:
            self._lose(key)
            return
        self.simulation.counts["member of a group bound"] += 1
        members = self.members(key)
        bound = {each["metadata"]["uid"] for each in _satisfied(members)}
        bound.discard(stored.data["metadata"]["uid"])
        self._ours.add(stored.data["metadata"]["uid"])
        if bound and not bound & self._ours:
            self._needed[key] = 1  # others began it
        lost, needed = self._lost_lately(key), self._least_lately(key)
        if bound or lost:
            needed = min(needed, self._needed.get(key, needed))
        if not bound:
            self._needed[key] = needed
        decided = [each for each in members if self._is_decided(replica, each)]
        if len(decided) + lost < needed:
            self.simulation.broken(
                "I18", f"{replica.name} binds {request.name} of {name}: {len(decided)} of {needed}"
            )

    def _is_decided(self, replica: Replica, pod: dict[str, Any]) -> bool:
        """Return whether a member is placed, or was so until its binding was refused."""
        uid = pod["metadata"]["uid"]
        if pod["spec"].get("nodeName") or replica.cache.is_placed_pod(uid):
            return True
        return self.world.invariants.bindings.was_sent(replica, uid)

    # --- at rest ------------------------------------------------------------------------------

    def is_decided_elsewhere(self, pod: dict[str, Any]) -> bool:
        """Return whether a pod is tried with the others of its group, or not at all."""
        name = group_of(pod)
        if not name:
            return False
        key = (pod["metadata"]["namespace"], name)
        return self.minimum(key) is None or not _satisfied(self.members(key))

    def _is_kept_away(self, pod: dict[str, Any]) -> bool:
        """Return whether another extra may keep a pod from nodes where it fits."""
        others = (extra for extra in self.world.extras.values() if extra is not self)
        return any(extra.is_decided_elsewhere(pod) for extra in others)

    def unrest(self, leader: Replica) -> Iterator[tuple[str, str]]:
        known = leader.known.pods.groups
        for key in self.etcd.objects["podgroups"]:
            minimum = self.minimum(key)
            if minimum is None:
                continue
            members = self.members(key)
            satisfied = _satisfied(members)
            group = GroupKey(*key, GroupSource.LABEL)
            is_partial = 0 < len(satisfied) < minimum and not _succeeded(members)
            if is_partial:
                self.simulation.counts["gang below its minimum at rest"] += 1
            if is_partial != known.is_partial(group):
                yield "I19", f"{key[1]}: {len(satisfied)} of {minimum} are not known as that"
            if satisfied:
                continue
            waiting = [pod for pod in members if _waits(pod) and not self._is_kept_away(pod)]
            if len(waiting) >= minimum and self._fit(waiting) >= minimum:
                yield "I3", f"gang {key[1]} waits, and {minimum} of {len(waiting)} fit"
            for pod in waiting:
                node_name = leader.queue.nominator.node_of(pod["metadata"]["uid"])
                if node_name and not self._is_leaving(node_name):
                    yield "I18", f"{pod['metadata']['name']} waits and holds room on {node_name}"

    def _fit(self, waiting: list[dict[str, Any]]) -> int:
        """Return how many of some members fit, if they are alike; 0 where that is not known."""
        first = waiting[0]
        if any(pod["spec"]["containers"] != first["spec"]["containers"] for pod in waiting):
            return 0
        if any(pod["spec"]["schedulerName"] != OWN for pod in self._all_of(first)):
            return 0
        return self.world.cluster.room_for(first)

    def _all_of(self, pod: dict[str, Any]) -> list[dict[str, Any]]:
        return self.members((pod["metadata"]["namespace"], group_of(pod)))

    def _is_leaving(self, node_name: str) -> bool:
        return any(
            each.data["spec"].get("nodeName") == node_name
            and "deletionTimestamp" in each.data["metadata"]
            for each in self.etcd.objects["pods"].values()
        )

    # --- what there is ------------------------------------------------------------------------

    def minimum(self, key: Key) -> int | None:
        """Return how many members are placed together; None for a group that cannot be tried."""
        stored = self.etcd.find("podgroups", key)
        if stored is None:
            return None
        minimum = stored.data["spec"].get("minMember") or 1
        return None if minimum < 0 else int(minimum)

    def members(self, key: Key) -> list[dict[str, Any]]:
        """Return the pods that name a group, in any state."""
        return [
            stored.data
            for (namespace, _), stored in self.etcd.objects["pods"].items()
            if namespace == key[0] and group_of(stored.data) == key[1]
        ]


def group_of(pod: dict[str, Any]) -> str:
    """Return the name of the group that a pod names."""
    return str(pod["metadata"].get("labels", {}).get(GROUP_LABEL, ""))


def _waits(pod: dict[str, Any]) -> bool:
    return not (
        pod["spec"].get("nodeName")
        or pod["spec"].get("schedulingGates")
        or "deletionTimestamp" in pod["metadata"]
        or objects.is_over(pod)
    )


def _succeeded(members: list[dict[str, Any]]) -> bool:
    return any(pod.get("status", {}).get("phase") == "Succeeded" for pod in members)


def _satisfied(members: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the members that need no decision any more and stay."""
    return [
        pod
        for pod in members
        if pod.get("status", {}).get("phase") == "Succeeded"
        or (
            pod["spec"].get("nodeName")
            and not objects.is_over(pod)
            and "deletionTimestamp" not in pod["metadata"]
        )
    ]


# --- what happens -------------------------------------------------------------------------------


@action(6.0)
def new_gang(world: World, dice: random.Random) -> None:
    """A gang appears; its object comes before its members, among them, or long after them."""
    cluster = world.cluster
    gangs = [each for each in cluster.controllers.values() if _gang_name(each) and each.wanted]
    if len(gangs) >= MOST_GANGS:
        end_gang(world, dice)
        return
    name = f"gang-{len(cluster.controllers)}"
    minimum = dice.choice((1, 2, 3, 3, 4, 6))
    spec = objects.pod_spec(dice, OWN if dice.random() < 0.95 else OTHER)
    if dice.random() < 0.15:
        spec["affinity"] = objects.apart(name)
    template = {"metadata": {"labels": {"app": name, GROUP_LABEL: name}}, "spec": spec}
    controller = Controller(
        name,
        dice.choice(objects.NAMESPACES),
        minimum + dice.choice((0, 0, 1, 2)),
        template,
        names_stay=dice.random() < 0.5,
    )
    cluster.controllers[name] = controller
    group: dict[str, Any] = {"minMember": minimum}
    if dice.random() < 0.4:
        group["scheduleTimeoutSeconds"] = dice.choice((1, 10, 60))
    metadata: dict[str, Any] = {"name": name, "namespace": controller.namespace}
    if dice.random() < 0.3:
        metadata["annotations"] = {PARTIAL_GANG_GRACE: dice.choice(("5s", "20s"))}
    after_s = dice.choice((0.0, 0.0, 0.001, 0.5, 8.0))
    is_first = dice.random() < 0.5

    def describe() -> None:
        if world.servers.etcd.find("podgroups", (controller.namespace, name)) is None:
            world.servers.etcd.create("podgroups", {"metadata": metadata, "spec": group})

    if is_first:
        describe()
        world.simulation.after(after_s, lambda: cluster.reconcile(controller))
    else:
        cluster.reconcile(controller)
        world.simulation.after(after_s, describe)


def _gang_name(controller: Controller) -> str:
    return str(controller.template["metadata"].get("labels", {}).get(GROUP_LABEL, ""))


def _a_gang(world: World, dice: random.Random) -> Controller | None:
    gangs = [each for each in world.cluster.controllers.values() if _gang_name(each)]
    return dice.choice(gangs) if gangs else None


@action(1.5)
def end_gang(world: World, dice: random.Random) -> None:
    """A gang ends: its members, then its object or the other way round."""
    controller = _a_gang(world, dice)
    if controller is None:
        return
    key = (controller.namespace, controller.name)
    controller.wanted = 0

    def forget() -> None:
        if world.servers.etcd.find("podgroups", key) is not None:
            world.servers.etcd.delete("podgroups", key)

    if dice.random() < 0.5:
        forget()
        world.cluster.reconcile(controller)
    else:
        world.cluster.reconcile(controller)
        world.simulation.after(dice.choice((0.0, 2.0)), forget)


@action(2.5)
def new_members(world: World, dice: random.Random) -> None:
    """All members of a gang are made again at once."""
    controller = _a_gang(world, dice)
    if controller is not None:
        for key in list(controller.pods.values()):
            if world.servers.etcd.find("pods", key) is not None:
                world.servers.delete("pods", key)


@action(1.5)
def change_minimum(world: World, dice: random.Random) -> None:
    """A gang needs more members, or fewer, or is one that nobody can read."""
    controller = _a_gang(world, dice)
    if controller is None:
        return
    key = (controller.namespace, controller.name)
    minimum = dice.choice((-1, 0, 1, 2, 3, 4, 99))
    if world.servers.etcd.find("podgroups", key) is not None:
        world.servers.etcd.edit(
            "podgroups", key, lambda group: group["spec"].update(minMember=minimum)
        )


@action(1.0)
def lose_group(world: World, dice: random.Random) -> None:
    """The object of a gang is deleted, and made again soon or late."""
    controller = _a_gang(world, dice)
    if controller is None:
        return
    key = (controller.namespace, controller.name)
    stored = world.servers.etcd.find("podgroups", key)
    if stored is None:
        return
    world.servers.etcd.delete("podgroups", key)

    def again() -> None:
        if world.servers.etcd.find("podgroups", key) is None:
            metadata = {"name": key[1], "namespace": key[0]}
            world.servers.etcd.create(
                "podgroups", {"metadata": metadata, "spec": dict(stored.data["spec"])}
            )

    world.simulation.after(dice.choice((0.0, 0.002, 1.0, 15.0)), again)


@action(1.0)
def move_member(world: World, dice: random.Random) -> None:
    """A pod names another gang, or none."""
    pods = [
        key
        for key, stored in world.servers.etcd.objects["pods"].items()
        if group_of(stored.data) and not stored.data["spec"].get("nodeName")
    ]
    other = _a_gang(world, dice)
    if not pods or other is None:
        return
    name = other.name if dice.random() < 0.7 else None

    def edit(pod: dict[str, Any]) -> None:
        if name is None:
            pod["metadata"]["labels"].pop(GROUP_LABEL)
        else:
            pod["metadata"]["labels"][GROUP_LABEL] = name

    world.servers.etcd.edit("pods", dice.choice(pods), edit)


@action(1.0)
def gate_gang(world: World, dice: random.Random) -> None:
    """The members that a gang makes from now on have gates, or none any more."""
    controller = _a_gang(world, dice)
    if controller is None:
        return
    spec = controller.template["spec"]
    if spec.pop("schedulingGates", None) is None:
        spec["schedulingGates"] = [{"name": "wait"}]
    new_members(world, dice)
