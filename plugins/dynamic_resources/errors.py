"""Why devices could not be searched for on a node."""

from __future__ import annotations


class AllocationError(Exception):
    """The claims cannot be allocated because of an error; the text is kube-scheduler's."""


class InvalidPoolsError(AllocationError):
    """Nothing was found on a node that has invalid pools; other nodes may have devices."""

    def __init__(self) -> None:
        super().__init__("invalid resource pools were encountered")


class SearchTimeoutError(AllocationError):
    """The search on one node took too long."""

    def __init__(self) -> None:
        super().__init__("filter operation aborted: context deadline exceeded")


class SearchCancelledError(AllocationError):
    """Somebody has cancelled the search."""

    def __init__(self) -> None:
        super().__init__("filter operation aborted: context canceled")
