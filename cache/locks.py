"""The interface of the locks that guard shared state; the program passes in how to make them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import TracebackType

    MakeLock: TypeAlias = Callable[[], "Lock"]


class Lock(Protocol):
    """The interface of :class:`threading.Lock`, which implements it wherever threads are real."""

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        """Acquire the lock, waiting while another thread has it; return whether it was acquired."""
        ...

    def release(self) -> None:
        """Release the lock."""
        ...

    def __enter__(self) -> bool: ...

    def __exit__(
        self,
        exc_type: type[BaseException] | None,
        exc: BaseException | None,
        traceback: TracebackType | None,
        /,
    ) -> None: ...
