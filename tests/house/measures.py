"""What is measured of a checkout.

Length of a function: from ``def`` to its last line, with comments and blank lines, without its
decorators and its docstring. Parameters of a constructor: those of an ``__init__`` that is
written out, without ``self``. Rooms, and edges that run back: see :mod:`tests.house.imports` and
:mod:`tests.house.layering`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from tests.house.imports import imports_of, room_of, rooms_graph
from tests.house.layering import back_edges, floors_of, knots_of, without
from tests.house.source import PACKAGES, read_modules

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from tests.house.imports import Graph, Import
    from tests.house.source import Module

LONG: Final = 50
"""Lines: a function is meant to have no more."""

TOO_LONG: Final = 80
"""Lines: no function may have more."""

MAX_PARAMETERS: Final = 6
"""Of a constructor."""

TRACE_S: Final = 120.0
"""How long the way of a pod may take to be found out."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much there is to read."""

    code: int
    docstrings: int
    lines: int
    files: int

    @property
    def mean_file(self) -> float:
        """Lines of a file, all of them counted."""
        return self.lines / self.files if self.files else 0.0


@dataclass(frozen=True, slots=True)
class Floors:
    """How the rooms of the house stand upon each other.

    Parameters
    ----------
    knots
        Rooms that import each other in a circle.
    back
        The edges between rooms that run back, each with the imports that it consists of.
    floors
        The rooms of ``scheduler`` by their height, lowest first, when no edge runs back.
    """

    knots: list[list[str]]
    back: list[tuple[str, str, list[str]]]
    floors: list[list[str]]


@dataclass(frozen=True, slots=True)
class Way:
    """The way of one pod through the rooms of ``scheduler``, from the watch to its binding.

    Parameters
    ----------
    calls
        Each step: the room that calls, empty for the event loop, and the room that is entered.
    rooms
        How often each room was entered, in the order in which they were entered first.
    returns
        How often a room was entered that had been entered before.
    """

    calls: list[tuple[str, str]]
    rooms: dict[str, int]
    returns: int


@dataclass(frozen=True, slots=True)
class Measures:
    """Everything that is measured of one checkout.

    Parameters
    ----------
    sizes
        By package, and of all of them under ``all``.
    longest_file, long_functions, constructors
        Names with their lines or parameters; functions above :data:`LONG`, constructors above
        :data:`MAX_PARAMETERS`, most first.
    top_files
        Those that lie in no folder of ``scheduler``.
    folders
        Those of ``scheduler``, itself included.
    runtime
        Floors by the imports that are run; ``floors`` are those by all of them.
    ways
        By the kind of pod; None when the checkout cannot say.
    why_no_ways
        Why not.
    """

    name: str
    sizes: dict[str, Size]
    longest_file: tuple[str, int]
    num_functions: int
    long_functions: list[tuple[str, int]]
    most_parameters: int
    constructors: list[tuple[str, int]]
    top_files: list[str]
    folders: list[str]
    num_rooms: int
    num_imports: int
    num_imports_for_types: int
    floors: Floors
    runtime: Floors
    ways: dict[str, Way] | None
    why_no_ways: str = ""


def measure(root: Path, name: str, *, follow_pod: bool = True) -> Measures:
    """Measure a checkout."""
    modules = read_modules(root)
    imports = imports_of(modules)
    functions = [each for module in modules.values() for each in module.functions]
    lengths = [(f"{each.module}.{each.name}", each.lines) for each in functions]
    constructors = [
        (f"{each.module}.{each.name.removesuffix('.__init__')}", each.parameters - 1)
        for each in functions
        if each.name.endswith(".__init__")
    ]
    scheduler = _in("scheduler", modules)
    ways, why_not = _ways_of(root) if follow_pod else (None, "not asked for")
    return Measures(
        name=name,
        sizes={package: _size(_in(package, modules)) for package in PACKAGES}
        | {"all": _size(modules.values())},
        longest_file=_most([(each.name, each.num_lines) for each in modules.values()], -1)[0],
        num_functions=len(functions),
        long_functions=_most(lengths, LONG),
        most_parameters=max((number for _, number in constructors), default=0),
        constructors=_most(constructors, MAX_PARAMETERS),
        top_files=[each.name for each in scheduler if each.folder == "scheduler"],
        folders=sorted({each.folder for each in scheduler}),
        num_rooms=len({room_of(each) for each in scheduler}),
        num_imports=len(imports),
        num_imports_for_types=sum(each.only_for_types for each in imports),
        floors=_floors(modules, imports, types_too=True),
        runtime=_floors(modules, imports, types_too=False),
        ways=ways,
        why_no_ways=why_not,
    )


def way_of(calls: Sequence[tuple[str, str]]) -> Way:
    """Return the way that calls from room to room make."""
    rooms = Counter(room for _, room in calls)
    return Way(list(calls), dict(rooms), len(calls) - len(rooms))


def _in(package: str, modules: Mapping[str, Module]) -> list[Module]:
    return [each for name, each in modules.items() if name.partition(".")[0] == package]


def _size(modules: Iterable[Module]) -> Size:
    some = list(modules)
    return Size(
        code=sum(len(each.code_lines) for each in some),
        docstrings=sum(len(each.docstring_lines) for each in some),
        lines=sum(each.num_lines for each in some),
        files=len(some),
    )


def _most(named: Iterable[tuple[str, int]], above: int) -> list[tuple[str, int]]:
    return sorted((each for each in named if each[1] > above), key=lambda each: (-each[1], each))


def _floors(modules: Mapping[str, Module], imports: Iterable[Import], *, types_too: bool) -> Floors:
    counted = [each for each in imports if types_too or not each.only_for_types]
    graph = rooms_graph(modules, counted)
    between: dict[tuple[str, str], list[str]] = {}
    for each in counted:
        edge = (room_of(modules[each.importer]), room_of(modules[each.imported]))
        between.setdefault(edge, []).append(str(each))
    back = back_edges(graph, lambda start, end: len(between[start, end]))
    forth = without(graph, back)
    return Floors(
        knots=knots_of(graph),
        back=[(*edge, between[edge]) for edge in back],
        floors=floors_of(_of_scheduler(forth)),
    )


def _of_scheduler(graph: Graph) -> Graph:
    return {
        room: {other for other in others if other.startswith("scheduler")}
        for room, others in graph.items()
        if room.startswith("scheduler")
    }


def _ways_of(root: Path) -> tuple[dict[str, Way] | None, str]:
    """Return the ways of pods, or why they are not known: a world may be too old to be asked."""
    if not (root / "tests" / "regressions" / "world.py").exists():
        return None, "there is no tests/regressions/world.py"
    program = Path(__file__).with_name("one_pod.py")
    try:
        done = subprocess.run(
            [sys.executable, "-P", str(program), str(root)],
            cwd=root,
            env={"PYTHONPATH": str(root), "PYTHONDONTWRITEBYTECODE": "1"},
            capture_output=True,
            timeout=TRACE_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, f"it took more than {TRACE_S:g} s"
    if done.returncode:
        return None, done.stderr.decode(errors="replace").strip().rpartition("\n")[2]
    # Before it stands what the scheduler has logged.
    told = json.loads(done.stdout.splitlines()[-1])
    return {
        kind: way_of([(start, end) for start, end in calls]) for kind, calls in told.items()
    }, ""
