"""Binds the pods that wait for a scheduler to one node after the other, as fast as it can.

``python -m tests.bench.bind_only KUBECONFIG SCHEDULER_NAME [--events]`` ends when told to. With
``--events`` it sends the Events that berth sends of its bindings, and as berth does: after them.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import random

import msgspec

from cache.objects import Pod
from scheduler.api_writes.event_recorder import EventRecorder
from scheduler.assembly import BINDS_BEFORE_EVENTS, EVENTS_WAITING
from scheduler.client.api import Api
from scheduler.client.credential_search import load_credentials
from scheduler.client.limiter import TokenBucketLimiter
from scheduler.client.transport import Transport
from scheduler.process.ports import SYSTEM_CLOCK, Ports
from scheduler.process.thread_executor import ThreadExecutor
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


async def run(kubeconfig: str, scheduler_name: str, *, sends_events: bool) -> None:
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
    to_bind = [each for each in pods if not each.spec.scheduling_gates]
    left = len(to_bind)
    waiting = zip(to_bind, itertools.cycle(nodes), strict=False)
    ports = Ports(api, ThreadExecutor(asyncio.get_running_loop()), SYSTEM_CLOCK, random.Random(1))
    events = EventRecorder(
        ports,
        instance="bind-only",
        capacity=EVENTS_WAITING,
        pressure=lambda: left > BINDS_BEFORE_EVENTS,
    )
    events.start()

    async def work() -> None:
        nonlocal left
        for pod, node in waiting:
            meta = pod.metadata
            await api.bind_pod(meta.namespace, meta.name, meta.uid, node)
            left -= 1
            if sends_events:
                note = f"Successfully assigned {meta.namespace}/{meta.name} to {node}"
                events.event(pod, "Normal", "Scheduled", "Binding", note)

    async with asyncio.TaskGroup() as group:
        for _ in range(IN_FLIGHT):
            group.create_task(work())
    await asyncio.Event().wait()


if __name__ == "__main__":
    import uvloop

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("kubeconfig")
    parser.add_argument("scheduler_name")
    parser.add_argument("--events", action="store_true")
    options = parser.parse_args()
    uvloop.run(run(options.kubeconfig, options.scheduler_name, sends_events=options.events))
