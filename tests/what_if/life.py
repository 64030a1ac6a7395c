"""A cluster with a running Berth, controllers and simulated kubelets, and what happens in it."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import time
from collections import Counter
from copy import deepcopy
from typing import TYPE_CHECKING, Any, Final

from scheduler.config import parse_config
from tests.controlplane.api import ApiError, collection_path
from tests.controlplane.binaries import find_or_build
from tests.scenarios.running_berth import RunningBerth
from tests.what_if.actions import DEFAULT, QUOTA
from tests.what_if.kubelets import PODS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
    from pathlib import Path

    from tests.controlplane.api import ApiClient
    from tests.controlplane.control_plane import ControlPlane
    from tests.what_if.actions import Action
    from tests.what_if.kubelets import Kubelets
    from tests.what_if.workloads import Workload

CONTROLLERS: Final = (
    "replicaset-controller",
    "daemonset-controller",
    "disruption-controller",
    "resourcequota-controller",
    "persistentvolume-binder-controller",
)

SETS: Final = "/apis/apps/v1/namespaces/default/replicasets"
BUDGETS: Final = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
NODES: Final = "/api/v1/nodes"
AGENT: Final = "agent"
"""The label of the DaemonSet, whose pods are part of their nodes."""

QUIET_S: Final = 1.5
"""How long nothing may happen until a change is over, with Berth at rest."""

LONGEST_S: Final = 60.0

GIVE_UP_S: Final = 12.0
"""How long nothing may happen until a drain is taken for blocked: kubectl retries every 5 s."""

RETRIES: Final = 3
"""How often kubectl must have said meanwhile that it tries again."""

DRAIN_S: Final = 300

MOST_RECREATIONS: Final = 10
"""How often a pod is recreated until its successor comes after it."""


class Scene:
    """The cluster as the campaign sees and changes it.

    Parameters
    ----------
    plane, api
        The API server.
    kubelets
        Knows all pods.
    """

    def __init__(self, plane: ControlPlane, api: ApiClient, kubelets: Kubelets) -> None:
        self.api = api
        self._kubelets = kubelets
        self._kubeconfig_of_berth = plane.berth_kubeconfig()
        self._kubeconfig = plane.admin_kubeconfig
        self.workloads: dict[str, Workload] = {}
        self.berth: RunningBerth | None = None
        self.said_by_kubectl = ""
        self._kubectl = find_or_build(["kubectl"])["kubectl"]

    @property
    def kubeconfig(self) -> Path:
        """Of a user who may do everything."""
        return self._kubeconfig

    # --- the scheduler ------------------------------------------------------------------------

    async def restart_berth(self, config: str = DEFAULT) -> None:
        """Start Berth with a configuration, in place of the one that runs."""
        await self.stop_berth()
        made = parse_config(config, "campaign")
        self.berth = RunningBerth(self._kubeconfig_of_berth, config=made)
        await asyncio.to_thread(self.berth.__enter__)
        await _until(self._is_berth_ready)

    async def _is_berth_ready(self) -> bool:
        return self.berth is not None and self.berth.is_ready

    async def stop_berth(self) -> None:
        """Stop Berth if it runs."""
        if self.berth is not None:
            await asyncio.to_thread(self.berth.stop)
            self.berth = None

    # --- what is there ------------------------------------------------------------------------

    async def pods(self) -> dict[str, dict[str, Any]]:
        """Return the pods by UID, without those of the DaemonSet."""
        return {
            pod["metadata"]["uid"]: pod
            for pod in await self.api.pods("default")
            if app_of(pod) != AGENT
        }

    def important(self) -> set[str]:
        """Return the workloads that nobody preempts."""
        return {
            name
            for name, each in self.workloads.items()
            if each.replica_set is not None
            and each.replica_set["spec"]["template"]["spec"].get("priorityClassName") == "high"
        }

    async def node_names(self) -> list[str]:
        """Return the names of all nodes."""
        return sorted(each["metadata"]["name"] for each in await self.api.list_all(NODES))

    async def state(self) -> dict[str, tuple[int, int]]:
        """Return how many pods of each workload have a node, and how many are missing."""
        wanted = {
            each["metadata"]["name"]: each["spec"]["replicas"]
            for each in await self.api.list_all(SETS)
        }
        bound: Counter[str] = Counter()
        for pod in (await self.pods()).values():
            name = app_of(pod)
            if wanted.get(name) is None or not pod["metadata"].get("ownerReferences"):
                wanted[name] = wanted.get(name, 0) + 1
            bound[name] += bool(pod["spec"].get("nodeName"))
        return {name: (bound[name], count - bound[name]) for name, count in wanted.items()}

    async def rest(self, *, missing: int | None = 0) -> None:
        """Wait until nothing happens any more.

        Parameters
        ----------
        missing
            How many pods fewer than wanted exist in the end: those that a quota refuses. None
            where nobody knows.
        """
        ends = time.monotonic() + LONGEST_S
        last, since = self._kubelets.changes, time.monotonic()
        while time.monotonic() < ends:
            await asyncio.sleep(0.1)
            if self._kubelets.changes != last or not self._is_idle():
                last, since = self._kubelets.changes, time.monotonic()
                continue
            quiet_s = time.monotonic() - since
            if quiet_s > 6 * QUIET_S:
                return
            if quiet_s > QUIET_S:
                if await self._is_settled(missing):
                    return
                await asyncio.sleep(0.4)

    def _is_idle(self) -> bool:
        """Return whether Berth has nothing to do: no pod is about to be tried or bound."""
        berth = self.berth
        if berth is None or not berth.is_at_rest:
            return False
        return not berth.app.known.pods.queue.counts().backoff

    async def _is_settled(self, missing: int | None) -> bool:
        """Return whether there are as many pods as are wanted, and each was tried."""
        everybody = list(self._kubelets.pods.values())
        agents = [pod for pod in everybody if app_of(pod) == AGENT]
        owned = [pod for pod in everybody if "ownerReferences" in pod["metadata"]]
        if not all(map(_is_done, owned)) or len(agents) != len(await self.node_names()):
            return False
        sets = await self.api.list_all(SETS)
        wanted = sum(each["spec"]["replicas"] for each in sets) - (missing or 0)
        if missing is not None and wanted != len(owned) - len(agents):
            return False
        return all(_is_counted(each, everybody) for each in await self.api.list_all(BUDGETS))

    # --- actions ------------------------------------------------------------------------------

    async def prepare(self, action: Action) -> None:
        """Create what must be there before the question: a quota, a LimitRange."""
        if action.admission is None:
            return
        made = deepcopy(action.admission)
        if made["kind"] == "ResourceQuota":
            await self._raise_above_use(made["spec"]["hard"])
        path = collection_path(made)
        await self.api.post(path, made)
        if made["kind"] != "ResourceQuota":
            return

        async def is_counted() -> bool:
            status = (await self.api.get(f"{path}/{made['metadata']['name']}")).get("status", {})
            return bool(status.get("hard") == made["spec"]["hard"] and status.get("used"))

        await _until(is_counted)

    async def _raise_above_use(self, hard: dict[str, str]) -> None:
        """Turn amounts above the present use into limits."""
        pods = await self.api.pods("default")
        used = sum(_cpu_of(pod) for pod in pods)
        for name, amount in hard.items():
            if name == "requests.cpu":
                hard[name] = f"{used + 1000 * int(amount)}m"
            else:
                hard[name] = str(len(pods) + int(amount))

    async def do(self, action: Action) -> set[str]:
        """Carry an action out; return the pods that could not be evicted."""
        for name in action.drain:
            await self.api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": True}})
        await self._add_nodes(action.add)
        removed = [name for name in action.remove if name not in action.drain]
        await self._remove_nodes(removed)
        if action.add or removed:
            await self.rest()
        self.said_by_kubectl = ""
        for name in action.drain:
            await self._drain(name)
        if action.drain:
            await self.rest()
        blocked = {
            pod["metadata"]["name"]
            for pod in (await self.pods()).values()
            if pod["spec"].get("nodeName") in action.drain
        }
        await self._remove_nodes(name for name in action.remove if name in action.drain)
        if action.workload is not None:
            if set(action.remove) & set(action.drain):
                await self.rest()
            self.workloads[action.workload.name] = action.workload
            for each in action.workload.before:
                await self.api.post(collection_path(each), each)
            if action.workload.before:
                await self._bound(action.workload.name)
            for each in action.workload.objects[len(action.workload.before) :]:
                await self.api.post(collection_path(each), each)
        await self.rest(missing=None if action.kind == QUOTA else 0)
        return blocked

    async def _bound(self, claim: str) -> None:
        """Wait until a claim is bound to its volume."""
        path = f"/api/v1/namespaces/default/persistentvolumeclaims/{claim}"

        async def is_bound() -> bool:
            return bool((await self.api.get(path)).get("status", {}).get("phase") == "Bound")

        await _until(is_bound)

    async def _add_nodes(self, add: Mapping[str, int]) -> None:
        for like, count in add.items():
            node = await self.api.get(f"{NODES}/{like}")
            for number in range(1, count + 1):
                await self.api.post(NODES, _like(node, f"{like}-new-{number}"))

    async def _remove_nodes(self, names: Iterable[str]) -> None:
        """Delete nodes and their pods, as the garbage collector of pods does after a while."""
        gone = set(names)
        for name in gone:
            await self.api.delete(f"{NODES}/{name}")
        if gone:
            lost = [
                pod["metadata"]["name"]
                for pod in await self.api.pods("default")
                if pod["spec"].get("nodeName") in gone
            ]
            await asyncio.gather(*map(self._delete_pod, lost))

    async def _delete_pod(self, name: str) -> None:
        with contextlib.suppress(ApiError):
            await self.api.delete(f"{PODS}/{name}")

    async def _drain(self, name: str) -> None:
        """Drain a node with kubectl, until it ends or nothing happens any more."""
        flags = "--force", "--ignore-daemonsets", "--delete-emptydir-data", f"--timeout={DRAIN_S}s"
        files = f"--kubeconfig={self._kubeconfig}", f"--cache-dir={self._kubeconfig}.cache"
        process = await asyncio.create_subprocess_exec(
            str(self._kubectl),
            *files,
            "drain",
            name,
            *flags,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
        )
        said: list[str] = [f"drain {name}\n"]
        reading = asyncio.create_task(_read(process, said))
        last, since, retries = self._kubelets.changes, time.monotonic(), 0
        while not reading.done():
            await asyncio.wait([reading], timeout=0.25)
            if self._kubelets.changes != last:
                last, since, retries = self._kubelets.changes, time.monotonic(), len(said)
            refused = sum("will retry" in line for line in said[retries:])
            # On a busy machine kubectl takes long to begin.
            is_blocked = refused >= RETRIES and time.monotonic() - since > GIVE_UP_S
            if is_blocked and process.returncode is None:
                process.kill()
        await process.wait()
        self.said_by_kubectl += "".join(said)

    # --- between actions ----------------------------------------------------------------------

    async def tidy(
        self, action: Action, nodes: Sequence[dict[str, Any]], most_share: float
    ) -> None:
        """Undo what an action did to nodes and limits, and make room for the next one."""
        if action.admission is not None:
            path = collection_path(action.admission)
            await self.api.delete(f"{path}/{action.admission['metadata']['name']}")
            await self._want_what_exists((await self.pods()).values())
        if action.budget is not None:
            await self.api.post(BUDGETS, action.budget)
        present = await self.node_names()
        for name in action.drain:
            if name in present:
                await self.api.patch(f"{NODES}/{name}", {"spec": {"unschedulable": False}})
        await self._remove_nodes(name for name in present if "-new-" in name)
        for node in nodes:
            if node["metadata"]["name"] not in present:
                await self.api.post(NODES, node)
        await self.rest()
        while self.workloads and await self._share() > most_share:
            await self._remove_workload(next(iter(self.workloads)))
            await self.rest()

    async def drop_pending(self) -> None:
        """Let nobody want the pods that have no node."""
        bound = [pod for pod in (await self.pods()).values() if pod["spec"].get("nodeName")]
        await self._want_what_exists(bound)
        for pod in (await self.pods()).values():
            if not pod["spec"].get("nodeName"):
                await self._delete_pod(pod["metadata"]["name"])
        await self.rest()

    async def _want_what_exists(self, pods: Iterable[dict[str, Any]]) -> None:
        """Let no controller want other pods than these."""
        sets = {each["metadata"]["name"]: each for each in await self.api.list_all(SETS)}
        counts = Counter(map(app_of, pods))
        for name, each in sets.items():
            if counts[name] < each["spec"]["replicas"]:
                await self.api.patch(f"{SETS}/{name}", {"spec": {"replicas": counts[name]}})

    async def _remove_workload(self, name: str) -> None:
        workload = self.workloads.pop(name)
        if workload.replica_set is not None:
            await self.api.patch(f"{SETS}/{name}", {"spec": {"replicas": 0}})
            await self.rest()
            await self.api.delete(f"{SETS}/{name}")
        for pod in workload.pods:
            await self._delete_pod(pod["metadata"]["name"])
        with contextlib.suppress(ApiError):
            await self.api.delete(f"{BUDGETS}/{name}")
        for each in reversed(workload.before):
            path = f"{collection_path(each)}/{name}"
            await self.api.patch(path, {"metadata": {"finalizers": None}})
            with contextlib.suppress(ApiError):
                await self.api.delete(path)

    async def _share(self) -> float:
        """Return how much of the CPU all pods ask for, those that wait included."""
        nodes = await self.api.list_all(NODES)
        has = sum(_milli(node["status"]["allocatable"]["cpu"]) for node in nodes)
        return sum(_cpu_of(pod) for pod in await self.api.pods("default")) / has

    async def recreate(self, pod: dict[str, Any]) -> dict[str, Any]:
        """Delete a pod, create it again where no controller does, and return its successor.

        The API server marks a pod as deleted before it deletes it, and a controller replaces it at
        the mark. A successor that came so early may have been decided about beside the pod: it is
        recreated itself.
        """
        for _ in range(MOST_RECREATIONS):
            successor = await self._recreate(pod)
            if not await self._has_met(pod, successor):
                break
            pod = successor
        return successor

    async def _has_met(self, pod: dict[str, Any], successor: dict[str, Any]) -> bool:
        """Return whether a successor was there before the pod of a controller was gone."""
        if not pod["metadata"].get("ownerReferences"):
            return False
        name, happenings = pod["metadata"]["name"], self._kubelets.happenings

        def place(what: str, name: str) -> int | None:
            found = (at for at, each in enumerate(happenings) if each[1:3] == (what, name))
            return next(found, None)

        async def is_gone() -> bool:
            return pod["metadata"]["uid"] not in self._kubelets.pods

        await _until(is_gone)
        created, deleted = place("created", successor["metadata"]["name"]), place("deleted", name)
        return created is not None and deleted is not None and created < deleted

    async def _recreate(self, pod: Mapping[str, Any]) -> dict[str, Any]:
        before = set(await self.pods())
        name = pod["metadata"]["name"]
        await self._delete_pod(name)
        if not pod["metadata"].get("ownerReferences"):
            workload = self.workloads[app_of(pod)]
            made = next(each for each in workload.pods if each["metadata"]["name"] == name)
            await self.api.post(PODS, made)
        ends = time.monotonic() + LONGEST_S
        while time.monotonic() < ends:
            for uid, each in list(self._kubelets.pods.items()):
                if uid not in before and app_of(each) != AGENT and _is_done(each):
                    return each
            await asyncio.sleep(0.05)
        raise TimeoutError(f"nothing became of the successor of {name}")


async def _read(process: asyncio.subprocess.Process, said: list[str]) -> None:
    """Read what a process prints, line by line, until it ends."""
    assert process.stdout is not None
    async for line in process.stdout:
        said.append(line.decode())  # noqa: PERF401 - the list is read meanwhile


async def _until(is_true: Callable[[], Awaitable[bool]]) -> None:
    ends = time.monotonic() + LONGEST_S
    while time.monotonic() < ends:
        if await is_true():
            return
        await asyncio.sleep(0.1)
    raise TimeoutError("what was waited for did not happen")


def app_of(pod: Mapping[str, Any]) -> str:
    """Return the workload of a pod."""
    return str(pod["metadata"].get("labels", {}).get("app", ""))


def _is_done(pod: Mapping[str, Any]) -> bool:
    if pod["spec"].get("nodeName"):
        return bool(pod["status"]["phase"] == "Running")
    conditions = pod["status"].get("conditions", ())
    return any(each.get("reason") == "Unschedulable" for each in conditions)


def _is_counted(budget: Mapping[str, Any], pods: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether the status of a budget has the pods as they are."""
    status = budget.get("status", {})
    if status.get("observedGeneration") != budget["metadata"]["generation"]:
        return False
    selector = budget["spec"]["selector"]
    names = selector.get("matchLabels", {}).values() or selector["matchExpressions"][0]["values"]
    healthy = sum(
        app_of(pod) in names
        and any(
            each["type"] == "Ready" and each["status"] == "True"
            for each in pod["status"].get("conditions", ())
        )
        for pod in pods
    )
    return bool(status.get("currentHealthy") == healthy and not status.get("disruptedPods"))


def _like(node: Mapping[str, Any], name: str) -> dict[str, Any]:
    labels = {**node["metadata"]["labels"], "kubernetes.io/hostname": name}
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": node["status"],
    }


def _cpu_of(pod: Mapping[str, Any]) -> int:
    resources = pod["spec"]["containers"][0].get("resources", {})
    return _milli(resources.get("requests", {}).get("cpu", "0"))


def _milli(text: str) -> int:
    return int(text.removesuffix("m")) if text.endswith("m") else int(text) * 1000
