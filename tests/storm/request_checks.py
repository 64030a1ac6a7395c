"""What a process may send, and how soon again: checked when a request leaves it.

Not when it arrives, nor when it is carried out: a write that is on its way when its sender is
stopped is nobody's mistake.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

from tests.storm.requests import Request, read_line, read_request

if TYPE_CHECKING:
    from tests.storm.world import World

LISTS: Final = 8
"""Lists of one resource in :data:`SOON_S`: the pause before the second one begins at 0.4 s."""

WATCHES: Final = 30
SOON_S: Final = 2.0

UNREAD_S: Final = 0.05
"""After a Retry-After has arrived, others may be on their way out for so long."""

LEARNED_S: Final = 1.0
"""What a watch brings in so long, if all is well."""

EXCUSED_S: Final = 120.0
"""For how long after a Lease was deleted a standby that never saw its holder may lead."""


class RequestChecks:
    """Checks of all that replicas send.

    Attributes
    ----------
    meant
        UID of the pod that a replica meant last, by its name, the verb and the pod's name.
    holder
        Who holds the Lease.
    lease_deleted_s
        When somebody deleted it the last time.
    """

    def __init__(self, world: World) -> None:
        self._world = world
        self._simulation = world.simulation
        self._sent: dict[tuple[str, str], deque[float]] = {}
        self._left_alone: dict[tuple[str, ...], tuple[float, float]] = {}
        self._gone_s: dict[str, float] = {}
        self.meant: dict[tuple[str, str, tuple[str, str]], str] = {}
        self.holder = ""
        self.lease_deleted_s = -EXCUSED_S
        world.network.on_request = self._sends
        world.servers.refused = self._told_to_wait

    def deleted(self, uid: str) -> None:
        """Take in that a pod is gone."""
        self._gone_s[uid] = self._simulation.now_s

    def _sends(self, name: str, data: bytes) -> None:
        line = data[: data.index(b"\r\n")].decode("latin-1")
        is_read = line.startswith("GET ")
        if is_read:
            self._reads(name, line)
        elif "/leases" not in line:
            self._fenced(name, line)
            if "/pods/" in line:
                self._about_a_pod(name, line)
            if line.startswith("DELETE "):
                self._evicts(name, data)
        if self._left_alone:
            self._waits(name, line)

    def _fenced(self, name: str, line: str) -> None:
        """I6: nobody writes while another replica holds the lease."""
        holder = self.holder
        if holder == name or holder not in self._world.invariants.replicas:
            return
        if self._simulation.now_s - self.lease_deleted_s >= EXCUSED_S:
            self._simulation.broken("I6", f"{name} sends {line!r} while {holder} leads")

    def _about_a_pod(self, name: str, line: str) -> None:
        """Keep which pod is meant: the one of that name that the sender knows."""
        request = read_line(line)
        pods = self._world.invariants.replicas[name].watches.pods
        pod = pods.get(request.namespace, request.name)
        uid = self.meant[name, request.verb, request.key] = "" if pod is None else pod.metadata.uid
        if request.verb == "bind" and uid:
            invariants = self._world.invariants
            invariants.bindings.sends(invariants.replicas[name], request, uid)

    def _evicts(self, name: str, data: bytes) -> None:
        """I8: who is deleted was chosen, and not for pods that have long been gone."""
        request = read_request(data)
        if request.resource != "pods":
            return
        uid = ((request.body or {}).get("preconditions") or {}).get("uid")
        running = self._world.invariants.replicas[name].acting.preemptions._running.values()
        chosen = [each for each in running if any(pod.uid == uid for pod in each.victims)]
        if not chosen:
            if not self._is_of_a_partial_gang(name, str(uid)):
                self._simulation.broken("I8", f"{name} deletes {request.name} ({uid}): not chosen")
            return
        if any(each.gang_of(pod) in each.begun for each in chosen for pod in each.victims):
            return  # the rest of a gang follows, whatever becomes of the preemptor
        waiting = [info.uid for each in chosen for info in each.waiting]
        if all(self._has_long_been_gone(name, each) for each in waiting):
            self._simulation.broken("I8", f"{name} deletes {request.name} for nobody")

    def _is_of_a_partial_gang(self, name: str, uid: str) -> bool:
        """Tell whether a replica evicts the rest of a gang to which a pod belongs."""
        partial = self._world.invariants.replicas[name].acting.groups.partial
        evicting = [key for key, gang in partial._gangs.items() if gang.is_evicting]
        return any(uid in partial._groups.members(key) for key in evicting)

    def _has_long_been_gone(self, name: str, uid: str) -> bool:
        """Tell whether a replica had a second to learn that a pod is gone, and nothing else did."""
        servers, now_s = self._world.servers, self._simulation.now_s
        gone_s = self._gone_s.get(uid, now_s)
        if now_s - gone_s < LEARNED_S or name in servers.lossy or self._may_be_unread(name, gone_s):
            return False
        troubled_s = max(*self._world.troubles.last_s.values(), self._world.blind_until_s)
        is_late = any(each.lag_s > LEARNED_S / 10 or each.frozen for each in servers.frontends)
        return troubled_s < gone_s and not is_late

    def _reads(self, name: str, line: str) -> None:
        """I16: nothing is listed or watched again and again."""
        if "fieldSelector" in line or "continue" in line:
            return
        path = line[4 : line.find("?")]
        if "sendInitialEvents" in line or "?limit" in line:
            self._often(name, f"list {path}", LISTS)
        elif "?watch" in line:
            self._often(name, f"watch {path}", WATCHES)

    def _often(self, name: str, what: str, most: int) -> None:
        now_s = self._simulation.now_s
        sent = self._sent.get((name, what))
        if sent is None:
            sent = self._sent[name, what] = deque(maxlen=most)
        sent.append(now_s)
        if len(sent) == most and now_s - sent[0] < SOON_S:
            self._simulation.broken("I16", f"{name} sends {most} times in {SOON_S} s: {what}")

    # --- Retry-After --------------------------------------------------------------------------

    def _told_to_wait(self, name: str, request: Request, between_s: tuple[float, float]) -> None:
        if request.resource != "leases":
            self._left_alone[_scope(name, request)] = between_s

    def _waits(self, name: str, line: str) -> None:
        """I16: what a Retry-After is about is not sent before its time is over."""
        scope = _scope(name, read_line(line))
        between_s = self._left_alone.get(scope)
        if between_s is None:
            return
        arrived_s, until_s = between_s
        now_s = self._simulation.now_s
        if now_s >= until_s:
            del self._left_alone[scope]
        elif now_s > arrived_s + UNREAD_S and not self._may_be_unread(name, arrived_s):
            self._simulation.broken("I16", f"{name} sends {line!r} in spite of a Retry-After")

    def _may_be_unread(self, name: str, since_s: float) -> bool:
        """Tell whether an answer may not have been taken in where it has arrived."""
        network, replica = self._world.network, self._world.invariants.replicas[name]
        if name in network.cut_off or network.healed_s > since_s - 1.0:
            return True
        return replica.machine.resumed_s > since_s - 1.0


def _scope(name: str, request: Request) -> tuple[str, ...]:
    return (name, request.verb, request.resource, request.namespace)
