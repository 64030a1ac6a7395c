"""Selectors of devices, evaluated once for each distinct expression and device.

Devices are distinct for an expression if they differ in what it reads; where that cannot be told
beforehand, if they differ at all.

*Source*: k8s.io/dynamic-resource-allocation 0.36, structured/internal/incubating,
allocator_incubating.go (selectorsMatch); cel/cache.go.
"""

from __future__ import annotations

import threading
from itertools import compress
from typing import TYPE_CHECKING, Final

from cache.byte_bounded import ByteBounded
from plugins.cel import CompileError, EvaluationError, compile_expression
from plugins.dynamic_resources.errors import AllocationError

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from cache.device_objects import DeviceSelector
    from plugins.cel import DeviceView
    from plugins.cel.program import Program
    from plugins.cel.reads import Projection
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

    __slots__ = ("_cache", "_program", "_projection", "_results", "bytes", "error", "expression")

    def __init__(self, expression: str, cache: SelectorCache) -> None:
        self.expression = expression
        self._cache = cache
        self._program: Program | None = None
        self._projection: Projection | None = None
        self._results: dict[Hashable, bool | str] = {}
        self.error: str | None = None
        self.bytes = _SELECTOR_BYTES + 4 * len(expression)
        try:
            self._program = compile_expression(expression)
            self._projection = self._program.projection
            self.bytes += self._program.bytes
        except CompileError as error:
            self.error = str(error)

    def evaluate(self, device: PooledDevice) -> bool | str:
        """Return whether a device matches, or the text of the error that the evaluation raised.

        *Cost*: a microsecond if a device that does not differ in what the expression reads was
        evaluated before.
        """
        key = self._key(device)
        result = self._results.get(key)
        return self._new_result(device, key) if result is None else result

    def results(self, devices: Iterable[PooledDevice]) -> list[bool | str]:
        """Return what :meth:`evaluate` does, for several devices."""
        found: list[bool | str] = []
        known, key_of = self._results, self._key
        for device in devices:
            key = key_of(device)
            result = known.get(key)
            found.append(self._new_result(device, key) if result is None else result)
        return found

    def _key(self, device: PooledDevice) -> Hashable:
        """Return a key that is equal for devices with equal results."""
        key: Hashable | None = None
        if self._projection is not None and device.is_well_formed:
            known = device.device
            key = self._projection.key(
                device.id.driver, device.is_shared, known.attributes, known.capacity
            )
        return device.view if key is None else key

    def _new_result(self, device: PooledDevice, key: Hashable) -> bool | str:
        result = self._results[key] = self._evaluate(device.view)
        weight = _RESULT_BYTES + _ATTRIBUTE_BYTES * self._entries(device, key)
        self.bytes += weight
        self._cache.grown(weight)
        return result

    def _entries(self, device: PooledDevice, key: Hashable) -> int:
        """Return how many attributes and capacities a key keeps alive."""
        if self._projection is not None and key is not device.view:
            return self._projection.size
        return len(device.device.attributes) + len(device.device.capacity)

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
            if result is False:
                return False
            if result is not True:
                raise self._error(index, result)
        return True

    def matching(self, devices: Sequence[PooledDevice]) -> Sequence[PooledDevice]:
        """Return the devices that match; on each, the first selector that is not true decides.

        Raises
        ------
        AllocationError
            When a selector cannot be compiled or fails.
        """
        for index, selector in enumerate(self._selectors):
            results = selector.results(devices)
            for result in results:
                if result is not True and result is not False:
                    raise self._error(index, result)
            devices = list(compress(devices, results))
        return devices

    def _error(self, index: int, result: str) -> AllocationError:
        kind = "runtime" if self._selectors[index].error is None else "compile"
        return AllocationError(f"{self._owner}: selector #{index}: CEL {kind} error: {result}")
