"""What every test gets."""

from __future__ import annotations

import gc

from hypothesis import settings

pytest_plugins = ["tests.controlplane.fixtures"]

# An example may take long on a busy machine; how long says nothing about the code.
settings.register_profile("berth", deadline=None)
settings.load_profile("berth")


def pytest_collection_finish() -> None:
    """Hide what was imported and collected from the garbage collector.

    A full collection looks at all of it otherwise, and an attempt's budget pays for that.
    """
    gc.freeze()
