"""berth on a real etcd and kube-apiserver, to be watched: ``make demo``."""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import io
import signal
import sys
import time
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from tests.controlplane.api import ApiError
from tests.controlplane.binaries import ControlPlaneError, find_or_build
from tests.controlplane.control_plane import ControlPlane
from tests.demo.display import Display
from tests.demo.play import DemoError, berth_address, create, follow, start_berth
from tests.demo.scene import NAMESPACE, POOL_LABEL, SPOT_TAINT, Scene, build_scene
from tests.demo.summary import render

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tests.controlplane.server_process import ServerProcess

INTERRUPTED = 130
"""What a shell says of a program that Ctrl-C ended."""

GRACE_S = 20.0
"""For berth to settle what is under way when it is told to stop; it gives itself 15."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the demo; 0 when all is as it should be, 1 when not, 130 after Ctrl-C."""
    parser = argparse.ArgumentParser(prog="make demo ARGS=", description=__doc__)
    parser.add_argument("--nodes", type=int, default=100, help="how many (%(default)s)")
    parser.add_argument("--pods", type=int, default=1000, help="for berth (%(default)s)")
    parser.add_argument("--keep", action="store_true", help="stay until Ctrl-C, to look around")
    options = parser.parse_args(arguments)
    try:
        scene = build_scene(options.nodes, options.pods)
    except ValueError as error:
        parser.error(str(error))
    console = _console()
    # To be ended is to be interrupted: everything is then put away as after Ctrl-C.
    # A shell that starts us in the background has it ignored; whoever sends it means it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: signal.raise_signal(signal.SIGINT))
    try:
        return _run(scene, console, keep=options.keep)
    except KeyboardInterrupt:
        console.print("\ninterrupted: everything is stopped and deleted")
        return INTERRUPTED
    except (ControlPlaneError, ApiError, DemoError, OSError) as error:
        console.print(Text(f"demo failed: {error}", style="bold red"))
        return 1


def _console() -> Console:
    # A terminal that cannot show a bar shall show a question mark, not a traceback.
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")
    # Into a file or a log, lines may be as long as they need to be.
    return Console() if sys.stdout.isatty() else Console(width=160)


def _run(scene: Scene, console: Console, *, keep: bool) -> int:
    find_or_build(["etcd", "kube-apiserver"])  # says on stderr what it does when it must build
    with ControlPlane(load=True, audit=False) as control_plane:
        console.print(
            f"etcd and kube-apiserver run; {len(scene.nodes)} nodes, {len(scene.pods)} pods\n"
        )
        display = Display(console)
        asyncio.run(create(control_plane, scene, display))
        berth = start_berth(control_plane)
        try:
            outcome = asyncio.run(follow(control_plane, scene, berth, display))
            with contextlib.suppress(KeyboardInterrupt):  # the way out: the verdict stands
                console.print()
                console.print(render(outcome))
                console.print(_how_to_look_around(control_plane, berth, keep=keep))
                if keep:
                    _wait_for_the_end(berth)
        except DemoError:
            console.print(Text(f"the end of berth's log:\n{berth.log_tail()}"))
            raise
        finally:
            berth.terminate(GRACE_S)
    return 1 if outcome.problems else 0


def _how_to_look_around(control_plane: ControlPlane, berth: ServerProcess, *, keep: bool) -> Text:
    if not keep:
        return Text("\nTo look around in it: make demo ARGS=--keep", style="bright_black")
    lines = [
        "",
        "Look around, from another terminal:",
        f"  export KUBECONFIG={control_plane.admin_kubeconfig}",
        f"  kubectl -n {NAMESPACE} get pods -o wide   # no kubelet runs them: all stay Pending",
        f"  kubectl -n {NAMESPACE} describe pod too-big",
        f"  kubectl -n {NAMESPACE} run mine --image=pause "
        """--overrides='{"spec":{"schedulerName":"berth"}}'""",
        f"  kubectl taint nodes -l {POOL_LABEL}=spot {SPOT_TAINT['key']}-   "
        "# no-toleration is bound then",
        f"  kubectl -n {NAMESPACE} patch pod gated --type=json "
        """-p '[{"op":"remove","path":"/spec/schedulingGates"}]'""",
        f"  curl http://{berth_address(berth)}/metrics",
        f"  tail -f {berth.log_file}",
        "",
        "Ctrl-C ends it and deletes everything.",
    ]
    return Text("\n".join(lines))


def _wait_for_the_end(berth: ServerProcess) -> None:
    """Wait for Ctrl-C; berth itself is not expected to end."""
    while berth.running:
        time.sleep(0.5)
    raise DemoError(f"berth ended with exit status {berth.exit_status}")


if __name__ == "__main__":
    sys.exit(main())
