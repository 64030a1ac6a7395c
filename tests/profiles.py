"""Running profiles for tests and benchmarks, made without what changes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from scheduler.runtime.profile_builder import build_framework
from scheduler.runtime.profile_map import Profiles

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plugins.framework.handle import Services
    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile


def build_profiles(
    effective: Sequence[EffectiveProfile], plugins: Mapping[str, type[Plugin]], services: Services
) -> Profiles:
    """Make every plugin of every profile once for that profile."""
    return Profiles(
        [
            build_framework(profile, index, plugins, services)
            for index, profile in enumerate(effective)
        ]
    )
