"""Gangs on nodes of their own, for scenarios that share one API server and one berth."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any, Final

from tests.controlplane import pod_groups
from tests.controlplane.objects import make_namespace, make_node, make_pod
from tests.controlplane.pod_groups import FIELD_API, LABEL_API, groups_path

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.controlplane.blocking_api import BlockingApi
    from tests.scenarios.running_berth import RunningBerth

HIGH: Final = "high"
POLITE: Final = "polite"
"""Of the priority of :data:`HIGH`, and preempts nobody."""

_WORLD: Final = "world"
_PATIENCE_S: Final = 30.0


class GangWorld:
    """A namespace, and nodes that only its pods ask for.

    Parameters
    ----------
    berth
        The one that schedules when the world begins; a scenario may start another.
    by_label
        Whether pods name their group by the label.
    """

    _numbers = itertools.count()

    def __init__(
        self,
        api: BlockingApi,
        berth: RunningBerth,
        *,
        by_label: bool = False,
        scheduler_name: str = "berth",
    ) -> None:
        self.api = api
        self.berth = berth
        self._scheduler_name = scheduler_name
        self.by_label = by_label
        self.namespace = f"world-{next(self._numbers)}"
        self._nodes: list[str] = []
        api.create_many([make_namespace(self.namespace)])

    # --- what is created ----------------------------------------------------------------------

    def node(self, cpu: int) -> str:
        """Create a node with so many CPUs, and return its name."""
        name = f"{self.namespace}-node-{len(self._nodes)}"
        self._nodes.append(name)
        self.api.create_many([make_node(name, cpu=str(cpu), labels={_WORLD: self.namespace})])
        return name

    def group(self, name: str, minimum: int, **spec: Any) -> None:
        """Create a group."""
        self.api.create_many([self._group(name, minimum, **spec)])

    def _group(self, name: str, minimum: int, **spec: Any) -> dict[str, Any]:
        make = pod_groups.make_x_pod_group if self.by_label else pod_groups.make_pod_group
        return make(name, minimum, namespace=self.namespace, **spec)

    def pod(self, name: str, cpu: int = 1, **spec: Any) -> dict[str, Any]:
        """Return a single pod."""
        settings = {
            "nodeSelector": {_WORLD: self.namespace},
            "terminationGracePeriodSeconds": 0,
            **spec,
        }
        return make_pod(
            name,
            namespace=self.namespace,
            scheduler_name=self._scheduler_name,
            cpu=str(cpu),
            **settings,
        )

    def member(self, group: str, name: str, cpu: int = 1, **spec: Any) -> dict[str, Any]:
        """Return a member of a group."""
        join = pod_groups.by_label if self.by_label else pod_groups.by_field
        return join(self.pod(name, cpu, **spec), group)

    def create(self, *pods: dict[str, Any]) -> None:
        """Create pods in this order."""
        for pod in pods:
            self.api.create_many([pod])

    def gang(self, name: str, members: int, minimum: int = 0, cpu: int = 1, **spec: Any) -> None:
        """Create a group and its members, which are called like it with a number."""
        priority = {
            key: value
            for key, value in spec.items()
            if key == "priorityClassName" and not self.by_label
        }
        self.group(name, minimum or members, **priority)
        self.create(*(self.member(name, f"{name}-{i}", cpu, **spec) for i in range(members)))

    # --- what happens -------------------------------------------------------------------------

    def path(self, name: str) -> str:
        """Return the path of a pod."""
        return f"/api/v1/namespaces/{self.namespace}/pods/{name}"

    def group_path(self, name: str) -> str:
        """Return the path of a group."""
        api = LABEL_API if self.by_label else FIELD_API
        return f"{groups_path(api, self.namespace)}/{name}"

    def delete(self, *names: str) -> None:
        """Delete pods."""
        for name in names:
            self.api.delete(self.path(name))

    def delete_group(self, name: str) -> None:
        """Delete a group and take its finalizer, as the controller does when no member is left."""
        self.api.delete(self.group_path(name))
        if not self.by_label:
            self.api.patch(self.group_path(name), {"metadata": {"finalizers": None}})

    def end(self, *names: str, phase: str = "Succeeded") -> None:
        """Let pods end."""
        for name in names:
            self.api.patch(f"{self.path(name)}/status", {"status": {"phase": phase}})

    # --- what is seen -------------------------------------------------------------------------

    def pods(self) -> dict[str, dict[str, Any]]:
        """Return all pods by name."""
        return {pod["metadata"]["name"]: pod for pod in self.api.pods(self.namespace)}

    def bound(self) -> set[str]:
        """Return the names of the pods that have a node."""
        return {name for name, pod in self.pods().items() if pod["spec"].get("nodeName")}

    def reason(self, name: str) -> str:
        """Return why a pod waits, by its condition; empty when it does not say."""
        for each in self.pods()[name]["status"].get("conditions", ()):
            if each["type"] == "PodScheduled" and each["status"] == "False":
                return str(each.get("message", ""))
        return ""

    def group_reason(self, name: str) -> str:
        """Return what the condition of a group says; empty when it does not."""
        status = self.api.get(self.group_path(name)).get("status", {})
        return " ".join(each.get("message", "") for each in status.get("conditions", ()))

    def wait_bound(self, *names: str) -> None:
        """Wait until these and no other pods have a node, and nothing is under way."""
        self.api.wait_until(
            lambda: self.bound() == set(names) and self.berth.is_at_rest,
            f"bound: {sorted(names)}; are {sorted(self.bound())}",
            timeout_s=_PATIENCE_S,
        )

    def wait_refused(self, *names: str) -> None:
        """Wait until pods say why they have no node."""
        self.api.wait_until(
            lambda: all(self.reason(name) for name in names) and self.berth.is_at_rest,
            f"a reason on {sorted(names)}",
            timeout_s=_PATIENCE_S,
        )

    def nothing_is_held(self, names: Iterable[str]) -> bool:
        """Return whether these pods have no node and no nomination, and nothing is assumed."""
        pods = self.pods()
        return self.berth.is_at_rest and not any(
            pods[name]["spec"].get("nodeName") or pods[name]["status"].get("nominatedNodeName")
            for name in names
        )

    def clear(self) -> None:
        """Delete pods and nodes, so that nothing of this world is tried again."""
        self.delete(*self.pods())
        for name in self._nodes:
            self.api.delete(f"/api/v1/nodes/{name}")


def members(name: str, count: int) -> list[str]:
    """Return the names of the members that :meth:`GangWorld.gang` creates."""
    return [f"{name}-{index}" for index in range(count)]
