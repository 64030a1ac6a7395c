"""Runs tests with and without the mechanisms that they show, each in a process of its own.

The process that has collected the tests forks for each run, so that imports are paid once and no
run sees what another has left behind.
"""

from __future__ import annotations

import os
import select
import signal
from typing import TYPE_CHECKING, Final, NamedTuple

from _pytest.runner import runtestprotocol

from tests.faults.variants import without

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    import pytest

    from tests.faults.rows import Proof

MOST_S: Final = 600.0
"""A test that takes longer counts as one that does not end."""

PASSES: Final = "passes"
FAILS: Final = "fails"


class Proved(NamedTuple):
    """What came of a proof.

    Attributes
    ----------
    as_it_is, broken
        ``passes``, ``fails``, or what else happened, of Berth as it is and of its variant.
    """

    proof: Proof
    as_it_is: str
    broken: str

    @property
    def is_one(self) -> bool:
        """Whether the test passes, and fails where its mechanism is gone."""
        return (self.as_it_is, self.broken) == (PASSES, FAILS)


class Prover:
    """A plugin of pytest that proves in place of running all tests once.

    Attributes
    ----------
    missing
        How many proofs are none.
    """

    def __init__(self, proofs: Sequence[tuple[str, Proof]]) -> None:
        self._proofs = proofs
        self.missing = 0

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Prove each, and print what came of it."""
        capture = session.config.pluginmanager.getplugin("capturemanager")
        for key, proof in self._proofs:
            items = [item for item in session.items if _is_of(item.nodeid, proof.test)]
            proved = Proved(proof, _run(items, ""), _run(items, proof.variant))
            self.missing += not proved.is_one
            with capture.global_and_fixture_disabled():
                print(*_lines(key, proved), sep="\n", flush=True)
        return True


def _is_of(node_id: str, test: str) -> bool:
    return node_id == test or node_id.startswith((f"{test}[", f"{test}::"))


def _lines(key: str, proved: Proved) -> Iterator[str]:
    proof = proved.proof
    yield f"{key:4} {proof.test}"
    sign = "" if proved.is_one else "  <-- proves nothing"
    yield f"     {proved.as_it_is}; with {proof.variant}: {proved.broken}{sign}"


def _run(items: Sequence[pytest.Item], variant: str) -> str:
    """Return what becomes of tests under a variant, in another process."""
    reader, writer = os.pipe()
    pid = os.fork()
    if not pid:
        os.setsid()
        os.write(writer, _outcome(items, variant).encode())
        os._exit(0)
    os.close(writer)
    said = b"does not end"
    if select.select([reader], [], [], MOST_S)[0]:
        said = os.read(reader, 1000)
    else:
        os.killpg(pid, signal.SIGKILL)
    os.close(reader)
    os.waitpid(pid, 0)
    return said.decode() or "ends the process"


def _outcome(items: Sequence[pytest.Item], variant: str) -> str:
    if not items:
        return "is not there"
    with without(variant):
        for item, following in zip(items, [*items[1:], None], strict=True):
            for report in runtestprotocol(item, log=False, nextitem=following):
                if report.failed:
                    return FAILS if report.when == "call" else f"fails in its {report.when}"
                if report.skipped:
                    return "is skipped"
    return PASSES
