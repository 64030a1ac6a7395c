"""``python -m tests.parity.cel``: CEL selectors in berth and in kube-scheduler.

Each case is an expression and a device. Both sides say whether the device matches, or which error
they report; :func:`comparable` says which texts may differ.
"""

from __future__ import annotations

import argparse
import json
import random
import re
import sys
import time
from collections import Counter
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import msgspec

from cache.device_objects import DeviceAttribute
from tests.controlplane.binaries import find_or_build
from tests.parity.campaign import DifferenceError
from tests.parity.cel_cases import Node, devices, expressions, simpler
from tests.parity.cel_in_place import WORDS, sums_in_place
from tests.parity.processes import LineProcess

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from tests.parity.vocabulary import Json

CASES: Final = "cases"
PANIC: Final = "kube-scheduler panics"
IN_PLACE: Final = "differs because kube-scheduler's sums change the capacity"
BY_CHANCE: Final = "differs from run to run in kube-scheduler"

DEVICES: Final = 3
"""Devices that each expression is asked about."""

_BATCH = 60
_STEP = 5000
_ASKED_AGAIN = 40
_TRIED = 3000

_COST_LIMIT: Final = "operation cancelled: actual cost limit exceeded"
_NEAR_THE_LIMIT: Final = 300_000


def comparable(answer: Json) -> Json:
    """Return an answer without what may differ.

    A selector that does not compile cannot be stored, as the API server compiles it; of such a
    text both sides have to say that it does not compile, and whether that is for the type of its
    result. What is wrong with it, and where, kube-scheduler says in the words of its parser's
    generator. Errors of evaluation have the same text, but for those in which Go's runtime
    reports a fault of a library.
    """
    if PANIC in answer:
        return {PANIC: answer[PANIC]}
    if "compileError" in answer:
        text = answer["compileError"]
        return {"compileError": text if text.startswith("must evaluate to") else "does not compile"}
    if "error" in answer:
        error = answer["error"]
        return {"error": "internal error" if error.startswith("internal error: ") else error}
    return {"matches": answer["matches"]}


def same(theirs: Json, ours: Json) -> bool:
    """Report whether two answers are the same.

    Costs are counted in other steps: who is near the limit may be over it.
    """
    if PANIC in theirs or comparable(theirs) == comparable(ours):
        return True
    return ours.get("error") == _COST_LIMIT and theirs.get("cost", 0) > _NEAR_THE_LIMIT


def reached(answer: Json) -> str:
    """Return the kind of an answer, without what varies from case to case."""
    known = comparable(answer)
    if "matches" in known:
        return f"matches {known['matches']}"
    [(kind, text)] = known.items()
    return f"{kind}: {_VARYING.sub('_', text)}"[:100]


_VARYING: Final = re.compile(
    r"'[^']*'|\"[^\"]*\"|`[^`]*`|-?\d\S*|(?<=no such key: ).*|attribute \S+"
)


class Berth:
    """Berth's own CEL; it keeps the last program, as an expression is asked about in a row."""

    def __init__(self) -> None:
        self._cel: Any = import_module("plugins.cel")
        self._text: str | None = None
        self._program: Any = None

    def answer(self, question: Json) -> Json:
        """Return what berth says, in the oracle's form."""
        try:
            if question["expression"] != self._text:
                self._text = None
                self._program = self._cel.compile_expression(question["expression"])
                self._text = question["expression"]
            return {"matches": self._program.matches(self._view(question))}
        except self._cel.CompileError as error:
            return {"compileError": str(error)}
        except self._cel.EvaluationError as error:
            return {"error": str(error)}
        except Exception as error:  # noqa: BLE001 - a fault of the evaluator is a difference like any other
            return {"error": f"raised {type(error).__name__}: {error}"}

    def _view(self, question: Json) -> Any:
        attributes = msgspec.convert(question["attributes"], dict[str, DeviceAttribute])
        capacity = {name: value["value"] for name, value in question["capacity"].items()}
        allow = question.get("allowMultipleAllocations") or False
        return self._cel.DeviceView(question["driver"], attributes, capacity, allow)


@dataclass(frozen=True, slots=True)
class Difference:
    """A case on which the two sides disagree."""

    node: Node
    device: Json
    theirs: Json
    ours: Json

    def __str__(self) -> str:
        return (
            f"expression     {self.node}\ndevice         {json.dumps(self.device)}\n"
            f"kube-scheduler {json.dumps(self.theirs)}\nberth          {json.dumps(self.ours)}"
        )


class Cel:
    """kube-scheduler's CEL and berth's, asked the same."""

    def __enter__(self) -> Self:
        self._oracle = LineProcess("cel", [str(find_or_build(["cel"])["cel"])])
        self._berth = Berth()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._oracle.close()

    def differences(
        self, cases: Sequence[tuple[Node, Json]], counts: Counter[str]
    ) -> list[Difference]:
        """Return the cases on which the two disagree, and count what was reached.

        The program buffers what it has read and written, so some cases are under way at once.
        """
        found = []
        for start in range(0, len(cases), _BATCH):
            batch = cases[start : start + _BATCH]
            questions = [{**device, "expression": str(node)} for node, device in batch]
            self._oracle.send(b"".join(map(_line, questions)))
            ours = [self._berth.answer(question) for question in questions]
            for (node, device), question, our in zip(batch, questions, ours, strict=True):
                theirs = self._received(question)
                counts[CASES] += 1
                counts[reached(theirs)] += 1
                if not same(theirs, our):
                    found.append(Difference(node, device, theirs, our))
        return [
            each
            for each in found
            if not self._in_place(each, counts) and not self._by_chance(each, counts)
        ]

    def _received(self, question: Json) -> Json:
        answer = self._oracle.receive()
        if str(answer.get("failed")).startswith("panic: "):
            # The API server does not survive the compilation either: nobody can store the text.
            return {PANIC: answer["failed"]}
        if "failed" in answer:
            raise AssertionError(f"{answer['failed']}: {json.dumps(question)}")
        return answer

    def _in_place(self, difference: Difference, counts: Counter[str]) -> bool:
        """Report whether all that differs is that kube-scheduler's sums change their operands."""
        text = str(difference.node)
        if not any(word in text for word in WORDS):
            return False
        with sums_in_place():
            ours = Berth().answer({**difference.device, "expression": text})
        counts[IN_PLACE] += same(difference.theirs, ours)
        return same(difference.theirs, ours)

    def _by_chance(self, difference: Difference, counts: Counter[str]) -> bool:
        """Report whether kube-scheduler gives berth's answer, too: Go walks over maps anyhow."""
        question = {**difference.device, "expression": str(difference.node)}
        for _ in range(_ASKED_AGAIN):
            self._oracle.send(_line(question))
            if same(self._received(question), difference.ours):
                counts[BY_CHANCE] += 1
                return True
        return False

    def smallest(self, difference: Difference) -> Difference:
        """Return a difference that no single change makes smaller, or nearly so."""
        left = _TRIED
        candidates = simpler(difference.node)
        while left and (node := next(candidates, None)) is not None:
            left -= 1
            smaller = self.differences([(node, difference.device)], Counter())
            if smaller:
                difference = smaller[0]
                candidates = simpler(difference.node)
        for field in ("attributes", "capacity"):
            for name in list(difference.device[field]):
                rest = {key: its for key, its in difference.device[field].items() if key != name}
                device = {**difference.device, field: rest}
                smaller = self.differences([(difference.node, device)], Counter())
                difference = smaller[0] if smaller else difference
        return difference


def _line(question: Mapping[str, Any]) -> bytes:
    return json.dumps(question).encode() + b"\n"


def compare(
    cel: Cel,
    count: int,
    seed: int,
    progress: Callable[[int], None] = lambda done: None,
    most: int = 1,
) -> Counter[str]:
    """Compare at least ``count`` fresh cases; return what they reached, and how often.

    The same ``seed`` gives the same cases. The key ``CASES`` holds their number.

    Raises
    ------
    DifferenceError
        With the first ``most`` cases that differ, made smaller.
    """
    drawn = random.Random(seed)
    counts: Counter[str] = Counter()
    found: dict[str, Difference] = {}
    while counts[CASES] < count and len(found) < most:
        nodes = [expressions(drawn) for _ in range(_BATCH)]
        cases = [(node, devices(drawn)) for node in nodes for _ in range(DEVICES)]
        for difference in cel.differences(cases, counts):
            if len(found) < most:
                smallest = cel.smallest(difference)
                found.setdefault(str(smallest.node), smallest)
        progress(counts[CASES])
    if found:
        raise DifferenceError(f"seed {seed}\n" + "\n\n".join(map(str, found.values())))
    return counts


def main() -> int:
    """Compare, report, and return the exit status: 1 when anything differs."""
    parser = argparse.ArgumentParser(prog="python -m tests.parity.cel", description=__doc__)
    parser.add_argument("--cases", type=int, default=100_000, metavar="N")
    parser.add_argument("--seed", type=int, help="of an earlier run, to see the same cases")
    parser.add_argument("--most", type=int, default=10, help="differences to report (10)")
    options = parser.parse_args()
    seed = random.randrange(10**9) if options.seed is None else options.seed
    print(f"comparing {options.cases} cases of CEL, seed {seed}", flush=True)
    started, told = time.monotonic(), 0

    def progress(done: int) -> None:
        nonlocal told
        if done - told >= _STEP:
            told = done
            print(f"  {done} cases, {time.monotonic() - started:.0f} s", flush=True)

    try:
        with Cel() as cel:
            counts = compare(cel, options.cases, seed, progress, options.most)
    except DifferenceError as error:
        print(f"DIFFERENT\n{error}")
        return 1
    for kind, times in counts.most_common():
        print(f"  {times:7} {kind}")
    print(f"no difference in {counts[CASES]} cases, seed {seed}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
