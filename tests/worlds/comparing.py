"""Where two plays of a world part."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.worlds.playing import Played


def first_difference(here: Played, there: Played) -> list[str]:
    """Return lines that say where two plays of a seed part first; none if they are equal."""
    nothing: tuple[str, tuple[str, ...]] = ("(no further step)", ())
    pairs = zip_longest(here.steps, there.steps, fillvalue=nothing)
    for number, ((step, writes), (other_step, other_writes)) in enumerate(pairs):
        if step != other_step:
            return [f"{number}: another history", *_both(step, other_step)]
        for ours, theirs in zip_longest(writes, other_writes, fillvalue="(nothing more)"):
            if ours != theirs:
                same = " (the step's writes are the same, in another order)"
                note = same if sorted(writes) == sorted(other_writes) else ""
                return [f"{number}: {step}{note}", *_both(ours, theirs)]
    for ours, theirs in zip_longest(here.placements, there.placements, fillvalue="(no pod)"):
        if ours != theirs:
            return ["in the end", *_both(ours, theirs)]
    if here.has_died != there.has_died:
        return ["the scheduling thread has died", *_both(str(here.has_died), str(there.has_died))]
    return []


def _both(here: str, there: str) -> tuple[str, str]:
    return f"  here:  {here}", f"  there: {there}"
