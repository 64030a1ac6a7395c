"""What all API servers have in common: one etcd, what requests do to it, and lists in pages.

*Source*: pkg/registry/core/pod/storage of Kubernetes 1.36 for bindings.
"""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from tests.fakes.api_objects import ApiProblemError, merge
from tests.storm.api_server import ApiServer
from tests.storm.etcd import Change, Etcd, Key, Stored, conflict
from tests.storm.machine import EPOCH_S

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.storm.requests import Request
    from tests.storm.simulation import Simulation
    from tests.storm.troubles import Troubles


def stamp(now_s: float) -> str:
    """Return a time as the API writes it."""
    return datetime.fromtimestamp(int(EPOCH_S + now_s), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class ApiServers:
    """All API servers.

    Attributes
    ----------
    written
        Called with the name of the replica, the request and the status of each request that
        changes something, once it has been carried out or refused, and whether the answer is sent.
    refused
        Called with the name of the replica and a request that is answered with a Retry-After: when
        the answer arrives, and when its time is over at the earliest, for its clock may be fast.
    """

    def __init__(self, simulation: Simulation, troubles: Troubles, count: int) -> None:
        self.simulation = simulation
        self.troubles = troubles
        self.rng = simulation.rng("servers")
        self.etcd = Etcd(self._changed, lambda: stamp(simulation.now_s))
        self.frontends = [ApiServer(self, f"server-{number}") for number in range(count)]
        self.written: Callable[[str, Request, int, bool], None] = _nobody
        self.on_change: Callable[[str, Change], None] = lambda resource, change: None
        self.on_deleted: Callable[[str, Change], None] = lambda resource, change: None
        self.refused: Callable[[str, Request, tuple[float, float]], None] = lambda *_: None
        self.admits: Callable[[bytes], bool] | None = None
        """Whether a request comes from somebody who is known; None where all are."""
        self.lossy: set[str] = set()
        """Replicas that have not been told of something by a watch."""
        self._tokens: dict[str, tuple[int, list[Stored]]] = {}
        self._pages = 0

    def _changed(self, resource: str, change: Change) -> None:
        for frontend in self.frontends:
            frontend.expect(resource)
        self.on_change(resource, change)
        if change.type == "DELETED":
            self.on_deleted(resource, change)

    # --- what requests do ---------------------------------------------------------------------

    def perform(self, request: Request) -> tuple[int, bytes]:
        """Carry out a request about one object; raises ApiProblemError."""
        etcd, resource, key, body = self.etcd, request.resource, request.key, request.body
        match request.verb:
            case "get":
                return 200, etcd.get(resource, key).raw
            case "create":
                body["metadata"].setdefault("namespace", request.namespace)
                return 201, etcd.create(resource, body).raw
            case "update":
                stored = etcd.get(resource, key)
                _check(resource, stored, body["metadata"])
                return 200, etcd.replace(resource, key, body).raw
            case "patch" | "status":
                stored = etcd.get(resource, key)
                wanted = body.get("metadata", {})
                _check(resource, stored, wanted, status=422 if "uid" in wanted else 409)
                is_strategic = "strategic" in request.content_type
                wanted.pop("resourceVersion", None)
                edited = etcd.edit(
                    resource, key, lambda obj: merge(obj, body, strategic=is_strategic)
                )
                return 200, edited.raw
            case "bind":
                self.bind(key, body["target"]["name"], body["metadata"].get("uid", ""))
                return 201, b'{"kind":"Status","apiVersion":"v1","status":"Success"}'
            case "delete":
                wanted = (body or {}).get("preconditions") or {}
                _check(resource, etcd.get(resource, key), wanted)
                return 200, self.delete(resource, key).raw
        raise ApiProblemError(405, "MethodNotAllowed", f"{request.verb} is not served")

    def bind(self, key: Key, node_name: str, uid: str) -> None:
        """Bind a pod, whoever asks for it."""
        pod = self.etcd.get("pods", key).data
        problem = ""
        if uid not in ("", pod["metadata"]["uid"]):
            problem = f"Precondition failed: UID in precondition: {uid}, UID in object meta: "
            problem += pod["metadata"]["uid"]
        elif "deletionTimestamp" in pod["metadata"]:
            problem = f"pod {key[1]} is being deleted, cannot be assigned to a host"
        elif pod["spec"].get("nodeName"):
            problem = f"pod {key[1]} is already assigned to node {pod['spec']['nodeName']!r}"
        elif pod["spec"].get("schedulingGates"):
            problem = f"pod {key[1]} has non-empty .spec.schedulingGates"
        if problem:
            raise conflict("pods/binding", key[1], problem)
        now = stamp(self.simulation.now_s)
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": now}
        patch = {
            "spec": {"nodeName": node_name},
            "status": {"nominatedNodeName": None, "conditions": [scheduled]},
        }
        self.etcd.edit("pods", key, lambda obj: merge(obj, patch))

    def delete(self, resource: str, key: Key) -> Stored:
        """Delete an object; a pod on a node, or one with a finalizer, is only marked."""
        stored = self.etcd.get(resource, key)
        metadata = stored.data["metadata"]
        on_node = resource == "pods" and stored.data["spec"].get("nodeName")
        over = stored.data.get("status", {}).get("phase") in ("Succeeded", "Failed")
        if not metadata.get("finalizers") and (not on_node or over):
            return self.etcd.delete(resource, key)
        if "deletionTimestamp" in metadata:
            return stored
        mark = {
            "deletionTimestamp": stamp(self.simulation.now_s + 30.0),
            "deletionGracePeriodSeconds": 30,
        }
        return self.etcd.edit(resource, key, lambda obj: obj["metadata"].update(mark))

    # --- lists in pages -----------------------------------------------------------------------

    def first_page(self, version: int, items: list[Stored], limit: int) -> tuple[str, list[Stored]]:
        """Return a page and the token for the next one."""
        if not limit or len(items) <= limit:
            return "", items
        self._pages += 1
        token = base64.b64encode(b"%d:%d:%d" % (version, limit, self._pages)).decode()
        self._tokens[token] = version, items[limit:]
        return token, items[:limit]

    def next_page(self, token: str, limit: int) -> tuple[int, str, list[Stored]]:
        """Return the version of a list, the token for what follows, and its next page."""
        version, rest = self._tokens.pop(token, (0, []))
        if version < self.etcd.compacted:
            raise ApiProblemError(
                410, "Expired", "The provided continue parameter is too old to continue"
            )
        more, page = self.first_page(version, rest, limit)
        return version, more, page

    def forget_pages(self) -> None:
        """Answer all requests for a next page with 410."""
        self._tokens.clear()


def _check(resource: str, stored: Stored, wanted: dict[str, Any], status: int = 409) -> None:
    metadata = stored.data["metadata"]
    if wanted.get("uid") not in (None, metadata["uid"]):
        problem = conflict(
            resource, metadata["name"], f"Precondition failed: UID is {metadata['uid']}"
        )
        if status == 422:
            message = f"{metadata['name']} is invalid: metadata.uid: field is immutable"
            raise ApiProblemError(422, "Invalid", message)
        raise problem
    if wanted.get("resourceVersion") not in (None, "", metadata["resourceVersion"]):
        raise conflict(resource, metadata["name"], "the object has been modified")


def _nobody(name: str, request: Request, status: int, is_answered: bool) -> None:
    pass
