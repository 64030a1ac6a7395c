"""The command ``berth explain``: explains a pod, or a group of pods, of a dump or a cluster."""

from __future__ import annotations

import asyncio
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from cache.label_selectors import EVERYTHING
from cache.pod_group_objects import GroupKey, GroupSource
from cache.resources import MalformedObjectError
from plugins.registry import PLUGINS
from scheduler.client.errors import ApiError
from scheduler.config import default_config, load_config, running_profiles
from scheduler.config.config_error import did_you_mean
from scheduler.explain.explanation import explain
from scheduler.explain.group_explanation import explain_group, waiting_members
from scheduler.explain.group_forms import group_json, group_text
from scheduler.explain.json_form import as_json
from scheduler.explain.pod_report import UnreadablePodError, as_if_pending, lacks_on, notes_on
from scheduler.explain.text_form import as_text
from scheduler.offline.cluster import Cluster, DumpError, read_dump
from scheduler.offline.live import list_cluster
from scheduler.offline.offline_framework import offline_framework
from scheduler.process.expected_error import ExpectedError
from scheduler.runtime.filter_outcome import PluginError
from scheduler.user_plugins.profile_of_directory import with_plugins

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Mapping, Sequence

    import msgspec

    from cache.label_selectors import Selector
    from cache.objects import Pod
    from plugins.framework.interfaces import Plugin
    from scheduler.config import EffectiveProfile

MAX_WARNINGS = 10


class ExplainError(ExpectedError):
    """The command cannot be carried out; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class ExplainOptions:
    """The options of the command line.

    Parameters
    ----------
    pod
        ``namespace/name``; a bare name is in the namespace ``default``. Empty for a group.
    pod_group
        The same for a group of pods; empty for a pod.
    dumps
        Files with objects, ``-`` for standard input. Without files a running cluster is read.
    kubeconfig
        The kubeconfig file of the cluster; None for the usual locations.
    config
        A KubeSchedulerConfiguration file; None for the default profile.
    as_json
        Whether the output is JSON.
    plugins
        The available plugins by name.
    enabled
        The plugins that run in addition to the default profile's if there is no configuration.
    node_selector
        The nodes that there are.
    """

    pod: str = ""
    pod_group: str = ""
    dumps: tuple[str, ...] = ()
    kubeconfig: str | None = None
    config: str | None = None
    as_json: bool = False
    plugins: Mapping[str, type[Plugin]] = field(default_factory=lambda: PLUGINS)
    enabled: tuple[str, ...] = ()
    node_selector: Selector = EVERYTHING


def run_explain(options: ExplainOptions) -> str:
    """Return the text to print.

    Objects that cannot be read are omitted, with a warning on standard error.

    Raises
    ------
    ExplainError, ConfigError, ClientConfigError
        One sentence each.
    """
    plugins = options.plugins
    if options.config is None:
        config = with_plugins(default_config(), options.enabled)
    else:
        config = load_config(Path(options.config), plugins)
    profiles = running_profiles(config, plugins)
    cluster = Cluster()
    warn_left_out(map(str, cluster.add_all(read_objects(options.dumps, options.kubeconfig))))
    cluster.keep_nodes(options.node_selector)
    if options.pod_group:
        return _explain_groups(cluster, profiles, options)
    pod = _find(cluster, options.pod)
    framework = offline_framework(profiles, cluster, pod.spec.scheduler_name, plugins)
    notes = notes_on(framework, pod)
    if config.extenders:
        notes.append("The extenders of the configuration were not called.")
    try:
        info = as_if_pending(cluster, pod)
        snapshot = cluster.snapshot()
        explanation = explain(framework, snapshot, info)
    except UnreadablePodError as error:
        raise ExplainError(str(error)) from error
    except PluginError as error:
        raise ExplainError(error.status.message) from error
    # Imported here: the other commands, which import this one, do not need it.
    from scheduler.relaxations import find_relaxations, relaxations_text  # noqa: PLC0415

    text = as_text(explanation, lacks_on(framework, snapshot, info))
    text += "".join(f"\n{note}\n" for note in notes)
    storage, node_name = cluster.known.storage, pod.spec.node_name
    relaxations = find_relaxations(framework, snapshot, storage, info, placed_on=node_name)
    if options.as_json:
        return as_json(explanation, relaxations).decode() + "\n"
    more = relaxations_text(relaxations)
    return f"{text}\n{more}" if more else text


def _find(cluster: Cluster, wanted: str) -> Pod:
    namespace, _, name = wanted.rpartition("/")
    key = f"{namespace or 'default'}/{name}"
    pod = cluster.pods.get(key)
    if pod is None:
        home = key.removesuffix(name)
        near = did_you_mean(
            name, (k.removeprefix(home) for k in cluster.pods if k.startswith(home))
        )
        raise ExplainError(f"there is no pod {key} among {len(cluster.pods)}{near}")
    return pod


def _explain_groups(
    cluster: Cluster, profiles: Sequence[EffectiveProfile], options: ExplainOptions
) -> str:
    """Return the text about a group; about both, if each API has one of that name."""
    texts = []
    for key in _find_groups(cluster, options.pod_group):
        try:
            members = waiting_members(cluster, key)
        except MalformedObjectError as error:
            raise ExplainError(f"a member of pod group {key} cannot be read: {error}") from error
        scheduler_name = members[0].pod.spec.scheduler_name if members else ""
        framework = offline_framework(profiles, cluster, scheduler_name, options.plugins)
        explanation = explain_group(framework, cluster, key, members)
        if options.as_json:
            texts.append(group_json(explanation).decode() + "\n")
        else:
            texts.append(group_text(explanation))
    return ("" if options.as_json else "\n").join(texts)


def _find_groups(cluster: Cluster, wanted: str) -> list[GroupKey]:
    namespace, _, name = wanted.rpartition("/")
    namespace = namespace or "default"
    groups = cluster.known.pod_groups
    keys = [GroupKey(namespace, name, source) for source in GroupSource]
    found = [key for key in keys if groups.report(key) is not None]
    if not found:
        known = groups.keys()
        near = did_you_mean(name, {key.name for key in known if key.namespace == namespace})
        why = f"there is no pod group {namespace}/{name} among {len(known)}{near}"
        raise ExplainError(why)
    return found


def add_dump_flag(parser: argparse.ArgumentParser) -> None:
    """Add the flag ``--from``, which names the files for :func:`read_objects`."""
    parser.add_argument(
        "--from",
        dest="dumps",
        metavar="F",
        action="append",
        help="what kubectl get nodes,pods,... -A -o json printed (- for stdin); may be repeated; "
        "without it the cluster is asked",
    )


def read_objects(
    dumps: Sequence[str], kubeconfig: str | None, *, limits: bool = False
) -> Iterable[tuple[msgspec.Raw, str]]:
    """Return the objects of files (``-`` for standard input), or of a cluster if no file is given.

    Parameters
    ----------
    limits
        Whether ResourceQuotas and LimitRanges of a cluster are listed as well.

    Raises
    ------
    ExplainError, ClientConfigError
        One sentence each.
    """
    if not dumps:
        try:
            return asyncio.run(list_cluster(kubeconfig, limits=limits))
        except ApiError as error:
            raise ExplainError(f"the cluster cannot be read: {error}") from error
    objects: list[tuple[msgspec.Raw, str]] = []
    for name in dumps:
        try:
            text = sys.stdin.buffer.read() if name == "-" else Path(name).read_bytes()
            objects += read_dump(text, "the standard input" if name == "-" else name)
        except OSError as error:
            raise ExplainError(f"{name} cannot be read: {error.strerror}") from error
        except DumpError as error:
            raise ExplainError(str(error)) from error
    return objects


def warn_left_out(sentences: Iterable[str]) -> None:
    """Print warnings about unreadable objects to standard error: the first few and the number."""
    listed = list(sentences)
    for sentence in listed[:MAX_WARNINGS]:
        sys.stderr.write(f"berth: left out: {sentence}\n")
    if len(listed) > MAX_WARNINGS:
        sys.stderr.write(f"berth: left out: {len(listed) - MAX_WARNINGS} more objects\n")
