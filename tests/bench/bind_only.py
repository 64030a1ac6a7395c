"""Binds the pods that wait for a scheduler to one node after the other, as fast as it can.

``python -m tests.bench.bind_only KUBECONFIG SCHEDULER_NAME`` ends when told to.
"""

from __future__ import annotations

import asyncio
import itertools
import sys

import msgspec

from cache.objects import Pod
from scheduler.client.api import Api
from scheduler.client.credential_search import load_credentials
from scheduler.client.limiter import TokenBucketLimiter
from scheduler.client.transport import Transport
from tests.bench.contenders import QPS

IN_FLIGHT = 100
"""As many as berth has under way where no rate is set."""

_PAGE = "5000"


class _Meta(msgspec.Struct):
    name: str = ""
    token: str = msgspec.field(default="", name="continue")


class _Node(msgspec.Struct):
    metadata: _Meta


class _Nodes(msgspec.Struct):
    metadata: _Meta
    items: list[_Node]


class _Pods(msgspec.Struct):
    metadata: _Meta
    items: list[Pod]


async def run(kubeconfig: str, scheduler_name: str) -> None:
    """Bind what waits, then wait to be ended."""
    transport = Transport(
        await load_credentials(kubeconfig),
        user_agent="bind-only",
        limiter=TokenBucketLimiter(QPS, QPS),
    )
    nodes: list[str] = []
    pods: list[Pod] = []
    token = ""
    while True:
        query = [("limit", _PAGE), ("continue", token)]
        answer = await transport.request("GET", "/api/v1/nodes", query=query)
        some_nodes = msgspec.json.decode(answer.body, type=_Nodes)
        nodes += [each.metadata.name for each in some_nodes.items]
        token = some_nodes.metadata.token
        if not token:
            break
    while True:
        query = [("limit", _PAGE), ("continue", token), ("fieldSelector", "spec.nodeName=")]
        answer = await transport.request("GET", "/api/v1/pods", query=query)
        some_pods = msgspec.json.decode(answer.body, type=_Pods)
        pods += [each for each in some_pods.items if each.spec.scheduler_name == scheduler_name]
        token = some_pods.metadata.token
        if not token:
            break
    api = Api(transport)
    waiting = zip(
        (each for each in pods if not each.spec.scheduling_gates),
        itertools.cycle(nodes),
        strict=False,
    )

    async def work() -> None:
        for pod, node in waiting:
            meta = pod.metadata
            await api.bind_pod(meta.namespace, meta.name, meta.uid, node)

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(work())
    await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    uvloop.run(run(*sys.argv[1:]))
