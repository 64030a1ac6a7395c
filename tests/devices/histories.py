"""Every version of claims and pods, as one watch brought them.

A watch skips no version. A history that has lost one ends with an error, for lost evidence must not
look clean, unless it is allowed to: an API server that was started again knows no older versions.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, Final, Generic, NamedTuple, Protocol, TypeVar

import aiohttp

from tests.controlplane.api import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from concurrent.futures import Future

    from tests.controlplane.api import ApiClient
    from tests.controlplane.blocking_api import BlockingApi

CLAIMS_PATH: Final = "/apis/resource.k8s.io/v1/resourceclaims"
PODS_PATH: Final = "/api/v1/namespaces/default/pods"
FINALIZER: Final = "resource.kubernetes.io/delete-protection"

_PAUSE_S: Final = 0.05
_GONE: Final = 410
_WHILE_IT_STARTS: Final = (429, 500, 503)
"""What an API server answers while its watch cache is not filled yet."""

Device = tuple[str, str]
"""Pool and name."""


class ClaimVersion(NamedTuple):
    """A claim from one resourceVersion on.

    Attributes
    ----------
    owner
        UID of the pod for which the claim was created.
    reserved
        UIDs of the pods for which it is reserved.
    is_gone
        Whether the claim was deleted at this version.
    """

    version: int
    uid: str
    name: str
    owner: str
    devices: tuple[Device, ...]
    is_allocated: bool
    reserved: tuple[str, ...]
    has_finalizer: bool
    is_gone: bool = False


class PodVersion(NamedTuple):
    """A pod from one resourceVersion on."""

    version: int
    uid: str
    name: str
    scheduler: str
    node: str
    is_gone: bool = False


class _Version(Protocol):
    @property
    def version(self) -> int: ...
    @property
    def uid(self) -> str: ...
    @property
    def is_gone(self) -> bool: ...


V = TypeVar("V", bound=_Version)


def claim_version(claim: Mapping[str, Any], *, is_gone: bool = False) -> ClaimVersion:
    """Return what matters of a claim."""
    metadata, status = claim["metadata"], claim.get("status") or {}
    owners = metadata.get("ownerReferences") or [{"uid": ""}]
    allocation = status.get("allocation")
    results = [] if allocation is None else allocation.get("devices", {}).get("results", ())
    return ClaimVersion(
        version=int(metadata["resourceVersion"]),
        uid=metadata["uid"],
        name=metadata["name"],
        owner=owners[0]["uid"],
        devices=() if is_gone else tuple((each["pool"], each["device"]) for each in results),
        is_allocated=allocation is not None and not is_gone,
        reserved=tuple(each["uid"] for each in status.get("reservedFor", ())),
        has_finalizer=FINALIZER in metadata.get("finalizers", ()),
        is_gone=is_gone,
    )


def pod_version(pod: Mapping[str, Any], *, is_gone: bool = False) -> PodVersion:
    """Return what matters of a pod."""
    metadata, spec = pod["metadata"], pod["spec"]
    return PodVersion(
        version=int(metadata["resourceVersion"]),
        uid=metadata["uid"],
        name=metadata["name"],
        scheduler=spec["schedulerName"],
        node=spec.get("nodeName", ""),
        is_gone=is_gone,
    )


class History(Generic[V]):
    """All versions of the objects of one collection, in the order of the API server.

    Parameters
    ----------
    path
        The collection.
    read
        Returns what is kept of an object.
    lists_again
        Whether versions may be missed while the API server is away.

    Attributes
    ----------
    versions
        All of them; of one resource they are in the order of their numbers.
    latest
        The last version of each object that exists, by UID.

    Notes
    -----
    *Concurrency*: written by the client's loop; other threads may read at any time, and see a
    prefix.
    """

    def __init__(self, path: str, read: Callable[..., V], *, lists_again: bool = False) -> None:
        self._path = path
        self._read = read
        self._lists_again = lists_again
        self.versions: list[V] = []
        self.latest: dict[str, V] = {}
        self._following: Future[None] | None = None

    def check(self) -> None:
        """Raise the error with which the watch has ended, if it has."""
        if self._following is not None and self._following.done():
            self._following.result()
            raise AssertionError(f"the watch of {self._path} has ended")

    @contextlib.contextmanager
    def following(self, api: BlockingApi) -> Iterator[None]:
        """Watch while the block lasts, which begins when the watch is open.

        Raises
        ------
        AssertionError
            At the end of the block: the watch has ended before.
        """
        items, version = api.run(api.client.list_with_version(self._path))
        for item in items:
            self._add(self._read(item))
        self._following = api.start(self._follow(api.client, version))
        try:
            yield
            self.check()
        finally:
            self._following.cancel()

    async def _follow(self, client: ApiClient, version: str) -> None:
        while True:
            events = client.watch(self._path, resource_version=version, allowWatchBookmarks="true")
            try:
                async with contextlib.aclosing(events):
                    async for event in events:
                        found = event["object"]
                        version = found["metadata"]["resourceVersion"]
                        if event["type"] != "BOOKMARK":
                            self._add(self._read(found, is_gone=event["type"] == "DELETED"))
            except (aiohttp.ClientError, TimeoutError):
                await asyncio.sleep(_PAUSE_S)
            except ApiError as error:
                if error.status == _GONE and self._lists_again:
                    version = await self._list_again(client)
                elif error.status not in _WHILE_IT_STARTS:
                    raise
                await asyncio.sleep(_PAUSE_S)

    async def _list_again(self, client: ApiClient) -> str:
        items, version = await client.list_with_version(self._path)
        found = [self._read(item) for item in items]
        uids = {each.uid for each in found}
        for uid in [uid for uid in self.latest if uid not in uids]:
            del self.latest[uid]
        for each in found:
            if self.latest.get(each.uid) != each:
                self._add(each)
        return version

    def _add(self, version: V) -> None:
        self.versions.append(version)
        if version.is_gone:
            self.latest.pop(version.uid, None)
        else:
            self.latest[version.uid] = version


def claim_history() -> History[ClaimVersion]:
    """Return a history of all claims."""
    return History(CLAIMS_PATH, claim_version)


def pod_history(*, lists_again: bool = False) -> History[PodVersion]:
    """Return a history of the pods of the default namespace."""
    return History(PODS_PATH, pod_version, lists_again=lists_again)
