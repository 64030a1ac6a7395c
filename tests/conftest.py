"""What every test gets."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

if TYPE_CHECKING:
    from collections.abc import Iterator

pytest_plugins = ["tests.controlplane.fixtures"]

# An example may take long on a busy machine; how long says nothing about the code.
settings.register_profile("berth", deadline=None)
settings.load_profile("berth")


def pytest_collection_finish() -> None:
    """Hide what was imported and collected from the garbage collector.

    A full collection looks at all of it otherwise, and an attempt's budget pays for that.
    """
    gc.freeze()


@pytest.fixture
def interpreter_as_it_is() -> Iterator[None]:
    """Put back what ``berth run`` sets for its process: other tests run in this one."""
    interval_s, threshold, callbacks = sys.getswitchinterval(), gc.get_threshold(), gc.callbacks[:]
    yield
    sys.setswitchinterval(interval_s)
    gc.set_threshold(*threshold)
    gc.callbacks[:] = callbacks
    gc.unfreeze()
