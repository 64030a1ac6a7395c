"""The interface of the locks that guard shared state; the program passes in how to make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    MakeLock: TypeAlias = Callable[[], "Lock"]


class Lock(Protocol):
    """As :class:`threading.Lock`, which is what it is wherever threads are real."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Take it, waiting while another thread has it; return whether it was taken."""
        ...

    def release(self) -> None:
        """Give it back."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
