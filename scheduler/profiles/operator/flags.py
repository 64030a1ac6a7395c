"""The flags of ``berth run`` for SchedulingProfiles."""

from __future__ import annotations

import argparse
import re
from typing import TYPE_CHECKING, Final

from scheduler.client.credential_search import own_namespace
from scheduler.profiles.operator.extender_limits import why_no_prefix
from scheduler.profiles.operator.options import OperatorOptions

if TYPE_CHECKING:
    from collections.abc import Mapping

_PAIR: Final = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_./]*)=([-A-Za-z0-9_.]*)")


def add_operator_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags for SchedulingProfiles to a parser."""
    group = parser.add_argument_group("live policies")
    group.add_argument(
        "--scheduling-profiles",
        action="store_true",
        help="apply the SchedulingProfiles of the cluster while running",
    )
    group.add_argument(
        "--scheduling-profiles-selector",
        metavar="LABEL=VALUE,...",
        type=_selector,
        default={},
        help="apply only SchedulingProfiles with these labels, if several Berths share a cluster",
    )
    group.add_argument(
        "--scheduling-profiles-names",
        metavar="NAME,...",
        type=_names,
        help="the schedulerNames that SchedulingProfiles may serve (default: any)",
    )
    group.add_argument(
        "--scheduling-profiles-extenders",
        metavar="URL,...",
        type=_urls,
        default=(),
        help="allowed URL prefixes of the extenders of SchedulingProfiles; without this flag they "
        "may not have extenders",
    )
    group.add_argument(
        "--allow-python-profiles",
        action="store_true",
        help="run Python code from ConfigMaps that SchedulingProfiles name: users who can write "
        "such a ConfigMap have all permissions of Berth",
    )
    group.add_argument(
        "--python-profiles-namespace",
        metavar="NAMESPACE",
        help="the namespace of these ConfigMaps (default: the namespace in which Berth runs)",
    )


def operator_options(options: argparse.Namespace) -> OperatorOptions:
    """Return the options of the operator from parsed flags."""
    return OperatorOptions(
        enabled=options.scheduling_profiles,
        allow_python=options.allow_python_profiles,
        namespace=options.python_profiles_namespace or own_namespace() or "",
        selector=options.scheduling_profiles_selector,
        scheduler_names=options.scheduling_profiles_names,
        extender_urls=options.scheduling_profiles_extenders,
    )


def _names(text: str) -> frozenset[str]:
    """Parse ``a,b``."""
    return frozenset(filter(None, map(str.strip, text.split(","))))


def _urls(text: str) -> tuple[str, ...]:
    """Parse ``https://a,https://b/c``."""
    urls = tuple(filter(None, map(str.strip, text.split(","))))
    for each in urls:
        if (why := why_no_prefix(each)) is not None:
            raise argparse.ArgumentTypeError(why)
    return urls


def _selector(text: str) -> Mapping[str, str]:
    """Parse ``a=b,c=d``."""
    labels = {}
    for pair in filter(None, text.split(",")):
        match = _PAIR.fullmatch(pair.strip())
        if match is None:
            raise argparse.ArgumentTypeError(f"{pair!r} is not LABEL=VALUE")
        labels[match[1]] = match[2]
    return labels
