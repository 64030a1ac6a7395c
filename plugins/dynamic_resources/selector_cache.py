"""Selectors of devices, evaluated once for each distinct expression and device.

*Source*: k8s.io/dynamic-resource-allocation 0.36, structured/internal/incubating,
allocator_incubating.go (selectorsMatch); cel/cache.go.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Final

from cache.byte_bounded import ByteBounded
from plugins.cel import CompileError, EvaluationError, compile_expression
from plugins.dynamic_resources.errors import AllocationError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from cache.device_objects import DeviceSelector
    from plugins.cel import DeviceView, Program
    from plugins.dynamic_resources.pooled_device import PooledDevice

MAX_BYTES: Final = 1 << 28
"""256 MiB: the results of two expressions for 80 000 devices no two of which are equal.

Most of it are the devices, which are counted for each expression and live elsewhere as well as
long as they exist."""

_SELECTOR_BYTES: Final = 1024
"""A selector without its expression, its program and its results."""

_RESULT_BYTES: Final = 120
"""Estimate for an entry of a dictionary whose key lives elsewhere as long as the device does."""

_ATTRIBUTE_BYTES: Final = 300
"""Estimate for each attribute or capacity of a device, which a result may outlive."""

_PATIENCE: Final = 16
"""Selectors are weighed again after they have grown by this share of what they may weigh."""


class Selector:
    """A compiled expression with its results.

    Attributes
    ----------
    expression
        The expression.
    error
        Why it cannot be compiled; None when it can.
    bytes
        What the selector and its results weigh.

    Notes
    -----
    *Concurrency*: as :class:`SelectorCache`.
    """

    __slots__ = ("_cache", "_program", "_results", "bytes", "error", "expression")

    def __init__(self, expression: str, cache: SelectorCache) -> None:
        self.expression = expression
        self._cache = cache
        self._program: Program | None = None
        self._results: dict[DeviceView, bool | str] = {}
        self.error: str | None = None
        self.bytes = _SELECTOR_BYTES + 4 * len(expression)
        try:
            self._program = compile_expression(expression)
            self.bytes += self._program.bytes
        except CompileError as error:
            self.error = str(error)

    def evaluate(self, device: PooledDevice) -> bool | str:
        """Return whether a device matches, or the text of the error that the evaluation raised."""
        view = device.view
        result = self._results.get(view)
        if result is None:
            result = self._evaluate(view)
            self._results[view] = result
            entries = len(device.device.attributes) + len(device.device.capacity)
            weight = _RESULT_BYTES + _ATTRIBUTE_BYTES * entries
            self.bytes += weight
            self._cache.grown(weight)
        return result

    def _evaluate(self, view: DeviceView) -> bool | str:
        if self._program is None:
            return self.error or ""
        try:
            return self._program.matches(view)
        except EvaluationError as error:
            return str(error)


class SelectorCache:
    """The selectors in use, limited in bytes.

    Notes
    -----
    *Concurrency*: thread-safe; a result may be computed twice.

    *Cost*: of a result that is known, one lookup in a dictionary.
    """

    def __init__(self, max_bytes: int = MAX_BYTES) -> None:
        self._lock = threading.Lock()
        self._selectors: ByteBounded[str, Selector] = ByteBounded(
            max_bytes, lambda _, selector: selector.bytes
        )
        self._patience = max_bytes // _PATIENCE
        self._grown = 0

    def get(self, expression: str) -> Selector:
        """Return the selector of an expression."""
        with self._lock:
            known = self._selectors.get(expression)
        if known is None:
            known = Selector(expression, self)
            with self._lock:
                self._selectors.put(expression, known)
        return known

    def grown(self, weight: int) -> None:
        """Account for a new result; selectors that are least likely to be used again are dropped.

        *Cost*: now and then one pass over all selectors.
        """
        with self._lock:
            self._grown += weight
            if self._grown > self._patience:
                self._grown = 0
                self._selectors.weigh_again()

    @property
    def bytes(self) -> int:
        """What all selectors weighed when they were last weighed."""
        return self._selectors.bytes


class SelectorList:
    """The selectors of a class or of a request: a device must match all of them.

    Parameters
    ----------
    selectors
        All of them in CEL.
    owner
        The class or the claim, for errors.
    """

    __slots__ = ("_owner", "_selectors")

    def __init__(
        self, selectors: Sequence[DeviceSelector], owner: str, cache: SelectorCache
    ) -> None:
        self._owner = owner
        self._selectors = tuple(
            cache.get(selector.cel.expression if selector.cel is not None else "")
            for selector in selectors
        )

    def __iter__(self) -> Iterator[Selector]:
        return iter(self._selectors)

    def matches(self, device: PooledDevice) -> bool:
        """Return whether a device matches; the first selector that is not true decides.

        Raises
        ------
        AllocationError
            When a selector cannot be compiled or fails.
        """
        for index, selector in enumerate(self._selectors):
            result = selector.evaluate(device)
            if result is True:
                continue
            if result is False:
                return False
            kind = "runtime" if selector.error is None else "compile"
            raise AllocationError(f"{self._owner}: selector #{index}: CEL {kind} error: {result}")
        return True
