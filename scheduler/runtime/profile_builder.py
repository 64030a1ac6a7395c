"""Build a profile from its configuration: create plugins, decode and check arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from plugins.framework.args import ArgsError
from scheduler.config import ConfigError
from scheduler.config.config_error import item
from scheduler.decision.profile_origin import DEFAULT_ORIGIN
from scheduler.runtime.framework_runner import FrameworkRunner
from scheduler.runtime.plugin_handle import ProfileHandle
from scheduler.runtime.what_if import FrameworkWhatIf

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plugins.framework.handle import Handle, Services
    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile
    from scheduler.decision.profile_origin import PolicyOrigin
    from scheduler.extenders import ExtenderChain


def build_framework(
    profile: EffectiveProfile,
    path: str | int,
    plugins: Mapping[str, type[Plugin]],
    services: Services,
    policy: PolicyOrigin = DEFAULT_ORIGIN,
    extenders: ExtenderChain | None = None,
) -> FrameworkRunner:
    """Make one profile. Its plugins get `services`, and their profile's filters and extenders.

    Parameters
    ----------
    path
        Where the profile stands, for messages: its place in the file, or ``spec``.
    policy
        Where it comes from.
    extenders
        Asked beside its plugins.

    Raises
    ------
    ConfigError
        When a plugin's arguments cannot be used; names their path in the file.
    """
    where = item("profiles", path) if isinstance(path, int) else path
    lent = ProfileHandle(services, extenders)
    made: dict[str, Plugin] = {}
    for names in profile.points.values():
        for name in names:
            if name not in made:
                made[name] = _make(plugins[name], profile, where, lent)
    framework = FrameworkRunner(
        profile.scheduler_name,
        {point: tuple(made[name] for name in names) for point, names in profile.points.items()},
        profile.score_weights,
        profile.percentage_of_nodes_to_score,
        policy,
        extenders,
    )
    framework.effective = profile
    framework.what_if = FrameworkWhatIf(framework)
    lent.lend_filters(framework.what_if)
    return framework


def _make(cls: type[Plugin], profile: EffectiveProfile, where: str, handle: Handle) -> Plugin:
    raw = profile.args.get(cls.name)
    path = f"{where}.pluginConfig[{cls.name}].args"
    args: msgspec.Struct | None = None
    if cls.args_type is not None:
        try:
            args = msgspec.convert({} if raw is None else raw, cls.args_type)
        except msgspec.ValidationError as error:
            raise ConfigError(path, str(error)) from error
    elif raw is not None:
        raise ConfigError(path, f"{cls.name} takes no arguments")
    try:
        return cls(args, handle)
    except ArgsError as error:
        raise ConfigError(f"{path}.{error.path}" if error.path else path, error.why) from error
