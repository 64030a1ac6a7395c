"""The flags of ``berth run`` that are about SchedulingProfiles."""

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
    """Add the flags."""
    group = parser.add_argument_group("live policies")
    group.add_argument(
        "--scheduling-profiles",
        action="store_true",
        help="take over SchedulingProfiles of the cluster while running",
    )
    group.add_argument(
        "--scheduling-profiles-selector",
        metavar="LABEL=VALUE,...",
        type=_selector,
        default={},
        help="only those with these labels, where several berths share a cluster",
    )
    group.add_argument(
        "--scheduling-profiles-names",
        metavar="NAME,...",
        type=_names,
        help="the only schedulerNames that they may serve (any)",
    )
    group.add_argument(
        "--scheduling-profiles-extenders",
        metavar="URL,...",
        type=_urls,
        default=(),
        help="where their extenders may be: at one of these URLs or below it; without this "
        "flag they have none",
    )
    group.add_argument(
        "--allow-python-profiles",
        action="store_true",
        help="run Python that a SchedulingProfile names in a ConfigMap: whoever can write that "
        "ConfigMap has all rights that berth has",
    )
    group.add_argument(
        "--python-profiles-namespace",
        metavar="NAMESPACE",
        help="where such ConfigMaps have to be (the namespace that berth runs in)",
    )


def operator_options(options: argparse.Namespace) -> OperatorOptions:
    """Return what the flags say."""
    return OperatorOptions(
        enabled=options.scheduling_profiles,
        allow_python=options.allow_python_profiles,
        namespace=options.python_profiles_namespace or own_namespace() or "",
        selector=options.scheduling_profiles_selector,
        scheduler_names=options.scheduling_profiles_names,
        extender_urls=options.scheduling_profiles_extenders,
    )


def _names(text: str) -> frozenset[str]:
    """Read ``a,b``."""
    return frozenset(filter(None, map(str.strip, text.split(","))))


def _urls(text: str) -> tuple[str, ...]:
    """Read ``https://a,https://b/c``."""
    urls = tuple(filter(None, map(str.strip, text.split(","))))
    for each in urls:
        if (why := why_no_prefix(each)) is not None:
            raise argparse.ArgumentTypeError(why)
    return urls


def _selector(text: str) -> Mapping[str, str]:
    """Read ``a=b,c=d``."""
    labels = {}
    for pair in filter(None, text.split(",")):
        found = _PAIR.fullmatch(pair.strip())
        if found is None:
            raise argparse.ArgumentTypeError(f"{pair!r} is not LABEL=VALUE")
        labels[found[1]] = found[2]
    return labels
