"""Provide the version of berth."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def _installed() -> str:
    try:
        return version("berth")
    except PackageNotFoundError:
        return "0.0.0+source"


VERSION = _installed()
"""As the distribution's metadata says; ``0.0.0+source`` for a source tree not installed."""
