"""The command ``berth what-if``: asks the leader, or forecasts over a dump or over own lists."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cache.kept_annotations import MIRROR_ANNOTATION, keep_annotations
from scheduler.config import ConfigError, default_config, load_config, running_profiles
from scheduler.config.document import read_text
from scheduler.explain import ExplainError, read_objects, warn_left_out
from scheduler.insight.command import add_leader_flags, ask_leader
from scheduler.offline.cluster import Cluster
from scheduler.user_plugins.for_commands import (
    add_kept_annotations,
    add_plugin_dir,
    enabled_names,
    known_plugins,
)
from scheduler.user_plugins.profile_of_directory import with_plugins
from scheduler.what_if import (
    DEFAULT_CPU_S,
    QuestionError,
    decode_question,
    encode_question,
    forecast,
    forecast_json,
    objects_of_text,
)
from scheduler.what_if.question import MAX_BYTES
from scheduler.what_if.text_form import as_text

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from scheduler.config import SchedulerConfig
    from scheduler.what_if import Question

_FLAGS: Final = {
    "add": "--add",
    "config": "--config",
    "drain": "--drain",
    "podgroup": "--podgroup",
    "remove": "--remove",
    "replicas": "--replicas",
    "seed": "--seed",
}
"""The flag for each field of a question that has one."""

_LOCAL: Final = ("against", "plugin_dir", "keep_annotations", "cpu_seconds")
"""The flags with which this process forecasts: the leader has its own configuration and limits."""

_INVALID: Final = 422
"""The status of the leader's response to a question that has a mistake."""

_FIELD: Final = re.compile(r"(?P<name>\w+)(?:\[(?P<index>\d+)\])?(?P<rest>.*)", re.DOTALL)


def add_what_if_command(commands: Any) -> None:
    """Add the command ``what-if`` to the subparsers ``commands``."""
    parser = commands.add_parser(
        "what-if",
        help="forecast what new pods, drains, other nodes or another configuration would do",
        description="Forecast over a copy of the cluster: nothing is changed. The leader is asked "
        "through the API server, with your kubeconfig. The flags can be combined; docs/what-if.md "
        "says in which order they take effect, and who may ask what.",
    )
    parser.set_defaults(command=_what_if)
    _add_question_flags(parser)
    add_leader_flags(parser)
    parser.add_argument("-o", "--output", choices=("text", "json"), default="text")
    _add_own_flags(parser)


def _add_own_flags(parser: argparse.ArgumentParser) -> None:
    own = parser.add_argument_group("without the leader")
    own.add_argument(
        "--from",
        dest="dumps",
        metavar="F",
        action="append",
        help="forecast over what kubectl get nodes,pods,... -A -o json printed (- for stdin); may "
        "be repeated",
    )
    own.add_argument(
        "--lists", action="store_true", help="forecast over the cluster as you may list it"
    )
    own.add_argument(
        "--against", metavar="OLD", help="the configuration in force (berth's default profile)"
    )
    add_plugin_dir(own)
    add_kept_annotations(own)
    own.add_argument(
        "--cpu-seconds",
        metavar="S",
        type=float,
        help=f"CPU time after which the rest is undecided ({DEFAULT_CPU_S})",
    )


def _add_question_flags(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--pod",
        metavar="FILE",
        action="append",
        default=[],
        help="create the pods, groups or workloads of a YAML or JSON file (- for stdin)",
    )
    parser.add_argument(
        "--replicas", metavar="N", type=int, help="how many of each pod, or of each group"
    )
    parser.add_argument("--podgroup", metavar="NS/NAME", help="place this waiting group of pods")
    for flag, what in (("drain", "drain these nodes"), ("remove", "remove these nodes")):
        parser.add_argument(
            f"--{flag}", metavar="NODE", nargs="+", action="extend", default=[], help=what
        )
    parser.add_argument(
        "--add", metavar="N", type=int, action="append", default=[], help="add N nodes"
    )
    parser.add_argument(
        "--like",
        metavar="NODE",
        action="append",
        default=[],
        help="the node that added nodes are copies of; one for each --add",
    )
    parser.add_argument(
        "--config", metavar="NEW", help="decide by this configuration, and show who would move"
    )
    parser.add_argument(
        "--pending", action="store_true", help="place the pending pods of the cluster first"
    )
    parser.add_argument(
        "--seed", metavar="N", type=int, default=0, help="breaks ties (%(default)s)"
    )


def _what_if(options: argparse.Namespace) -> int:
    if options.dumps and options.kubeconfig is not None:
        raise ExplainError("--from and --kubeconfig contradict each other")
    if options.dumps and options.lists:
        raise ExplainError("--from and --lists contradict each other")
    if "-" in options.pod and "-" in (options.dumps or ()):
        raise ExplainError("--pod and --from cannot both be the standard input")
    question, places = _question(options)
    try:
        if options.dumps or options.lists:
            text, as_json = _own_forecast(options, question)
        else:
            text, as_json = _leaders_forecast(options, question)
    except QuestionError as error:
        raise ExplainError(_told(error, places)) from error
    sys.stdout.write(as_json.decode() + "\n" if options.output == "json" else text)
    return 0


def _own_forecast(options: argparse.Namespace, question: Question) -> tuple[str, bytes]:
    """Return the forecast over a dump or lists, as text and as JSON."""
    keep_annotations([*options.keep_annotations, MIRROR_ANNOTATION])
    plugins = known_plugins(options.plugin_dir)
    if options.against is None:
        config = with_plugins(default_config(), enabled_names(options.plugin_dir, plugins))
    else:
        config = load_config(Path(options.against), plugins)
    profiles = running_profiles(config, plugins)
    _check_config(options.config, plugins, config)
    cluster = Cluster()
    objects = read_objects(tuple(options.dumps or ()), options.kubeconfig, limits=True)
    warn_left_out(map(str, cluster.add_all(objects)))
    cpu_s = DEFAULT_CPU_S if options.cpu_seconds is None else options.cpu_seconds
    found = forecast(cluster, profiles, question, plugins, cpu_s)
    return as_text(found), forecast_json(found)


def _leaders_forecast(options: argparse.Namespace, question: Question) -> tuple[str, bytes]:
    """Return the leader's forecast, as text and as JSON."""
    for name in _LOCAL:
        if getattr(options, name) not in (None, []):
            flag = f"--{name.replace('_', '-')}"
            why = "takes --lists or --from: the leader forecasts by its own configuration"
            raise ExplainError(f"{flag} {why}")
    try:
        body = ask_leader(options, "what-if", body=encode_question(question))
    except ExplainError as error:
        cause = error.__cause__
        if getattr(cause, "status", None) == _INVALID:
            path, _, why = str(cause).partition(": ")
            raise (QuestionError(path, why) if why else QuestionError("", path)) from error
        raise ExplainError(f"{error} (--lists forecasts over your own lists)") from error
    answer = msgspec.json.decode(body, type=dict[str, msgspec.Raw])
    text = msgspec.json.decode(answer.pop("text"), type=str)
    return text, msgspec.json.encode(answer)


def _check_config(path: str | None, plugins: Any, old: SchedulerConfig) -> None:
    """Report all mistakes of the new configuration with its file, and warn of extenders."""
    new = old if path is None else load_config(Path(path), plugins)
    if new.extenders:
        sys.stderr.write("berth: the extenders of the configuration are not called\n")


def _question(options: argparse.Namespace) -> tuple[Question, Sequence[str]]:
    """Return the question of the flags, and the place of each of its objects."""
    if len(options.add) != len(options.like):
        raise ExplainError("each --add needs a --like NODE: what the new nodes are like")
    objects: list[msgspec.Raw] = []
    places: list[str] = []
    try:
        for name in options.pod:
            source = "the standard input" if name == "-" else name
            for raw, place in objects_of_text(_text(name), source):
                objects.append(raw)
                places.append(place)
        data = {
            "objects": objects,
            "replicas": options.replicas,
            "podgroup": options.podgroup or "",
            "drain": options.drain,
            "add": [
                {"like": like, "count": count}
                for like, count in zip(options.like, options.add, strict=True)
            ],
            "remove": options.remove,
            "config": None if options.config is None else read_text(Path(options.config)),
            "pending": options.pending,
            "seed": options.seed,
        }
        return decode_question(msgspec.json.encode(data)), places
    except QuestionError as error:
        raise ExplainError(_told(error, places)) from error


def _text(name: str) -> str:
    if name != "-":
        return read_text(Path(name))
    raw = sys.stdin.buffer.read(MAX_BYTES + 1)
    if len(raw) > MAX_BYTES:
        raise ConfigError("", f"is larger than {MAX_BYTES} bytes", source="the standard input")
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        why = f"is not UTF-8 at byte {error.start}"
        raise ConfigError("", why, source="the standard input") from error


def _told(error: QuestionError, places: Sequence[str]) -> str:
    """Return an error in the words of the command line: files and flags, not fields."""
    found = _FIELD.fullmatch(error.path)
    if found is None:
        return str(error)
    name, index = found["name"], found["index"]
    if name == "objects" and index is not None and int(index) < len(places):
        rest = found["rest"].lstrip(".")
        return ": ".join(part for part in (places[int(index)], rest, error.why) if part)
    if name in _FLAGS:
        return f"{_FLAGS[name]}: {error.why}"
    return str(error)
