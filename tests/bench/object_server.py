"""Serves so many nodes and bound pods as an API server's watch does, and then events at a rate.

What it sends looks like what a real API server has of the pods of Deployments, service-account
volume, conditions and managed fields included. It knows no request but that of an informer.

``python -m tests.bench.object_server PORT NODES PODS RATE``
"""

from __future__ import annotations

import asyncio
import itertools
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import msgspec

from tests.bench.large_clusters import ZONES, node_name
from tests.controlplane.objects import make_node

if TYPE_CHECKING:
    from collections.abc import Iterator

_BATCH = 256
_TICK_S = 0.005

_LINE = (
    b'{"type":"%b","object":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"%b","namespace":'
    b'"team-%d","uid":"%b","resourceVersion":"%d","generation":1,"creationTimestamp":'
    b'"2026-01-01T00:00:00Z","generateName":"web-%d-7d9f8b6c5d-","labels":{"app":"web-%d",'
    b'"pod-template-hash":"7d9f8b6c5d"},"annotations":{"prometheus.io/scrape":"true"},'
    b'"ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-%d-7d9f8b6c5d",'
    b'"uid":"3e7c9d9e-0000-4000-8000-%012d","controller":true,"blockOwnerDeletion":true}],'
    b'"managedFields":[{"manager":"kube-controller-manager","operation":"Update","apiVersion":"v1",'
    b'"time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":{"f:metadata":'
    b'{"f:generateName":{},"f:labels":{".":{},"f:app":{},"f:pod-template-hash":{}},'
    b'"f:ownerReferences":{".":{}}},"f:spec":{"f:containers":{"k:{\\"name\\":\\"web\\"}":{".":{},'
    b'"f:image":{},"f:imagePullPolicy":{},"f:name":{},"f:resources":{".":{},"f:requests":{".":{},'
    b'"f:cpu":{},"f:memory":{}}}}},"f:dnsPolicy":{},"f:restartPolicy":{},"f:schedulerName":{},'
    b'"f:terminationGracePeriodSeconds":{}}}},{"manager":"kubelet","operation":"Update",'
    b'"apiVersion":"v1","time":"2026-01-01T00:00:00Z","fieldsType":"FieldsV1","fieldsV1":'
    b'{"f:status":{"f:conditions":{},"f:containerStatuses":{},"f:phase":{},"f:podIP":{}}},'
    b'"subresource":"status"}]},"spec":{"volumes":[{"name":"kube-api-access","projected":'
    b'{"sources":[{"serviceAccountToken":{"expirationSeconds":3607,"path":"token"}},{"configMap":'
    b'{"name":"kube-root-ca.crt","items":[{"key":"ca.crt","path":"ca.crt"}]}}],"defaultMode":420}}'
    b'],"containers":[{"name":"web","image":"registry.example/web:v1","ports":[{"containerPort":'
    b'8080,"protocol":"TCP"}],"env":[{"name":"MODE","value":"production"}],"resources":'
    b'{"requests":{"cpu":"10m","memory":"16Mi"}},"volumeMounts":[{"name":"kube-api-access",'
    b'"readOnly":true,"mountPath":"/var/run/secrets/kubernetes.io/serviceaccount"}],'
    b'"terminationMessagePath":"/dev/termination-log","terminationMessagePolicy":"File",'
    b'"imagePullPolicy":"IfNotPresent"}],"restartPolicy":"Always",'
    b'"terminationGracePeriodSeconds":30,"dnsPolicy":"ClusterFirst","serviceAccountName":"default",'
    b'"nodeName":"%b","securityContext":{},"schedulerName":"berth","tolerations":[{"key":'
    b'"node.kubernetes.io/not-ready","operator":"Exists","effect":"NoExecute","tolerationSeconds":'
    b'300},{"key":"node.kubernetes.io/unreachable","operator":"Exists","effect":"NoExecute",'
    b'"tolerationSeconds":300}],"priority":0,"enableServiceLinks":true,"preemptionPolicy":'
    b'"PreemptLowerPriority"},"status":{"phase":"Running","conditions":[{"type":"Ready","status":'
    b'"True","lastTransitionTime":"2026-01-01T00:00:00Z"},{"type":"PodScheduled","status":"True",'
    b'"lastTransitionTime":"2026-01-01T00:00:00Z"}],"hostIP":"10.0.0.1","podIP":"10.1.0.1",'
    b'"startTime":"2026-01-01T00:00:00Z","containerStatuses":[{"name":"web","state":{"running":'
    b'{"startedAt":"2026-01-01T00:00:00Z"}},"ready":true,"restartCount":%d,"image":'
    b'"registry.example/web:v1","imageID":"","started":true}],"qosClass":"Burstable"}}}\n'
)

_APPS = 200
_TEAMS = 20


def pod_line(kind: bytes, index: int, num_nodes: int, version: int, restarts: int = 0) -> bytes:
    """Return one event of a watch of pods."""
    app = index % _APPS
    return _LINE % (
        kind,
        b"web-%d-7d9f8b6c5d-%05x" % (app, index),
        app % _TEAMS,
        b"8f14e45f-0000-4000-8000-%012d" % index,
        version,
        app,
        app,
        app,
        app,
        node_name(index % num_nodes).encode(),
        restarts,
    )


def node_line(index: int) -> bytes:
    """Return one event of a watch of nodes."""
    made = make_node(node_name(index), zone=f"zone-{index % ZONES}", pods="1000")
    made["metadata"] |= {"uid": f"uid-node-{index}", "resourceVersion": str(index + 1)}
    return b'{"type":"ADDED","object":%b}\n' % msgspec.json.encode(made)


def end_of_list(kind: bytes, version: int) -> bytes:
    """Return the bookmark that says that all there was has been sent."""
    return (
        b'{"type":"BOOKMARK","object":{"kind":"%b","apiVersion":"v1","metadata":{'
        b'"resourceVersion":"%d","annotations":{"k8s.io/initial-events-end":"true"}}}}\n'
        % (kind, version)
    )


def _node_metadata(index: int) -> bytes:
    return msgspec.json.encode(
        {"name": node_name(index), "uid": f"uid-node-{index}", "resourceVersion": str(index + 1)}
    )


class ObjectServer:
    """A watch of nodes and one of pods.

    Parameters
    ----------
    num_nodes, num_pods
        What there is.
    rate
        Changes of pods a second, once a watch has had them all.
    """

    def __init__(self, num_nodes: int, num_pods: int, rate: int) -> None:
        self._num_nodes = num_nodes
        self._num_pods = num_pods
        self._rate = rate
        self._version = num_nodes + num_pods + 1

    async def serve(self, port: int) -> None:
        """Serve on loopback until cancelled."""
        server = await asyncio.start_server(self._answer, "127.0.0.1", port)
        async with server:
            await server.serve_forever()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            path = head.split(b" ", 2)[1]
            while b"PartialObjectMetadataList" in head:
                await self._list_metadata(writer, path)
                head = await reader.readuntil(b"\r\n\r\n")
                path = head.split(b" ", 2)[1]
            if b"watch=" not in path:
                # An informer asks for a list only where there is no streaming one.
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
                await writer.drain()
                return
            writer.write(
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
                b"Transfer-Encoding: chunked\r\n\r\n"
            )
            if path.startswith(b"/api/v1/nodes"):
                await _send(writer, map(node_line, range(self._num_nodes)))
                await _send(writer, [end_of_list(b"Node", self._version)])
                await asyncio.Event().wait()
            await _send(writer, self._pods())
            await _send(writer, [end_of_list(b"Pod", self._version)])
            await self._change(writer)
        except (ConnectionError, asyncio.IncompleteReadError):
            pass  # the reader has gone
        finally:
            writer.close()

    async def _list_metadata(self, writer: asyncio.StreamWriter, path: bytes) -> None:
        """Answer with one page of metadata; the token of the next one is where it begins."""
        query = {key: value[0] for key, value in parse_qs(urlsplit(path).query).items()}
        begin, size = int(query.get(b"continue", b"0")), int(query[b"limit"])
        of_pods = path.startswith(b"/api/v1/pods")
        count = self._num_pods if of_pods else self._num_nodes
        end = min(begin + size, count)
        if of_pods:
            items = [self._metadata(index) for index in range(begin, end)]
        else:
            items = [b'{"metadata":%b}' % _node_metadata(index) for index in range(begin, end)]
        body = b'{"metadata":{"resourceVersion":"%d","continue":"%b"},"items":[%b]}' % (
            self._version,
            b"%d" % end if end < count else b"",
            b",".join(items),
        )
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n")
        writer.write(b"Content-Length: %d\r\n\r\n" % len(body))
        writer.write(body)
        await writer.drain()

    def _metadata(self, index: int) -> bytes:
        line = pod_line(b"ADDED", index, self._num_nodes, self._num_nodes + index + 1)
        metadata = line[line.index(b'"metadata":') : line.index(b',"spec":')]
        return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1",%b}' % metadata

    def _pods(self) -> Iterator[bytes]:
        for index in range(self._num_pods):
            yield pod_line(b"ADDED", index, self._num_nodes, self._num_nodes + index + 1)

    async def _change(self, writer: asyncio.StreamWriter) -> None:
        """Send changes of pods, one after the other, at the rate."""
        if not self._rate or not self._num_pods:
            await asyncio.Event().wait()
        begun_s = time.monotonic()
        sent = 0
        while True:
            await asyncio.sleep(_TICK_S)
            due = int((time.monotonic() - begun_s) * self._rate)
            await _send(writer, [self._changed(number) for number in range(sent, due)])
            sent = due

    def _changed(self, number: int) -> bytes:
        self._version += 1
        # A stride, so that the changes are all over the nodes.
        index = number * 7919 % self._num_pods
        restarts = number // self._num_pods + 1
        return pod_line(b"MODIFIED", index, self._num_nodes, self._version, restarts)


async def _send(writer: asyncio.StreamWriter, lines: Iterator[bytes] | list[bytes]) -> None:
    waiting = iter(lines)
    while batch := b"".join(itertools.islice(waiting, _BATCH)):
        writer.write(b"%x\r\n%b\r\n" % (len(batch), batch))
        await writer.drain()


if __name__ == "__main__":
    import uvloop

    _port, *_sizes = map(int, sys.argv[1:])
    uvloop.run(ObjectServer(*_sizes).serve(_port))
