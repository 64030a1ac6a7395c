"""Serve the pages for administrators: configuration, cache, log level, pods' resources.

    GET  /configz               the effective configuration, as YAML that can be read back
    GET  /debug/cache           cache and queue, and the cache compared with the watches, as JSON
    GET  /debug/cache?tables    the size of each table of the process, as JSON
    GET  /debug/flags/v         the log level
    PUT  /debug/flags/v         sets it: debug, info, warning, error, or klog's number
    GET  /metrics/resources     what each pod requests and may use

*Source*: cmd/kube-scheduler/app/server.go and k8s.io/apiserver pkg/server/routes/flags.go (1.36).
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import msgspec
from aiohttp import hdrs, web

from scheduler.metrics.exposition import PLAIN_TYPE
from scheduler.metrics.pod_resources import pod_resources
from scheduler.process.log_setup import LEVELS, current_level, set_level
from scheduler.serving.server import Page

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from cache.objects import Pod
    from scheduler.debug.cache_debugger import CacheDebugger

_LONG_S = 60.0
"""For what takes seconds in a cluster of 150 000 pods."""

_DEBUG_FROM = 4
"""The number from which klog's lines are about single pods."""


def pages(
    configuration: Callable[[], str],
    debugger: CacheDebugger,
    pods: Callable[[], Sequence[Pod]],
    tables: Callable[[], Mapping[str, Mapping[str, int]]],
) -> list[Page]:
    """Return all of them.

    Parameters
    ----------
    configuration
        Gives the effective configuration.
    pods
        All pods that the watch knows.
    tables
        Gives the sizes of all tables; called on a thread.
    """
    rendering = asyncio.Lock()

    async def configz(_: web.Request) -> web.Response:
        return web.Response(
            text=await asyncio.to_thread(configuration), content_type="application/yaml"
        )

    async def cache(request: web.Request) -> web.Response:
        report: Mapping[str, object]
        if "tables" in request.query:
            async with rendering:
                report = await asyncio.to_thread(tables)
        else:
            report = await debugger.report()
        body = await asyncio.to_thread(msgspec.json.encode, report)
        return web.Response(body=body, content_type="application/json")

    async def resources(_: web.Request) -> web.Response:
        async with rendering:
            body = await asyncio.to_thread(pod_resources, pods())
        return web.Response(body=body, headers={hdrs.CONTENT_TYPE: PLAIN_TYPE})

    return [
        Page("GET", "/configz", configz),
        Page("GET", "/debug/cache", cache, _LONG_S),
        Page("GET", "/debug/flags/v", _level),
        Page("PUT", "/debug/flags/v", _change_level),
        Page("GET", "/metrics/resources", resources, _LONG_S),
    ]


async def _level(_: web.Request) -> web.Response:
    return web.Response(text=f"{current_level()}\n")


async def _change_level(request: web.Request) -> web.Response:
    wanted = (await request.text()).strip()
    if wanted.isascii() and wanted.isdigit():
        wanted = "debug" if int(wanted[:9]) >= _DEBUG_FROM else "info"
    if wanted not in LEVELS:
        return web.Response(
            status=400, text=f"a log level is one of {', '.join(LEVELS)}, or a number\n"
        )
    set_level(wanted)
    return web.Response(text=f"successfully set log level to {wanted}\n")
