"""One HTTP extender: its requests, and the meaning of its responses.

*Source*: kube-scheduler 1.36, pkg/scheduler/extender.go.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from cache.value import Value
from plugins.framework.status import unresolvable, unschedulable
from plugins.framework.victims import Victims
from scheduler.config.extender import is_interested
from scheduler.extenders.extender_client import ExtenderClient, ExtenderError
from scheduler.extenders.wire import (
    MalformedAnswerError,
    decode_binding_error,
    decode_filter_result,
    decode_preemption_result,
    decode_priorities,
    encode_args,
    encode_binding,
    encode_preemption,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import msgspec

    from cache.node_info import NodeInfo
    from cache.objects import Pod
    from cache.pod_info import PodInfo
    from plugins.framework.status import Status
    from scheduler.config import Extender
    from scheduler.extenders.whole_objects import WholeObjects
    from scheduler.extenders.wire import VictimUids

T = TypeVar("T")

PODS_AT_ONCE: Final = 16
"""The number of parallel reads of victims, for extenders that want whole pods."""


class Verdict(Value, frozen=True):
    """The result of a filter: the nodes that pass, and the statuses of some other nodes."""

    passed: frozenset[str]
    rejected: dict[str, Status]


class HttpExtender:
    """One extender of the configuration.

    Parameters
    ----------
    config
        The extender as in the configuration.
    where
        Its path in the configuration, for messages.
    objects
        Provides whole pods and nodes.

    Attributes
    ----------
    config
        The verbs of the extender (an empty verb is not called) and the weight of its scores.
    name
        The extender's URL, which kube-scheduler uses as its name.
    client
        The client that sends requests to the extender.

    Notes
    -----
    *Concurrency*: the attributes and :meth:`is_interested` from any thread, the rest on the loop.
    """

    def __init__(self, config: Extender, where: str, objects: WholeObjects) -> None:
        self.config = config
        self.name = config.url_prefix
        self.client = ExtenderClient(config, where)
        self._objects = objects
        self._managed = frozenset(resource.name for resource in config.managed_resources)

    def is_interested(self, pod: Pod) -> bool:
        """Return whether the extender manages no resources, or one that the pod requests."""
        return is_interested(self._managed, pod)

    async def filter(self, pod: msgspec.Raw, names: Sequence[str]) -> Verdict:
        """Let the extender filter the named nodes.

        # Differs: kube-scheduler accepts a node that was not in the request from an extender that
        gets whole nodes; here that is an error with whole nodes and with names. A node that the
        watch of whole nodes has not delivered yet is not sent, and so does not pass.

        Raises
        ------
        ExtenderError
            When the request fails, or the response names a node that was not in the request.
        """
        sent, body = self._question(pod, names)
        result = await self._ask(self.config.filter_verb, body, decode_filter_result)
        if result.error:
            raise ExtenderError(result.error)
        passed: Sequence[str] = ()
        if self.config.node_cache_capable and result.node_names is not None:
            passed = result.node_names
        elif result.nodes is not None:
            passed = result.nodes
        for name in passed:
            if name not in sent:
                raise ExtenderError(
                    f'extender "{self.name}" claims a filtered node "{name}" which is not found '
                    "in the input node list"
                )
        # A node in both is unresolvable.
        rejected = {name: unschedulable(why) for name, why in result.failed.items()}
        rejected |= {name: unresolvable(w) for name, w in result.failed_and_unresolvable.items()}
        rejected = {name: status for name, status in rejected.items() if name in sent}
        return Verdict(frozenset(passed), rejected)

    async def prioritize(self, pod: msgspec.Raw, names: Sequence[str]) -> dict[str, int]:
        """Return the extender's scores by node, without weight and factor; repeated nodes add up.

        Raises
        ------
        ExtenderError
            When the request fails.
        """
        _, body = self._question(pod, names)
        scores: dict[str, int] = {}
        for each in await self._ask(self.config.prioritize_verb, body, decode_priorities):
            scores[each.host] = scores.get(each.host, 0) + each.score
        return scores

    async def preempt(
        self,
        pod: msgspec.Raw,
        candidates: Mapping[str, Victims],
        nodes: Mapping[str, NodeInfo],
    ) -> dict[str, Victims]:
        """Return the candidates that the extender accepts, with their victims, possibly none.

        Raises
        ------
        ExtenderError
            When the request fails, or the response names a node or a pod that does not exist there.
        """
        asked = {
            node: (tuple(each.uid for each in victims.pods), victims.pdb_violations)
            for node, victims in candidates.items()
        }
        whole = None if self.config.node_cache_capable else await self._whole_pods(candidates)
        body = encode_preemption(pod, asked, whole)
        answer = await self._ask(self.config.preempt_verb, body, decode_preemption_result)
        return {node: self._victims(node, told, nodes) for node, told in answer.items()}

    async def _whole_pods(self, candidates: Mapping[str, Victims]) -> dict[str, msgspec.Raw]:
        infos = {each.uid: each for victims in candidates.values() for each in victims.pods}
        slots = asyncio.Semaphore(PODS_AT_ONCE)

        async def whole(info: PodInfo) -> msgspec.Raw:
            async with slots:
                return await self._objects.pod(info)

        found = await asyncio.gather(*map(whole, infos.values()))
        return dict(zip(infos, found, strict=True))

    def _victims(
        self, node_name: str, told: VictimUids | None, nodes: Mapping[str, NodeInfo]
    ) -> Victims:
        if told is None:
            return Victims(())
        node_info = nodes.get(node_name)
        if node_info is None:
            raise ExtenderError(
                f'extender "{self.name}" claims to preempt on node "{node_name}", which does not '
                "exist"
            )
        found = []
        for uid in told.uids:
            info = node_info.pods.get(uid)
            if info is None:
                raise ExtenderError(
                    f'extender "{self.name}" claims to preempt pod (UID: {uid}) on node '
                    f'"{node_name}", but the pod is not found on that node'
                )
            found.append(info)
        return Victims(tuple(found), told.pdb_violations)

    async def bind(self, info: PodInfo, node_name: str) -> None:
        """Let the extender bind a pod.

        Raises
        ------
        ExtenderError
            When the request fails; the pod may be bound nevertheless.
        """
        body = encode_binding(info.namespace, info.name, info.uid, node_name)
        error = await self._ask(self.config.bind_verb, body, decode_binding_error, again=False)
        if error:
            raise ExtenderError(error)

    def _question(self, pod: msgspec.Raw, names: Sequence[str]) -> tuple[frozenset[str], bytes]:
        """Return the nodes in the request, and its body."""
        if self.config.node_cache_capable:
            return frozenset(names), encode_args(pod, nodes=None, node_names=list(names))
        found = {name: node for name in names if (node := self._objects.node(name)) is not None}
        if not found:
            raise ExtenderError(f'no node to ask extender "{self.name}" about has arrived whole')
        return frozenset(found), encode_args(pod, nodes=list(found.values()), node_names=None)

    async def _ask(
        self, verb: str, body: bytes, decode: Callable[[bytes], T], *, again: bool = True
    ) -> T:
        """Return the response to a request; ``again`` as for :meth:`ExtenderClient.send`."""
        answer = await self.client.send(verb, body, again=again)
        try:
            return decode(answer)
        except MalformedAnswerError as error:
            why = f'extender "{self.name}" answered {verb} with garbage: {error}'
            raise ExtenderError(why) from error
