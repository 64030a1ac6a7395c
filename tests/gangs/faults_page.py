"""The page about gangs under faults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.text import Text

from tests.controlplane.failing_proxy import BINDS
from tests.devices.summary import promises_table, section, table, verdict
from tests.gangs.faulty_life import FAULTS, faults_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import RenderableType

    from tests.devices.promises import Promise
    from tests.gangs.faulty_life import Life


def page(life: Life, promises: Sequence[Promise]) -> RenderableType:
    """Return the page."""
    size = life.size
    return Group(
        Text.assemble(
            (f"\n{len(life.gangs)} gangs", "bold"),
            f" and {size.singles} single pods on nodes with {size.room:.2f} times their CPU; "
            f"{len(life.preemptors)} of the gangs have a high priority (seed {size.seed}).",
        ),
        section("What happened", _acts(life)),
        section("How binds failed between Berth and the API server", _faults(life)),
        section("What was promised", promises_table(promises)),
        verdict(promises),
    )


def _acts(life: Life) -> RenderableType:
    made = table(right=(0,))
    for what, at_s in life.acts:
        made.add_row(f"{at_s:.1f} s", what)
    return made


def _faults(life: Life) -> RenderableType:
    made = table(right=(1,))
    made.add_row("requests", str(life.requests.get(BINDS, 0)))
    counts = faults_of(life)
    for fault in FAULTS:
        made.add_row(fault.value, str(counts[fault]))
    return made
