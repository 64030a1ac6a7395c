"""Host ports that pods use on their node, and the conflicts between them.

Two host ports conflict when protocol and number are equal and either of them is on all addresses
(``0.0.0.0``) or both are on the same one.

*Source*: kube-scheduler 1.36, pkg/scheduler/util/utils.go (GetHostPorts) and
k8s.io/kube-scheduler framework/types.go (HostPortInfo).
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from cache.resources import is_restartable

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator

    from cache.objects import Pod

ALL_ADDRESSES = "0.0.0.0"  # noqa: S104 - compared with, never bound
"""The address that overlaps with every other, ``::`` and IPv6 addresses included."""


class HostPort(NamedTuple):
    """A host port; an empty address or protocol is replaced by its default."""

    ip: str
    protocol: str
    port: int


def host_ports(pod: Pod) -> tuple[HostPort, ...]:
    """Return the host ports that the pod holds for as long as it runs.

    Sidecars come first, then containers, each in the order of the spec; ordinary init
    containers hold none. A pod on the host's network is no special case: the API server writes
    its container ports as host ports.
    """
    containers = pod.spec.containers
    if pod.spec.init_containers:
        containers = (*filter(is_restartable, pod.spec.init_containers), *containers)
    found: list[HostPort] = []
    for container in containers:
        if container.ports:
            found += [
                HostPort(port.host_ip or ALL_ADDRESSES, port.protocol or "TCP", port.host_port)
                for port in container.ports
                if port.host_port > 0
            ]
    return tuple(found)


class UsedHostPorts:
    """The host ports in use on one node, with the number of their users.

    # Differs: kube-scheduler keeps a set, so that of two pods with the same port (which can
    only come about by binding past the scheduler) the first to leave frees it for both.

    *Concurrency*: not thread-safe; guarded by the owner's lock.
    """

    __slots__ = ("_addresses", "_is_shared", "_users")

    def __init__(self) -> None:
        self._users: dict[HostPort, int] = {}
        self._addresses: dict[tuple[str, int], set[str]] = {}
        self._is_shared = False
        """Whether a copy has the same dictionaries: they are copied before they change."""

    def add(self, port: HostPort) -> None:
        """Count one more user of ``port``."""
        self._own()
        users = self._users.get(port, 0)
        self._users[port] = users + 1
        if not users:
            self._addresses.setdefault((port.protocol, port.port), set()).add(port.ip)

    def remove(self, port: HostPort) -> None:
        """Count one user of ``port`` less; a port without users is ignored."""
        users = self._users.get(port, 0)
        if not users:
            return
        self._own()
        if users > 1:
            self._users[port] = users - 1
            return
        del self._users[port]
        key = (port.protocol, port.port)
        addresses = self._addresses[key]
        addresses.remove(port.ip)
        if not addresses:
            del self._addresses[key]

    def _own(self) -> None:
        if self._is_shared:
            self._users = self._users.copy()
            self._addresses = {key: set(ips) for key, ips in self._addresses.items()}
            self._is_shared = False

    def conflicts(self, port: HostPort) -> bool:
        """Return whether a pod with ``port`` cannot run beside those counted here.

        *Cost*: constant, whatever the number of ports in use.
        """
        addresses = self._addresses.get((port.protocol, port.port))
        if not addresses:
            return False
        return port.ip == ALL_ADDRESSES or port.ip in addresses or ALL_ADDRESSES in addresses

    def conflicts_beside(self, own: Collection[HostPort]) -> bool:
        """Return whether a pod with ``own`` ports, which count here, is in another pod's way.

        *Cost*: proportional to the ports in use, at most.
        """
        mine, users = Counter(own), self._users
        for port in mine:
            ips: Collection[str] = (port.ip, ALL_ADDRESSES)
            if port.ip == ALL_ADDRESSES:
                ips = self._addresses.get((port.protocol, port.port), ())
            for ip in ips:
                used = HostPort(ip, port.protocol, port.port)
                if users.get(used, 0) > mine[used]:
                    return True
        return False

    def copy(self) -> UsedHostPorts:
        """Return an independent copy. *Cost*: constant; the first of the two to change pays."""
        other = UsedHostPorts()
        if self._users:
            other._users = self._users
            other._addresses = self._addresses
            other._is_shared = self._is_shared = True
        return other

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, UsedHostPorts):
            return NotImplemented
        return self._users == other._users

    __hash__ = None  # type: ignore[assignment] # it changes

    def __len__(self) -> int:
        """Return the number of different ports in use."""
        return len(self._users)

    def __iter__(self) -> Iterator[HostPort]:
        """Iterate over the different ports in use, in the order in which they were first used."""
        return iter(self._users)

    def __repr__(self) -> str:
        return f"UsedHostPorts({self._users!r})"
