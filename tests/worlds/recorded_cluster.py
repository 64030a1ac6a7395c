"""The API server's side of a world: every request that changes something is written down."""

from __future__ import annotations

import json
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from tests.fakes.refusals import lost, refusal
from tests.regressions.cluster import Cluster

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from scheduler.kinds import ResourceKind

VERBS: Final = ("binds", "statuses", "deletes", "events", "volumes")

UNANSWERED: Final = "no answer yet"


@dataclass(slots=True)
class Write:
    """A request that changes something.

    Attributes
    ----------
    verb
        ``bind``, ``status``, ``delete``, ``event``, ``event again``, ``volume`` or ``claim``.
    about
        Namespace, name and UID of the object; of an Event those of its pod.
    body
        What is asked for, as JSON with sorted keys. Versions of objects and names of Events are
        left out: they say how many changes there were before.
    outcome
        ``ok`` or the error that the scheduler got.
    """

    verb: str
    about: str
    body: str
    outcome: str = UNANSWERED

    def __str__(self) -> str:
        return f"{self.verb} {self.about} {self.body} -> {self.outcome}"


class RecordedCluster(Cluster):
    """A cluster that remembers all writes in the order in which they were asked for.

    Notes
    -----
    *Concurrency*: confined to the loop.
    """

    def __init__(self, wall_clock: Callable[[], float]) -> None:
        super().__init__(wall_clock)
        self.writes: list[Write] = []
        self._unanswered: dict[str, deque[bool]] = {verb: deque() for verb in VERBS}
        self._events: dict[str, str] = {}

    def lose_answer(self, verb: str, *, carried_out: bool) -> None:
        """Let the next request of a kind fail without an answer: after its effect, or before."""
        self._unanswered[verb].append(carried_out)

    @contextmanager
    def _written(self, verb: str, write: Write) -> Iterator[None]:
        """Remember a request and its outcome, and lose its answer if that is to happen."""
        self.writes.append(write)
        fates = self._unanswered[verb]
        carried_out = fates.popleft() if fates else None
        try:
            if carried_out is False:
                raise refusal("POST", None, "as the world wants it")
            yield
            if carried_out:
                raise lost("POST")
        except Exception as error:
            write.outcome = " ".join(str(error).split())
            raise
        write.outcome = "ok"

    async def bind_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        node_name: str,
        *,
        resource_version: str = "",
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        with self._written("binds", Write("bind", f"{namespace}/{name}/{uid}", node_name)):
            await super().bind_pod(
                namespace,
                name,
                uid,
                node_name,
                resource_version=resource_version,
                may_send=may_send,
            )

    async def patch_pod_status(
        self,
        namespace: str,
        name: str,
        uid: str,
        patch: Mapping[str, Any],
        *,
        resource_version: str = "",
    ) -> None:
        only = {"if": "unchanged"} if resource_version else {}
        write = Write("status", f"{namespace}/{name}/{uid}", _text({**patch, **only}))
        with self._written("statuses", write):
            await super().patch_pod_status(
                namespace, name, uid, patch, resource_version=resource_version
            )

    async def delete_pod(
        self,
        namespace: str,
        name: str,
        uid: str,
        *,
        may_send: Callable[[], bool] | None = None,
    ) -> None:
        with self._written("deletes", Write("delete", f"{namespace}/{name}/{uid}", "")):
            await super().delete_pod(namespace, name, uid, may_send=may_send)

    async def create_event(self, namespace: str, body: Mapping[str, Any]) -> None:
        pod = body["regarding"]
        about = f"{namespace}/{pod['name']}/{pod['uid']}"
        self._events[body["metadata"]["name"]] = f"{about} {body['reason']} {body['note']}"
        with self._written("events", Write("event", about, _text(body))):
            await super().create_event(namespace, body)

    async def patch_event(self, namespace: str, name: str, patch: Mapping[str, Any]) -> None:
        with self._written("events", Write("event again", self._events[name], _text(patch))):
            await super().patch_event(namespace, name, patch)

    async def patch_object(
        self, kind: ResourceKind[Any], namespace: str, name: str, patch: Mapping[str, Any]
    ) -> Any:
        verb = "volume" if kind.name == "persistentvolumes" else "claim"
        about = f"{namespace}/{name}/{patch['metadata'].get('uid', '')}"
        with self._written("volumes", Write(verb, about, _text(patch))):
            return await super().patch_object(kind, namespace, name, patch)


def _text(body: Mapping[str, Any]) -> str:
    kept = _without_versions(body)
    if "regarding" in body:
        del kept["metadata"]["name"]
    return json.dumps(kept, sort_keys=True, ensure_ascii=False)


def _without_versions(value: Any) -> Any:
    if isinstance(value, dict):
        return {
            key: _without_versions(each) for key, each in value.items() if key != "resourceVersion"
        }
    if isinstance(value, list | tuple):
        return [_without_versions(each) for each in value]
    return value
