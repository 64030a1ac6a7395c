"""The command ``berth ui``: reads a dump or a cluster, and serves the page on loopback."""

from __future__ import annotations

import argparse
import asyncio
import signal
import socket
import sys
import time
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cache.kept_annotations import MIRROR_ANNOTATION, keep_annotations
from scheduler.client.credential_search import load_credentials
from scheduler.client.errors import ApiError
from scheduler.config import default_config, load_config, running_profiles
from scheduler.explain import ExplainError, add_dump_flag, read_objects
from scheduler.insight.command import add_leader_flags, leader_address
from scheduler.offline.live import list_pods
from scheduler.user_plugins.for_commands import add_kept_annotations, add_plugin_dir, known_plugins

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from scheduler.ui.desk import Desk
    from scheduler.ui.leader_sources import LeaderSources
    from scheduler.ui.listing import Listing, Policy
    from scheduler.ui.offline_sources import OfflineSources
    from scheduler.ui.pending_series import PendingSeries

_REFRESH_S: Final = 30
_HOST: Final = "127.0.0.1"


def add_ui_command(commands: Any) -> None:
    """Add the command ``ui`` to the subparsers ``commands``."""
    ui = commands.add_parser(
        "ui",
        help="show a cluster or a dump in a browser",
        description="Serve a page on loopback: pending pods by reason, one pod by node and plugin, "
        "the nodes as a map, decisions, policies and what-if. It asks the leader and lists with "
        "your own kubeconfig, and changes nothing.",
    )
    ui.set_defaults(command=_ui)
    ui.add_argument("--port", type=_port, default=0, metavar="N", help="port (any that is free)")
    add_leader_flags(ui, port_flag="--leader-port")
    ui.add_argument(
        "-n", "--namespace", metavar="NS", help="list the pods of this namespace, and nothing else"
    )
    ui.add_argument("--lists", action="store_true", help="list, and do not ask the leader")
    add_dump_flag(ui)
    ui.add_argument("--config", metavar="F", help="a KubeSchedulerConfiguration")
    add_plugin_dir(ui)
    add_kept_annotations(ui)
    ui.add_argument(
        "--refresh",
        type=_seconds,
        default=_REFRESH_S,
        metavar="S",
        help="list again when the page is used after S seconds (%(default)s)",
    )


def _port(text: str) -> int:
    if not (text.isascii() and text.isdigit() and int(text[:6]) < 65536):
        raise argparse.ArgumentTypeError(f"{text!r} is not a port: 0 to 65535")
    return int(text)


def _seconds(text: str) -> float:
    if not (text.isascii() and text.isdigit() and 1 <= int(text[:6]) <= 86_400):
        raise argparse.ArgumentTypeError(f"{text!r} is not a number of seconds from 1 to 86400")
    return float(text)


def _ui(options: argparse.Namespace) -> int:
    if options.dumps and options.kubeconfig is not None:
        raise ExplainError("--from and --kubeconfig contradict each other")
    if options.dumps and options.namespace is not None:
        raise ExplainError("--from and --namespace contradict each other")
    keep_annotations([*options.keep_annotations, MIRROR_ANNOTATION])
    policy = _policy(options)
    read = partial(_read, options, policy)
    sys.stderr.write("berth: reading ...\n")
    listing = read()
    with _bound_socket(options.port) as listener:
        asyncio.run(_serve(options, listener, listing, None if options.dumps else read))
    return 0


def _policy(options: argparse.Namespace) -> Policy:
    from scheduler.ui.listing import Policy  # noqa: PLC0415 - only this command needs it

    plugins = known_plugins(options.plugin_dir)
    if options.config is None:
        config, origin = default_config(), "berth's default profile"
    else:
        config, origin = load_config(Path(options.config), plugins), options.config
    return Policy(running_profiles(config, plugins), plugins, origin)


def _read(options: argparse.Namespace, policy: Policy) -> Listing:
    from scheduler.ui.listing import POLICY_KIND, Origin, listing_of  # noqa: PLC0415 - as above
    from scheduler.ui.live_policies import address_and_policies  # noqa: PLC0415 - as above

    dumps = options.dumps or ()
    if options.namespace is not None:
        listing = _one_namespace(options, policy)
    elif dumps:
        listing = listing_of(read_objects(dumps, None), policy)
    else:
        read_at_s = time.time()
        objects = read_objects((), options.kubeconfig)
        address, policies = asyncio.run(address_and_policies(options.kubeconfig))
        found = [*objects, *((raw, POLICY_KIND) for raw in policies)]
        listing = listing_of(found, policy, read_at_s, Origin(address))
    listing.prepare()
    return listing


def _one_namespace(options: argparse.Namespace, policy: Policy) -> Listing:
    from scheduler.ui.listing import Origin, listing_of  # noqa: PLC0415 - as above

    read_at_s = time.time()
    try:
        objects = asyncio.run(list_pods(options.kubeconfig, options.namespace))
    except ApiError as error:
        raise ExplainError(f"the namespace cannot be read: {error}") from error
    address = asyncio.run(load_credentials(options.kubeconfig)).base_url
    return listing_of(objects, policy, read_at_s, Origin(address, options.namespace))


def _bound_socket(port: int) -> socket.socket:
    try:
        return socket.create_server((_HOST, port))
    except OSError as error:
        raise ExplainError(f"port {port} on loopback: {error.strerror}") from error


async def _serve(
    options: argparse.Namespace,
    listener: socket.socket,
    listing: Listing,
    read: Callable[[], Listing] | None,
) -> None:
    # Templates and the server cost time at import, which no other command shall pay.
    from aiohttp import web  # noqa: PLC0415

    from scheduler.ui.desk import Desk  # noqa: PLC0415
    from scheduler.ui.guard import Guard  # noqa: PLC0415
    from scheduler.ui.offline_sources import OfflineSources  # noqa: PLC0415
    from scheduler.ui.pending_series import PendingSeries  # noqa: PLC0415
    from scheduler.ui.server import PageServer  # noqa: PLC0415

    desk: Desk = Desk(listing, read, options.refresh)
    own = OfflineSources(desk)
    port = listener.getsockname()[1]
    guard = Guard(port)
    title = ", ".join(options.dumps) if options.dumps else listing.origin.address
    series = None if options.dumps else PendingSeries()
    async with _leader(options, own) as leader, _watched(series, desk, leader):
        app = PageServer(desk, own, guard, title, leader, series).application()
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=1.0)
        await runner.setup()
        try:
            await web.SockSite(runner, listener).start()
            sys.stdout.write(f"http://{_HOST}:{port}/{guard.token}/\n")
            sys.stdout.flush()
            await _interrupted()
        finally:
            await runner.cleanup()
            desk.close()


@asynccontextmanager
async def _leader(
    options: argparse.Namespace, own: OfflineSources
) -> AsyncIterator[LeaderSources | None]:
    """Give what asks the leader; None for a dump, and with ``--lists``."""
    if options.dumps or options.lists:
        yield None
        return
    from scheduler.insight.leader_client import LeaderClient  # noqa: PLC0415 - as above
    from scheduler.ui.leader_sources import LeaderSources  # noqa: PLC0415 - as above

    credentials = await load_credentials(options.kubeconfig)
    client = LeaderClient(credentials, leader_address(options))
    try:
        yield LeaderSources(client, own, options.namespace or "")
    finally:
        await client.close()


@asynccontextmanager
async def _watched(
    series: PendingSeries | None, desk: Desk, leader: LeaderSources | None
) -> AsyncIterator[None]:
    """Count pending pods meanwhile."""
    if series is None:
        yield
        return
    from scheduler.ui.pending_watch import PendingWatch  # noqa: PLC0415 - as above

    watching = asyncio.create_task(PendingWatch(series, desk, leader).run())
    try:
        yield
    finally:
        watching.cancel()
        await asyncio.gather(watching, return_exceptions=True)


async def _interrupted() -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    await stop.wait()
