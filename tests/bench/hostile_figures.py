"""The file of figures about hostile pods, and the page that is made of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from tests.bench.records import LatencyRound
from tests.bench.results import Session, put
from tests.bench.statistics_of import quantile
from tests.bench.tables import table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

PEER = "kube-scheduler"

_ORDINARY_MS = 5.0
"""What an attempt at an ordinary pod takes with its binding, if nothing stands in its way."""

NEVER_MS = 1e9
"""The time of a pod that was not bound."""


class Round(msgspec.Struct, frozen=True, kw_only=True):
    """One contender beside the objects of one spec.

    Attributes
    ----------
    contender
        ``kube-scheduler``, ``berth``, or ``berth@COMMIT`` of another checkout.
    behind_ms
        From the creation of each ordinary pod to its binding; infinite ones are left out.
    pods
        How many ordinary pods there were.
    limit_s
        Who was not bound so long after the last creation counts as not bound.
    attempts
        By result: how many attempts there were meanwhile and their mean in milliseconds, as the
        contender's metrics say; None when it did not answer.
    rss_mib, rss_after_mib
        Of the contender while the objects were there, and after they were deleted.
    recovered
        Whether a pod was bound soon after the objects were deleted.
    """

    spec: str
    about: str
    nodes: int
    contender: str
    commit: str
    session: int
    behind_ms: list[float]
    pods: int
    limit_s: float
    attempts: dict[str, tuple[int, float]] | None
    rss_mib: float
    rss_after_mib: float
    recovered: bool

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two rounds the same round."""
        return self.spec, self.nodes, self.contender

    @property
    def worst_ms(self) -> float:
        """The slowest of the ordinary pods; infinity when one was not bound."""
        if len(self.behind_ms) < self.pods:
            return float("inf")
        return max(self.behind_ms)

    @property
    def attempt_ms(self) -> float | None:
        """The mean of the attempts at the hostile pods, as far as they can be told apart."""
        if self.attempts is None:
            return None
        refused = [mean for result, (_, mean) in self.attempts.items() if result != "scheduled"]
        if refused:
            return max(refused)
        count, mean = self.attempts.get("scheduled", (0, 0.0))
        hostile = count - len(self.behind_ms)
        if hostile <= 0 or not self.behind_ms:
            return mean if count else None
        # Those at ordinary pods are taken off, each for no more than the quickest of them took.
        ordinary_ms = len(self.behind_ms) * min(*self.behind_ms, mean, _ORDINARY_MS)
        return (count * mean - ordinary_ms) / hostile


class Mixed(msgspec.Struct, frozen=True, kw_only=True):
    """One contender under a steady load beside many hostile objects.

    Attributes
    ----------
    scenario
        What stood there meanwhile.
    loop_lag_p99_ms
        Of berth's event loop, rounded up to a bound of its histogram.
    """

    scenario: str
    commit: str
    latency: LatencyRound
    loop_lag_p99_ms: float | None = None

    @property
    def session(self) -> int:
        """The number of the session."""
        return self.latency.session

    @property
    def key(self) -> tuple[Any, ...]:
        """What makes two rounds the same round."""
        return (self.scenario, *self.latency.key)


_SERIES = ("rounds", "mixed")


class Figures(msgspec.Struct):
    """Everything in one file."""

    sessions: list[Session] = []
    rounds: list[Round] = []
    mixed: list[Mixed] = []

    @classmethod
    def load(cls, path: Path) -> Figures:
        """Read the file; nothing where there is none."""
        return msgspec.json.decode(path.read_bytes(), type=cls) if path.exists() else cls()

    def save(self, path: Path) -> None:
        """Write the file, and the page beside it; a reader sees the old one or the new one."""
        path.parent.mkdir(parents=True, exist_ok=True)
        parts = [
            b'"%b": [\n%b\n]' % (name.encode(), b",\n".join(map(msgspec.json.encode, series)))
            for name, series in msgspec.structs.asdict(self).items()
        ]
        scratch = path.with_name(path.name + ".new")
        scratch.write_bytes(b"{\n%b\n}\n" % b",\n".join(parts))
        scratch.replace(path)
        path.with_suffix(".md").write_text(page(self), encoding="utf-8")

    def holds(self, series: str, key: tuple[Any, ...]) -> bool:
        """Whether there is a round with that key."""
        return any(each.key == key for each in getattr(self, series))

    def add(self, series: str, each: Any) -> None:
        """Add a round; one that is there with the same key makes way."""
        put(getattr(self, series), each)


def page(figures: Figures) -> str:
    """Return the page: the conditions, and a table of each kind."""
    parts = ["# Hostile pods", _INTRODUCTION, *_conditions(figures)]
    if figures.mixed:
        parts += ["## Under a steady load", _mixed(figures.mixed)]
    if figures.rounds:
        parts += ["## One spec at a time", _ONE_AT_A_TIME, _rounds(figures.rounds)]
    return "\n\n".join(parts) + "\n"


_INTRODUCTION = (
    "This page shows the effect of valid pods of one tenant on the others. Each spec is a function "
    "in `tests/hostile`; the real API server accepts all of them. `make hostile` measures what "
    "`hostile.json` does not contain yet."
)

_ONE_AT_A_TIME = (
    "Behind: the time from creation to binding of the slowest ordinary pod, while the objects of "
    "the spec exist; ordinary pods are created one after the other. Attempt: the mean duration of "
    "the attempts of pods that fit on no node, or of all attempts if all pods fit, by the "
    "contender's own metrics; \u2013 if it did not respond or made no attempt."
)


def _conditions(figures: Figures) -> Iterator[str]:
    used = sorted({each.session for name in _SERIES for each in getattr(figures, name)})
    lines: dict[str, None] = dict.fromkeys(
        f"- {session.cores} cores of {session.processor}, {session.memory_gib:.0f} GiB, Linux "
        f"{session.kernel}, {session.python}, kube-scheduler {session.versions['kube-scheduler']}"
        for session in (figures.sessions[number] for number in used)
    )
    commits = {
        each.commit for each in (*figures.rounds, *figures.mixed) if _contender(each) == "berth"
    }
    if commits:
        lines[f"- berth is that of the commits {', '.join(sorted(commits))}, as work went on"] = (
            None
        )
    if lines:
        yield "\n".join(lines)


def _contender(each: Round | Mixed) -> str:
    return each.contender if isinstance(each, Round) else each.latency.contender


def _ordered(names: Iterable[str]) -> list[str]:
    """Return contenders: older states of berth, berth, others."""
    return sorted(set(names), key=lambda name: (name == PEER, name == "berth", name))


def _time(ms: float | None) -> str:
    if ms is None:
        return "\u2013"
    if ms >= NEVER_MS:
        return "never"
    if ms >= 1000:
        return f"{ms / 1000:.1f} s"
    return f"{ms:.0f} ms" if ms >= 10 else f"{ms:.1f} ms"


def _behind(each: Round) -> str:
    if each.worst_ms == float("inf"):
        return f"> {each.limit_s:.0f} s"
    return _time(each.worst_ms)


def _rounds(rounds: list[Round]) -> str:
    names = _ordered(each.contender for each in rounds)
    by_spec: dict[str, dict[str, Round]] = {}
    for each in rounds:
        by_spec.setdefault(each.about, {})[each.contender] = each

    def cells(found: dict[str, Round]) -> Iterator[str]:
        for name in names:
            yield _behind(found[name]) if name in found else ""
        for name in names:
            yield _time(found[name].attempt_ms) if name in found else ""

    head = ["", *(f"behind, {name}" for name in names), *(f"attempt, {name}" for name in names)]
    return table(head, ([about, *cells(found)] for about, found in by_spec.items()))


def _mixed(mixed: list[Mixed]) -> str:
    groups: dict[tuple[str, int, str], list[Mixed]] = {}
    for each in mixed:
        key = (each.scenario, each.latency.rate, each.latency.contender)
        groups.setdefault(key, []).append(each)
    rows = []
    for (scenario, rate, name), found in sorted(groups.items()):
        latencies = [each.latency for each in found]
        lags = [each.loop_lag_p99_ms for each in found if each.loop_lag_p99_ms is not None]
        median = quantile(sorted(each.p99_ms for each in latencies), 0.5)
        rows.append(
            [
                scenario,
                name,
                str(rate),
                str(len(found)),
                f"{min(each.bound for each in latencies)} of {latencies[0].pods}",
                _time(quantile(sorted(each.p50_ms for each in latencies), 0.5)),
                _time(median),
                f"{_time(min(each.p99_ms for each in latencies))} to "
                f"{_time(max(each.p99_ms for each in latencies))}",
                _time(quantile(sorted(lags), 0.5)) if lags else "\u2013",
            ]
        )
    head = ("", "contender", "pods/s", "rounds", "bound, fewest", "p50", "p99, median",
            "p99, range", "loop lag p99")  # fmt: skip
    return table(head, rows)
