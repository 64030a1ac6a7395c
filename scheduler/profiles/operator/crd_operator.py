"""The operator as the app sees it: made, started, waited for at the start, stopped."""

from __future__ import annotations

import asyncio
import contextlib
import random
from typing import TYPE_CHECKING, Final

import msgspec

from scheduler.client.api import MERGE_PATCH
from scheduler.client.codec import read_answer
from scheduler.client.credential_search import load_credentials
from scheduler.client.paths import segment
from scheduler.profiles.operator.profile_watch import ProfileWatch
from scheduler.profiles.operator.reconciler import ProfileReconciler
from scheduler.profiles.operator.scheduling_profile import PATH
from scheduler.profiles.operator.status_writer import ProfileStatusWriter

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from scheduler.client.transport import Transport
    from scheduler.profiles.live_profiles import LiveProfiles
    from scheduler.profiles.operator.options import OperatorOptions

FIRST_LIST_S: Final = 5.0
"""How long pods wait at the start for the policies of the cluster; then the file's place them."""

_READ_S: Final = 10.0
"""How long a ConfigMap is waited for."""

_WRITE_S: Final = 10.0


class CrdOperator:
    """Takes SchedulingProfiles over, and writes into them what became of them.

    Parameters
    ----------
    transport
        The way to the API server for questions and statuses, behind its write fence.
    kubeconfig
        How to reach it; None for the usual places. kopf has connections of its own.
    live
        Who compiles and swaps, and the thread on which that happens.
    may_write
        Whether this process may write statuses: only the leader does.
    shadow_report
        What the shadow run of a SchedulingProfile has found so far, as plain data for its status;
        None when there is nothing. Asked from the loop, must be quick.

    Notes
    -----
    *Concurrency*: loop-confined, and made on the loop.
    """

    def __init__(
        self,
        transport: Transport,
        kubeconfig: str | None,
        live: LiveProfiles,
        options: OperatorOptions,
        may_write: Callable[[], bool],
        shadow_report: Callable[[str], Mapping[str, object] | None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._transport = transport
        self._options = options
        self.known = live.known
        self.writer = ProfileStatusWriter(self._write, live.known.status, may_write, shadow_report)
        self.watch = ProfileWatch(
            transport,
            lambda: load_credentials(options.kopf_kubeconfig or kubeconfig),
            ProfileReconciler(live.known, options, self._config_map),
            live.thread.do,
            random.Random(),
        )

    def start(self) -> None:
        """Begin to watch and to write. The thread on which profiles change runs already."""
        self.known.subscribe(self.writer.changed)
        self.watch.start()

    async def wait_first_list(self) -> None:
        """Wait until the SchedulingProfiles that are there are known, for a while.

        Afterwards they come while pods are being scheduled. Where there is no list to be had at
        the first attempt, it is not waited for.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LIST_S):
                await self.watch.first_list.wait()

    async def stop(self) -> None:
        """Stop watching and writing; the profiles that run go on."""
        await self.watch.stop()
        await self.writer.stop()

    # --- the API server -----------------------------------------------------------------------

    async def _write(self, name: str, subresource: str, patch: Mapping[str, Any]) -> None:
        below = f"/{subresource}" if subresource else ""
        await self._transport.request(
            "PATCH",
            f"{PATH}/{segment(name)}{below}",
            body=msgspec.json.encode(patch),
            content_type=MERGE_PATCH,
            timeout_s=_WRITE_S,
            discard_body=True,
        )

    def _config_map(self, name: str) -> Mapping[str, str] | None:
        """Ask for a ConfigMap, from the thread of the policies."""
        asked = asyncio.run_coroutine_threadsafe(self._get_config_map(name), self._loop)
        try:
            return asked.result(_READ_S)
        finally:
            asked.cancel()

    async def _get_config_map(self, name: str) -> Mapping[str, str] | None:
        namespace = segment(self._options.namespace)
        path = f"/api/v1/namespaces/{namespace}/configmaps/{segment(name)}"
        body = await self._transport.get(path, timeout_s=_READ_S)
        return None if body is None else read_answer(_CONFIG_MAP, body, "a ConfigMap").data or {}


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


_CONFIG_MAP: Final = msgspec.json.Decoder(_ConfigMap)
