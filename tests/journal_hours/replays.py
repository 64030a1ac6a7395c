"""What ``berth replay`` says of journals, and what is in them."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import msgspec

from scheduler.journal.forms import NODE, NOMINATED, POST_FILTERED
from scheduler.journal.frames import files_of, read_frames, read_header
from tests.journal_hours.policies import CODES, RUNNABLE, write_plugin

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

OTHER_CODE: Final = re.compile(r"profile \S+ (ran with other code of|needs plugins that)")

Json = dict[str, Any]


@dataclass(slots=True)
class Contents:
    """What is in a journal.

    Attributes
    ----------
    kinds
        Decisions by what became of them, and plans for groups by their verdict.
    by_code
        Decisions by the version of the plugin that the profile had; none for a profile without it.
    lost
        Records that are missing in gaps.
    """

    files: int = 0
    bytes: int = 0
    records: int = 0
    lost: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    by_code: Counter[str] = field(default_factory=Counter)

    @property
    def decisions(self) -> int:
        """Decisions about pods, and plans for groups."""
        return sum(self.by_code.values())


def contents_of(directory: Path) -> Contents:
    """Read all files of a journal."""
    contents = Contents()
    for path in files_of(directory) if directory.exists() else ():
        header = read_header(path)
        if header is None:
            continue
        contents.files += 1
        contents.bytes += path.stat().st_size
        contents.lost += header.lost
        codes: dict[tuple[int, str], str] = {}
        for records in read_frames(path):
            contents.records += len(records)
            for record in records:
                if record[0] == "config":
                    codes |= {(record[1], each["name"]): _code(each) for each in record[2]}
                elif record[0] in ("decision", "plan"):
                    name = codes.get((record[1][3], record[3]), "unknown")
                    contents.by_code[name] += 1
                    contents.kinds[_kind(record)] += 1
                elif record[0] == "victims":
                    contents.kinds[f"group preemption: {record[2][0]}"] += 1
    return contents


def _code(profile: Json) -> str:
    texts = [source[3] for source in profile["sources"].values()]
    names = [name for name, text in CODES.items() if text in texts]
    return names[0] if names else "no plugin" if not texts else "unknown"


def _kind(record: Sequence[Any]) -> str:
    if record[0] == "plan":
        return f"group: {record[8][0]}"
    form = record[6]
    kind = "late member" if record[4] is not None else "pod"
    if form[NODE]:
        return f"{kind}: placed"
    if form[NOMINATED]:
        return f"{kind}: refused, preempts"
    return (
        f"{kind}: refused, preemption does not help" if form[POST_FILTERED] else f"{kind}: refused"
    )


@dataclass(slots=True)
class Replayed:
    """What the command found, with each version of the plugin.

    Attributes
    ----------
    by_code
        The command's JSON by the version of the plugin that it was given.
    seconds
        How long the first of the commands took.
    """

    contents: Contents
    by_code: dict[str, Json] = field(default_factory=dict)
    seconds: float = 0.0

    @property
    def different(self) -> int:
        """Decisions that came out otherwise, with any version of the plugin."""
        return sum(found["different"] for found in self.by_code.values())

    @property
    def reordered(self) -> int:
        """Decisions that saw a change which arrived while they were made."""
        return max(found["reordered"] for found in self.by_code.values())

    def not_compared(self) -> Counter[str]:
        """Return why decisions were not compared, the most with one version of the plugin."""
        left: Counter[str] = Counter()
        for report in self.by_code.values():
            left |= _left_out(report)
        left["code of a plugin that is not here"] = self.contents.by_code["unknown"]
        return +left

    def problems(self) -> list[str]:
        """Return what must not be."""
        found = [
            f"{each['about']}: {each['then']} then, {each['now']} now; {each['others']}"
            for report in self.by_code.values()
            for each in report["differences"]
        ]
        for code, report in self.by_code.items():
            others = sum(self.contents.by_code[name] for name in RUNNABLE if name != code)
            # Some of those of another version are not compared for another reason as well.
            left_out = _left_out(report).total() + self.contents.by_code["unknown"]
            least = self.contents.decisions - others - left_out
            compared = report["equal"] + report["different"]
            if not least <= compared <= self.contents.decisions - others:
                found.append(
                    f"with the plugin {code!r}: {compared} of at least {least} compared: "
                    f"{report['notCompared']}"
                )
        return found


def _left_out(report: Json) -> Counter[str]:
    """Return why decisions were not compared, other than for another version of the plugin."""
    told = report["notCompared"].items()
    return Counter({why: count for why, count in told if not OTHER_CODE.match(why)})


def replay(journal: Path, plugins: Path) -> Replayed:
    """Run the command on a journal, once with each version of the plugin."""
    replayed = Replayed(contents_of(journal))
    for code in RUNNABLE:
        directory = plugins / code.replace(" ", "-")
        write_plugin(directory, code)
        began_s = time.monotonic()
        replayed.by_code[code] = _run(journal, directory)
        replayed.seconds = replayed.seconds or time.monotonic() - began_s
    return replayed


def _run(journal: Path, plugins: Path) -> Json:
    command = [sys.executable, "-m", "scheduler", "replay", str(journal), "-o", "json"]
    command += ["--plugin-dir", str(plugins)]
    done = subprocess.run(command, capture_output=True, text=True, env=os.environ, check=False)
    if done.returncode not in (0, 1) or not done.stdout:
        raise RuntimeError(f"berth replay {journal}: {done.returncode}\n{done.stderr}")
    report: Json = msgspec.json.decode(done.stdout)
    return report
