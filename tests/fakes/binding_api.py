"""An API server's side of binding, with answers written down beforehand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.client.errors import ApiError

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.objects import Pod


class FakeBindingApi:
    """Answers calls in order and remembers them.

    Parameters
    ----------
    binds
        For each POST, the error it fails with, or None when it is accepted.
    pods
        For each GET, the pod, None when there is none, or the error.
    """

    def __init__(
        self,
        binds: list[ApiError | None],
        pods: list[Pod | Exception | None] | None = None,
    ) -> None:
        self._binds = list(binds)
        self._pods = list(pods or [])
        self.bound_to: list[str] = []
        """The node of each POST."""
        self.asked = 0
        self.in_line: Callable[[], object] = lambda: None
        """Called while a POST waits for a connection."""

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
        self.in_line()
        if may_send is not None and not may_send():
            raise ApiError(None, "Withheld", "not sent")
        self.bound_to.append(node_name)
        answer = self._binds.pop(0)
        if answer is not None:
            raise answer

    async def get_pod(self, namespace: str, name: str) -> Pod | None:
        self.asked += 1
        answer = self._pods.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return answer
