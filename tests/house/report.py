"""The measures of checkouts side by side, for people."""

from __future__ import annotations

from collections.abc import Callable
from textwrap import fill
from typing import TYPE_CHECKING, Final, TypeAlias

from tests.house.measures import LONG, MAX_PARAMETERS, TOO_LONG

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from tests.house.measures import Floors, Measures, Way

WIDTH: Final = 100
_Row: TypeAlias = tuple[str, Callable[["Measures"], object]]


def _above(limit: int) -> Callable[[Measures], int]:
    return lambda house: sum(lines > limit for _, lines in house.long_functions)


def _size(package: str, what: str) -> Callable[[Measures], int]:
    return lambda house: getattr(house.sizes[package], what)


def _way(kind: str, what: str) -> Callable[[Measures], object]:
    def of(house: Measures) -> object:
        way = (house.ways or {}).get(kind)
        if way is None:
            return "-"
        return {"steps": len(way.calls), "rooms": len(way.rooms), "returns": way.returns}[what]

    return of


NEW: Final = "a new kind of pod"
LIKE: Final = "one more of the kind"

SECTIONS: Final[tuple[tuple[str, tuple[_Row, ...]], ...]] = (
    (
        "To read",
        (
            ("lines of code", _size("all", "code")),
            ("  of them in scheduler", _size("scheduler", "code")),
            ("lines of docstrings", _size("all", "docstrings")),
            ("all lines, comments and blanks too", _size("all", "lines")),
            ("files", _size("all", "files")),
            ("  of them in scheduler", _size("scheduler", "files")),
            ("mean file, lines", lambda house: f"{house.sizes['all'].mean_file:.0f}"),
            ("longest file, lines", lambda house: house.longest_file[1]),
            ("functions", lambda house: house.num_functions),
            (f"functions above {LONG} lines", _above(LONG)),
            (f"functions above {TOO_LONG} lines", _above(TOO_LONG)),
            ("most parameters of a constructor", lambda house: house.most_parameters),
            (f"constructors above {MAX_PARAMETERS} parameters", lambda h: len(h.constructors)),
        ),
    ),
    (
        "To find one's way in scheduler",
        (
            ("files at the top", lambda house: len(house.top_files)),
            ("folders, with the top", lambda house: len(house.folders)),
            ("rooms: folders, and files at the top", lambda house: house.num_rooms),
            ("floors", lambda house: len(house.floors.floors)),
            ("  by imports that are run", lambda house: len(house.runtime.floors)),
        ),
    ),
    (
        "Circles of rooms, in all three packages",
        (
            ("imports between files", lambda house: house.num_imports),
            ("  of them only for types", lambda house: house.num_imports_for_types),
            ("knots", lambda house: len(house.floors.knots)),
            ("  rooms in them", lambda house: sum(map(len, house.floors.knots))),
            ("  edges that run back", lambda house: len(house.floors.back)),
            ("knots by imports that are run", lambda house: len(house.runtime.knots)),
            ("  rooms in them", lambda house: sum(map(len, house.runtime.knots))),
            ("  edges that run back", lambda house: len(house.runtime.back)),
        ),
    ),
    (
        "One pod, from the watch to its binding",
        (
            ("steps from room to room", _way(NEW, "steps")),
            ("  rooms entered", _way(NEW, "rooms")),
            ("  returns to one of them", _way(NEW, "returns")),
            ("steps of one more pod of that kind", _way(LIKE, "steps")),
            ("  rooms entered", _way(LIKE, "rooms")),
            ("  returns to one of them", _way(LIKE, "returns")),
        ),
    ),
)


def as_text(houses: Sequence[Measures]) -> str:
    """Return a table of all houses, and then what each of them should be asked about."""
    lines = list(_table(houses))
    for house in houses:
        lines += ["", f"=== {house.name} ===", *_details(house)]
    return "\n".join(lines) + "\n"


def _table(houses: Sequence[Measures]) -> Iterator[str]:
    labels = [label for _, rows in SECTIONS for label, _ in rows]
    first = max(map(len, labels)) + 2
    widths = [max(len(house.name), 8) + 3 for house in houses]
    names = "".join(house.name.rjust(width) for house, width in zip(houses, widths, strict=True))
    yield (" " * first + names).rstrip()
    for title, rows in SECTIONS:
        yield ""
        yield title
        for label, value in rows:
            cells = (
                _shown(value(house)).rjust(width)
                for house, width in zip(houses, widths, strict=True)
            )
            yield f"  {label}".ljust(first) + "".join(cells)


def _shown(value: object) -> str:
    return f"{value:,}".replace(",", " ") if isinstance(value, int) else str(value)


def _details(house: Measures) -> Iterator[str]:
    yield from _circles("Circles of rooms, by all imports", house.floors)
    yield from _circles("Circles of rooms, by the imports that are run", house.runtime)
    yield from _floors(house.floors)
    yield from _named(f"Functions above {LONG} lines", house.long_functions)
    yield from _named(f"Constructors above {MAX_PARAMETERS} parameters", house.constructors)
    if house.ways is None:
        yield from ("", f"The way of a pod is not known: {house.why_no_ways}")
    for kind, way in (house.ways or {}).items():
        yield from _steps(kind, way)


def _circles(title: str, floors: Floors) -> Iterator[str]:
    yield ""
    if not floors.knots:
        yield f"{title}: none"
        return
    yield title
    for knot in floors.knots:
        yield _wrapped(f"{len(knot)} rooms: {', '.join(map(_short, knot))}", 2)
    for start, end, imports in floors.back:
        yield f"  {_short(start)} -> {_short(end)} runs back:"
        yield from (f"    {each}" for each in imports)


def _floors(floors: Floors) -> Iterator[str]:
    yield from ("", "Floors of scheduler, the highest first")
    for height, rooms in reversed(list(enumerate(floors.floors, 1))):
        yield _wrapped(f"{height:2}  {', '.join(map(_short, rooms))}", 2, 6)


def _named(title: str, named: Sequence[tuple[str, int]]) -> Iterator[str]:
    yield from ("", title if named else f"{title}: none")
    yield from (f"  {number:4}  {name}" for name, number in named)


def _steps(kind: str, way: Way) -> Iterator[str]:
    yield ""
    yield (
        f"The way of {kind}: {len(way.calls)} steps, {len(way.rooms)} rooms, {way.returns} returns"
    )
    steps = " ".join(f"{'>' if caller else '|'} {_short(room)}" for caller, room in way.calls)
    yield _wrapped(steps, 2)
    again = [f"{_short(room)} {times}" for room, times in way.rooms.items() if times > 1]
    if again:
        yield _wrapped(f"entered more than once: {', '.join(again)}", 2)
    yield "  (|: entered from no other room, but by a loop)"


def _short(room: str) -> str:
    return room.removeprefix("scheduler.")


def _wrapped(text: str, indent: int, further: int | None = None) -> str:
    further = indent if further is None else further
    return fill(
        text,
        WIDTH,
        initial_indent=" " * indent,
        subsequent_indent=" " * further,
        break_long_words=False,
        break_on_hyphens=False,
    )
