"""Write the effective configuration as text, for people and for reading it back.

What is printed is again a KubeSchedulerConfiguration: every default is written out, each
extension point lists its plugins, and the defaults are switched off so that reading it gives the
same profiles. Ignored settings are listed in comments.

*Source*: kube-scheduler's ``--write-config-to`` for the idea, cmd/kube-scheduler/app (1.36).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
import yaml

from plugins import names
from plugins.framework.go_duration import GoDuration
from plugins.registry import PLUGINS
from scheduler.config.configuration import API_VERSION, KIND
from scheduler.config.document import resolve_word
from scheduler.config.effective_profile import effective_profiles
from scheduler.config.file_profile import ALL_PLUGINS, MULTI_POINT
from scheduler.config.ignored_fields import ignored_fields
from scheduler.config.plugin_sets import SCORE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plugins.framework.interfaces import Plugin
    from scheduler.config.configuration import SchedulerConfig
    from scheduler.config.effective_profile import EffectiveProfile
    from scheduler.config.extender import Extender

_SECRETS: Final = ("keyData",)
"""Fields of an extender's tlsConfig that are nobody's business."""


def render_effective(config: SchedulerConfig, plugins: Mapping[str, type[Plugin]] = PLUGINS) -> str:
    """Return YAML that ends in a newline. Private keys are left out.

    Parameters
    ----------
    config
        A checked configuration.
    plugins
        The plugins that exist, by name.

    Raises
    ------
    ConfigError
        As :func:`~scheduler.config.effective_profile.effective_profiles`.
    """
    profiles = effective_profiles(config, plugins)
    data: dict[str, Any] = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "leaderElection": _plain(config.leader_election),
        "clientConnection": _connection(config),
        "percentageOfNodesToScore": config.percentage_of_nodes_to_score,
        "podInitialBackoffSeconds": config.pod_initial_backoff_seconds,
        "podMaxBackoffSeconds": config.pod_max_backoff_seconds,
        "profiles": [_profile(profile, plugins) for profile in profiles],
    }
    if config.extenders:
        data["extenders"] = [_extender(extender) for extender in config.extenders]
    body = yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
    return _comments(config, plugins) + body


def _comments(config: SchedulerConfig, plugins: Mapping[str, type[Plugin]]) -> str:
    ignored = [line.replace("\n", " ") for line in ignored_fields(config, plugins)]
    if not ignored:
        return ""
    return "".join(["# accepted and ignored:\n", *(f"#   {line}\n" for line in ignored)])


def _connection(config: SchedulerConfig) -> dict[str, Any]:
    connection = config.client_connection
    shown: dict[str, Any] = {"kubeconfig": connection.kubeconfig}
    if connection.qps is not None:
        shown |= {"qps": connection.qps, "burst": connection.burst}
    return shown


def _profile(profile: EffectiveProfile, plugins: Mapping[str, type[Plugin]]) -> dict[str, Any]:
    points: dict[str, Any] = {MULTI_POINT: {"disabled": [{"name": ALL_PLUGINS}]}}
    for point, listed in profile.points.items():
        if listed:
            weights = profile.score_weights if point == SCORE else {}
            points[point] = {"enabled": [_entry(name, weights.get(name)) for name in listed]}
    runs = dict.fromkeys(name for listed in profile.points.values() for name in listed)
    return {
        "schedulerName": profile.scheduler_name,
        "percentageOfNodesToScore": profile.percentage_of_nodes_to_score,
        "plugins": points,
        "pluginConfig": [
            {"name": name, "args": _args(plugins[name], args_type, profile.args.get(name))}
            for name in sorted(runs)
            if (args_type := plugins[name].args_type) is not None
        ],
    }


def _entry(name: str, weight: int | None) -> dict[str, Any]:
    return {"name": name} if weight is None else {"name": name, "weight": weight}


def _args(
    plugin: type[Plugin], args_type: type[msgspec.Struct], given: msgspec.Struct | None
) -> dict[str, Any]:
    """Return the arguments with every default that the plugin's own struct knows of."""
    args: Any = args_type() if given is None else given
    complete = getattr(args, "defaulted", lambda: args)()
    shown: dict[str, Any] = _plain(complete)
    kind = (
        {"apiVersion": API_VERSION, "kind": f"{plugin.name}Args"}
        if plugin.name in names.IN_TREE
        else {}
    )
    return {**shown, **kind}


def _extender(extender: Extender) -> dict[str, Any]:
    shown: dict[str, Any] = _plain(extender)
    for secret in _SECRETS:
        (shown.get("tlsConfig") or {}).pop(secret, None)
    return shown


def _plain(value: msgspec.Struct) -> Any:
    """Return a struct as plain data without nulls; durations as Go writes them."""
    return _without_nulls(msgspec.to_builtins(value, enc_hook=_encode))


def _encode(value: object) -> object:
    if isinstance(value, GoDuration):
        return str(value)
    raise NotImplementedError(f"{type(value).__name__} has no plain form")


def _without_nulls(data: Any) -> Any:
    if isinstance(data, dict):
        return {key: _without_nulls(value) for key, value in data.items() if value is not None}
    if isinstance(data, (list, tuple)):
        return [_without_nulls(value) for value in data]
    return data


class _Dumper(yaml.SafeDumper):
    """Quotes what our reader would not take for text, and writes no aliases."""

    def ignore_aliases(self, data: Any) -> bool:
        """Tell that nothing is ever written as an alias."""
        return True

    def represent_text(self, text: str) -> yaml.ScalarNode:
        """Return a node that reads back as the same text."""
        style = None if isinstance(resolve_word(text), str) else "'"
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _Dumper.represent_text)
