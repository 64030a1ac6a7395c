"""The lifecycle of the operator: start, wait for the first list, stop."""

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
"""How long scheduling waits at the start for the SchedulingProfiles of the cluster. After that, the
profiles of the file schedule the pods."""

_READ_S: Final = 10.0
"""Timeout for reading a ConfigMap."""

_WRITE_S: Final = 10.0


class CrdOperator:
    """Applies SchedulingProfiles and writes their status.

    Parameters
    ----------
    transport
        The connection to the API server for reads and for status writes, with the write fence.
    kubeconfig
        The kubeconfig file for kopf's own connections; None for the default locations.
    live
        Compiles and swaps profiles, and provides the thread for these changes.
    may_write
        Returns whether this process may write statuses: only the leader may.
    shadow_report
        Returns the results so far of a SchedulingProfile's shadow run, as plain data for its
        status; None if there are none. Called on the loop, must be quick.

    Notes
    -----
    *Concurrency*: loop-confined, and constructed on the loop.
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
        """Start to watch and to write. The thread on which profiles change must run already."""
        self.known.subscribe(self.writer.changed)
        self.watch.start()

    async def wait_first_list(self) -> None:
        """Wait up to `FIRST_LIST_S` until the existing SchedulingProfiles are applied.

        After that, they are applied while pods are being scheduled. If the first attempt to list
        them fails, this method returns without waiting.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(FIRST_LIST_S):
                await self.watch.first_list.wait()

    async def stop(self) -> None:
        """Stop watching and writing; the running profiles keep running."""
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
        """Read a ConfigMap; called on the policies thread."""
        future = asyncio.run_coroutine_threadsafe(self._get_config_map(name), self._loop)
        try:
            return future.result(_READ_S)
        finally:
            future.cancel()

    async def _get_config_map(self, name: str) -> Mapping[str, str] | None:
        namespace = segment(self._options.namespace)
        path = f"/api/v1/namespaces/{namespace}/configmaps/{segment(name)}"
        body = await self._transport.get(path, timeout_s=_READ_S)
        return None if body is None else read_answer(_CONFIG_MAP, body, "a ConfigMap").data or {}


class _ConfigMap(msgspec.Struct, frozen=True):
    data: dict[str, str] | None = None


_CONFIG_MAP: Final = msgspec.json.Decoder(_ConfigMap)
