"""The call of the API that patches an object or its status, as writers need it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping

    from scheduler.kinds import ResourceKind

T = TypeVar("T", bound=msgspec.Struct)


class PatchApi(Protocol):
    """Patch objects; raises ApiError unless that was done."""

    async def patch_object(
        self,
        kind: ResourceKind[T],
        namespace: str,
        name: str,
        patch: Mapping[str, Any],
        *,
        subresource: str = "",
        strategic: bool = False,
    ) -> T:
        """PATCH an object or its status."""
        ...
