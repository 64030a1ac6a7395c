"""What a scheduler under measurement says of itself in its metrics."""

from __future__ import annotations

import ssl
import urllib.error
import urllib.request
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from tests.controlplane.metrics import metric_sum
from tests.controlplane.metrics import scrape as scrape_text

if TYPE_CHECKING:
    from tests.bench.contenders import Contender

_ATTEMPTS = "scheduler_scheduling_attempt_duration_seconds"
_GROUP_ATTEMPTS = "scheduler_podgroup_scheduling_attempt_duration_seconds"
_LAG = "berth_loop_lag_seconds"
_PATIENCE_S = 2.0


@dataclass(frozen=True)
class Scrape:
    """The sums that matter, since the start of the process.

    Attributes
    ----------
    attempts
        Count and seconds of attempts by result.
    lag
        Count of lags of the event loop up to each bound in seconds; of berth alone.
    """

    attempts: dict[str, tuple[float, float]] = field(default_factory=dict)
    lag: dict[float, float] = field(default_factory=dict)

    def attempts_since(self, before: Scrape) -> dict[str, tuple[int, float]]:
        """Return how many attempts there were since then by result, and their mean in ms."""
        found = {}
        for result, (count, seconds) in self.attempts.items():
            old_count, old_seconds = before.attempts.get(result, (0.0, 0.0))
            if count > old_count:
                mean_ms = (seconds - old_seconds) / (count - old_count) * 1e3
                found[result] = (int(count - old_count), round(mean_ms, 3))
        return found

    def lag_since(self, before: Scrape, share: float) -> float | None:
        """Return the bound in ms under which that share of the lags since then lie."""
        grown = {bound: count - before.lag.get(bound, 0.0) for bound, count in self.lag.items()}
        total = max(grown.values(), default=0.0)
        if not total:
            return None
        return min(bound for bound, count in grown.items() if count >= share * total) * 1e3


class GroupAttempts(NamedTuple):
    """Attempts for groups of pods since the start of a process."""

    count: int = 0
    mean_ms: float = 0.0


def group_attempts(contender: Contender) -> GroupAttempts:
    """Read the attempts for groups from the metrics of a contender that runs and serves them."""
    if not contender.metrics_address:
        return GroupAttempts()
    text = scrape_text(*contender.metrics_address)
    count = metric_sum(text, f"{_GROUP_ATTEMPTS}_count")
    seconds = metric_sum(text, f"{_GROUP_ATTEMPTS}_sum")
    return GroupAttempts(int(count), round(1e3 * seconds / max(count, 1), 3))


def scrape(port: int, *, https: bool) -> Scrape | None:
    """Read the metrics of a process on loopback; None when it does not answer in two seconds."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    opener = urllib.request.build_opener(
        urllib.request.ProxyHandler({}), urllib.request.HTTPSHandler(context=context)
    )
    scheme = "https" if https else "http"
    try:
        with opener.open(f"{scheme}://127.0.0.1:{port}/metrics", timeout=_PATIENCE_S) as answer:
            return parse(answer.read().decode())
    except OSError:  # an HTTPError is one, too
        return None


def parse(text: str) -> Scrape:
    """Read what is needed of an exposition."""
    found = Scrape()
    for line in text.splitlines():
        name, _, value = line.rpartition(" ")
        if name.startswith((f"{_ATTEMPTS}_count", f"{_ATTEMPTS}_sum")):
            result = _label(name, "result")
            count, seconds = found.attempts.get(result, (0.0, 0.0))
            if name.startswith(f"{_ATTEMPTS}_count"):
                count += float(value)
            else:
                seconds += float(value)
            found.attempts[result] = (count, seconds)
        elif name.startswith(f"{_LAG}_bucket"):
            bound = float(_label(name, "le").replace("+Inf", "inf"))
            found.lag[bound] = float(value)
    return found


def _label(name: str, label: str) -> str:
    return name.partition(f'{label}="')[2].partition('"')[0]
