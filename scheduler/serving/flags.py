"""Define the flags of ``berth run`` for its address, TLS and access: kube-scheduler's flags.

*Source*: k8s.io/apiserver pkg/server/options/{serving,authentication,authorization}.go (0.36).
"""

from __future__ import annotations

import argparse
from typing import Final

from plugins.framework.go_duration import parse_go_duration
from scheduler.serving.options import ServingOptions

_DEFAULTS: Final = ServingOptions()


def add_serving_flags(parser: argparse.ArgumentParser) -> None:
    """Add the flags."""
    group = parser.add_argument_group("serving")
    group.add_argument(
        "--bind-address",
        metavar="ADDRESS",
        default=_DEFAULTS.bind_address,
        help="the IP address of HTTPS: health, /metrics, debug pages (%(default)s)",
    )
    group.add_argument(
        "--secure-port",
        metavar="PORT",
        type=_port,
        default=_DEFAULTS.secure_port,
        help="the port of HTTPS (%(default)s; 0: none)",
    )
    group.add_argument(
        "--tls-cert-file",
        metavar="F",
        default="",
        help="the certificate, and any intermediate ones after it; without it one is made",
    )
    group.add_argument("--tls-private-key-file", metavar="F", default="", help="its key")
    group.add_argument(
        "--authorization-always-allow-paths",
        metavar="PATHS",
        type=_paths,
        default=_DEFAULTS.always_allowed_paths,
        help="paths that need no token, with commas between them; an asterisk at the end stands "
        f"for anything ({','.join(_DEFAULTS.always_allowed_paths)})",
    )
    for flag, what, default in (
        ("--authentication-token-webhook-cache-ttl", "a token", _DEFAULTS.token_ttl_s),
        ("--authorization-webhook-cache-authorized-ttl", "a right", _DEFAULTS.allowed_ttl_s),
        ("--authorization-webhook-cache-unauthorized-ttl", "a refusal", _DEFAULTS.refused_ttl_s),
    ):
        group.add_argument(
            flag,
            metavar="DURATION",
            type=_seconds,
            default=default,
            help=f"how long {what} is believed without asking again ({default:g}s)",
        )
    group.add_argument(
        "--insecure-bind-address",
        metavar="HOST:PORT",
        help="where everything is served to everybody in plain HTTP too; for local use",
    )


def serving_options(flags: argparse.Namespace) -> ServingOptions:
    """Return what the flags come to."""
    return ServingOptions(
        bind_address=flags.bind_address,
        secure_port=flags.secure_port or None,
        insecure_bind_address=flags.insecure_bind_address,
        tls_cert_file=flags.tls_cert_file,
        tls_private_key_file=flags.tls_private_key_file,
        always_allowed_paths=flags.authorization_always_allow_paths,
        token_ttl_s=flags.authentication_token_webhook_cache_ttl,
        allowed_ttl_s=flags.authorization_webhook_cache_authorized_ttl,
        refused_ttl_s=flags.authorization_webhook_cache_unauthorized_ttl,
    )


def _port(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) > 65_535:
        raise argparse.ArgumentTypeError(f"{text!r} is no port from 0 to 65535")
    return int(text)


def _paths(text: str) -> tuple[str, ...]:
    paths = tuple(path for path in text.split(",") if path)
    for path in paths:
        if not path.startswith("/") or "*" in path[:-1]:
            raise argparse.ArgumentTypeError(
                f"{path!r} is no path: it begins with a slash and has no asterisk but at its end"
            )
    return paths


def _seconds(text: str) -> float:
    try:
        seconds = parse_go_duration(text).seconds
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    if seconds < 0:
        raise argparse.ArgumentTypeError(f"{text!r} is less than nothing")
    return seconds
