"""What every test gets."""

from __future__ import annotations

from hypothesis import settings

pytest_plugins = ["tests.controlplane.fixtures"]

# An example may take long on a busy machine; how long says nothing about the code.
settings.register_profile("berth", deadline=None)
settings.load_profile("berth")
