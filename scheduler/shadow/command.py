"""The command ``berth shadow report``: shadows of a cluster, or two files compared on a dump."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cache.kept_annotations import keep_annotations
from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError
from scheduler.client.paths import segment
from scheduler.client.transport import Transport
from scheduler.config import default_config, load_config, running_profiles
from scheduler.explain import ExplainError, add_dump_flag, read_objects, warn_left_out
from scheduler.offline.cluster import Cluster
from scheduler.process.version import VERSION
from scheduler.shadow.replay import Replay
from scheduler.shadow.report import ShadowReport
from scheduler.shadow.text_form import as_text
from scheduler.user_plugins.for_commands import add_kept_annotations, enabled_names, known_plugins
from scheduler.user_plugins.profile_of_directory import with_plugins

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.config import SchedulerConfig

PROFILES_PATH: Final = "/apis/scheduling.berth.dev/v1alpha1/schedulingprofiles"

DEFAULT: Final = "berth's default profile"

_DECISIONS: Final = 1000


def add_shadow_command(commands: Any) -> None:
    """Add the command ``shadow`` to the subparsers ``commands``."""
    shadow = commands.add_parser("shadow", help="compare another policy with the active one")
    verbs = shadow.add_subparsers(metavar="COMMAND", required=True)
    report = verbs.add_parser(
        "report",
        help="show the differences",
        description="Without --config: print the reports of a running Berth's shadows from the "
        "status of their SchedulingProfiles. With --config or --plugin-dir: judge the pods of a "
        "dump, or of a cluster, with these and with --against.",
    )
    report.set_defaults(command=_report)
    report.add_argument("name", metavar="NAME", nargs="?", help="one SchedulingProfile (all)")
    report.add_argument("--config", metavar="NEW", help="the new configuration file")
    report.add_argument(
        "--against", metavar="OLD", help="the current one (berth's default profile)"
    )
    report.add_argument(
        "--plugin-dir",
        metavar="DIR",
        type=Path,
        help="directory of Python files with plugins; without --config all of them are enabled",
    )
    add_dump_flag(report)
    add_kept_annotations(report)
    report.add_argument(
        "--decisions",
        metavar="N",
        type=int,
        default=_DECISIONS,
        help="largest number of pods to judge (%(default)s)",
    )
    report.add_argument("--kubeconfig", metavar="F", help="kubeconfig file of the cluster")
    report.add_argument("-o", "--output", choices=("text", "json"), default="text")


def _report(options: argparse.Namespace) -> int:
    if options.config is None and options.plugin_dir is None:
        given = {"--against": options.against, "--from": options.dumps}
        lonely = [name for name, value in given.items() if value is not None]
        if lonely:
            raise ExplainError(f"{lonely[0]} needs --config or --plugin-dir: what is to be tried")
        reports = _of_cluster(options.kubeconfig, options.name)
    else:
        reports = _of_files(options)
    if options.output == "json":
        text = "".join(f"{msgspec.json.encode(report).decode()}\n" for report in reports)
    else:
        text = "\n".join(as_text(report) for report in reports)
    sys.stdout.write(text)
    return 0


# --- two files --------------------------------------------------------------------------------


def _of_files(options: argparse.Namespace) -> list[ShadowReport]:
    if options.name is not None:
        raise ExplainError("NAME is for a running berth, --config and --plugin-dir are for a dump")
    if options.dumps and options.kubeconfig is not None:
        raise ExplainError("--from and --kubeconfig contradict each other")
    if options.decisions < 1:
        raise ExplainError(f"--decisions must be at least 1, not {options.decisions}")
    keep_annotations(options.keep_annotations)
    plugins = known_plugins(options.plugin_dir)
    old = _config(options.against, plugins)
    new = _config(options.config, plugins)
    if options.config is None:
        new = with_plugins(new, enabled_names(options.plugin_dir, plugins))
    cluster = Cluster()
    objects = read_objects(options.dumps or (), options.kubeconfig)
    warn_left_out(map(str, cluster.add_all(objects)))
    names = options.against or DEFAULT, options.config or f"{DEFAULT} with {options.plugin_dir}"
    profiles = running_profiles(old, plugins), running_profiles(new, plugins)
    replay = Replay(cluster, *profiles, names, plugins, options.decisions)
    if new.extenders or old.extenders:
        sys.stderr.write("berth: the extenders of the configuration were not called\n")
    reports = replay.run()
    if not cluster.nodes or not reports:
        found = f"{len(cluster.nodes)} nodes and {len(cluster.pods)} pods"
        raise ExplainError(f"there is nothing to compare: {found} were found")
    return reports


def _config(path: str | None, plugins: Mapping[str, type[Plugin]]) -> SchedulerConfig:
    return default_config() if path is None else load_config(Path(path), plugins)


# --- a running cluster ------------------------------------------------------------------------


class _Spec(msgspec.Struct, frozen=True):
    mode: str = "Active"


class _Status(msgspec.Struct, frozen=True):
    shadow: ShadowReport | None = None


class _Profile(msgspec.Struct, frozen=True):
    spec: _Spec = _Spec()
    status: _Status = _Status()


class _ProfileList(msgspec.Struct, frozen=True):
    items: tuple[_Profile, ...]


def _of_cluster(kubeconfig: str | None, name: str | None) -> list[ShadowReport]:
    try:
        profiles = asyncio.run(_read(kubeconfig, name))
    except ApiError as error:
        raise ExplainError(_why(error, name)) from error
    except (msgspec.DecodeError, ValueError) as error:
        raise ExplainError(f"the SchedulingProfiles cannot be read: {error}") from error
    reports = [each.status.shadow for each in profiles if each.status.shadow is not None]
    if not reports:
        raise ExplainError(_nothing(profiles, name))
    return reports


async def _read(kubeconfig: str | None, name: str | None) -> Sequence[_Profile]:
    credentials = await load_credentials(kubeconfig)
    transport = Transport(credentials, user_agent=f"berth/{VERSION} (shadow)")
    try:
        path = PROFILES_PATH if name is None else f"{PROFILES_PATH}/{segment(name)}"
        answer = await transport.request("GET", path)
        if name is None:
            return msgspec.json.decode(answer.body, type=_ProfileList).items
        return (msgspec.json.decode(answer.body, type=_Profile),)
    finally:
        await transport.close()


def _why(error: ApiError, name: str | None) -> str:
    if error.status != 404:
        return f"the SchedulingProfiles cannot be read: {error}"
    if name is None:
        return "the cluster has no SchedulingProfiles: their CustomResourceDefinition is missing"
    return f"there is no SchedulingProfile {name}"


def _nothing(profiles: Sequence[_Profile], name: str | None) -> str:
    if name is None:
        return f"none of {len(profiles)} SchedulingProfiles has run in the shadow"
    if profiles[0].spec.mode != "Shadow":
        return f"SchedulingProfile {name} has no report: its mode is {profiles[0].spec.mode}"
    return f"SchedulingProfile {name} has no report yet: no decision has been compared"
