"""A call that takes too much memory is interrupted, and nobody else is."""

from __future__ import annotations

import asyncio
import random
import ssl
import subprocess
import sys
import textwrap
import threading
from typing import TYPE_CHECKING

import pytest

from scheduler.containment import Containment, ContainmentOptions, PluginCode
from scheduler.containment.memory_room import resident_bytes
from scheduler.containment.memory_watch import MemoryWatch, PluginMemoryError
from scheduler.containment.note import Note
from tests.scheduler.client.authority import Authority

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

ALLOWANCE = 128 << 20


class Calls:
    """Makes calls as a guard does."""

    def __init__(self, allowance_bytes: int = ALLOWANCE) -> None:
        self.note = Note(None)
        self._slot = self.note.enroll("Cheap", "digest")
        self.watch = MemoryWatch(self.note, allowance_bytes)

    def make(self, function: Callable[[], object]) -> object:
        """Return what came of a call; what it raised, if it raised."""
        before = self.note.begin(self._slot, 0)
        try:
            return self.watch.run(function)
        except Exception as error:  # noqa: BLE001 - whatever it is
            return error
        finally:
            self.note.end(before)


@pytest.fixture
def calls() -> Iterator[Calls]:
    """Calls that nobody watches but the test."""
    return Calls()


@pytest.fixture
def watched() -> Iterator[Calls]:
    made = Calls()
    made.watch.start()
    yield made
    made.watch.stop()


def without_end(size: int) -> Callable[[], object]:
    return lambda: [bytearray(size) for _ in iter(int, 1)]


def some_work() -> int:
    """Give an exception that is pending many chances to be raised."""
    return sum(abs(number) for number in range(20))


def seven() -> int:
    return 7


def fails() -> int:
    raise KeyError("rack")


def works() -> int:
    return some_work()


def swallows() -> int:
    try:
        return some_work()
    except MemoryError:
        return -1


def replaces() -> int:
    try:
        return some_work()
    except MemoryError as error:
        raise ValueError("something else") from error


FUNCTIONS = [seven, fails, works, swallows, replaces]


class FiresAt:
    """Interrupts the call under way when ``run`` comes to its n-th instruction, or what it calls.

    A tracer of the thread that makes the call: there is no place in between two instructions where
    another thread could come in and this could not.
    """

    def __init__(self, watch: MemoryWatch, at: int) -> None:
        self._watch = watch
        self._left = at
        self.fired = False

    def __call__(self, frame: FrameType, event: str, _: object) -> FiresAt:
        frame.f_trace_opcodes = True
        if event == "opcode":
            self._left -= 1
            if self._left == 0 and self._watch.call:
                self.fired = True
                self._watch.interrupt(self._watch.call)
        return self

    @property
    def is_over(self) -> bool:
        """Whether the call had fewer instructions."""
        return self._left > 0


@pytest.mark.parametrize("function", FUNCTIONS)
def test_no_exception_escapes_wherever_it_strikes(calls, function):
    tracer_before = sys.gettrace()
    struck = 0
    for at in range(1, 5000):
        tracer = FiresAt(calls.watch, at)
        sys.settrace(tracer)
        try:
            outcome = calls.make(function)
        finally:
            sys.settrace(tracer_before)
        some_work()
        assert calls.watch.call == 0
        if tracer.fired:
            struck += 1
            assert isinstance(outcome, PluginMemoryError)
        if tracer.is_over:
            break
    assert tracer.is_over
    assert struck > 5


def test_no_exception_escapes_however_often_another_thread_strikes(calls):
    stop = threading.Event()
    struck = 0

    def strike() -> None:
        nonlocal struck
        while not stop.is_set():
            number = calls.watch.call
            if number:
                struck += calls.watch.interrupt(number)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread = threading.Thread(target=strike)
    thread.start()
    chance = random.Random(7)
    failed = 0
    try:
        while struck < 300:
            function = chance.choice(FUNCTIONS)
            times = range(chance.randrange(200))
            outcome = calls.make(lambda: [function() for _ in times])  # noqa: B023 - called at once
            failed += isinstance(outcome, PluginMemoryError)
            assert calls.watch.call == 0
            some_work()
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert failed == struck


def test_a_call_is_interrupted_once(calls):
    again: list[bool] = []

    def interrupts() -> None:
        number = calls.watch.call
        try:
            calls.watch.interrupt(number)
            some_work()
        except PluginMemoryError:
            again.append(calls.watch.interrupt(number))

    assert isinstance(calls.make(interrupts), PluginMemoryError)
    assert again == [False]


def test_a_call_that_has_ended_is_not_interrupted(calls):
    numbers: list[int] = []
    calls.make(lambda: numbers.append(calls.watch.call))
    assert not calls.watch.interrupt(numbers[0])


def test_a_call_within_a_call_belongs_to_it(calls):
    outer: list[object] = []

    def interrupts() -> None:
        outer.append(calls.make(lambda: calls.watch.interrupt(calls.watch.call) and some_work()))

    assert isinstance(calls.make(interrupts), PluginMemoryError)
    assert calls.watch.call == 0


@pytest.mark.parametrize("size", [1 << 20, 64 << 10], ids=["mapped", "kept by the allocator"])
def test_however_often_it_allocates_the_process_stays_within_bounds(watched, size):
    before = resident_bytes()
    for _ in range(5):
        assert isinstance(watched.make(without_end(size)), PluginMemoryError)
        watched.watch.tidy()
    assert resident_bytes() - before < 2 * ALLOWANCE


def test_what_a_call_needs_it_gets(watched):
    assert watched.make(lambda: len(bytearray(ALLOWANCE // 2))) == ALLOWANCE // 2


def test_what_was_taken_between_calls_is_not_put_down_to_the_next(watched):
    watched.make(seven)
    kept = bytearray(2 * ALLOWANCE)
    for _ in range(100):
        assert watched.make(works) == works()
    assert len(kept) == 2 * ALLOWANCE


def test_other_threads_are_unharmed(watched, tmp_path):
    """They allocate, and talk TLS over a loop, while a plugin takes all that it can get."""
    stop = threading.Event()
    errors: list[BaseException] = []
    exchanged = 0
    authority = Authority(tmp_path)
    trust = ssl.create_default_context(cafile=str(authority.ca_file))
    trust.verify_flags &= ~ssl.VERIFY_X509_STRICT
    identity = authority.server_context()

    async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            writer.write(line)
        writer.close()

    async def talk() -> None:
        nonlocal exchanged
        server = await asyncio.start_server(echo, "127.0.0.1", 0, ssl=identity)
        port = server.sockets[0].getsockname()[1]
        line = b"x" * 50_000 + b"\n"
        try:
            while not stop.is_set():
                reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=trust)
                for _ in range(20):
                    writer.write(line)
                    assert await reader.readline() == line
                    exchanged += len(bytearray(4 << 20)) > 0
                writer.close()
                await writer.wait_closed()
        finally:
            server.close()

    def other() -> None:
        try:
            asyncio.run(talk())
        except BaseException as error:  # noqa: BLE001 - nothing at all may go wrong
            errors.append(error)

    thread = threading.Thread(target=other)
    thread.start()
    rounds = 0
    try:
        while (exchanged < 100 or rounds < 5) and not errors:
            rounds += 1
            assert isinstance(watched.make(without_end(1 << 20)), PluginMemoryError)
    finally:
        stop.set()
        thread.join()
    assert not errors


PROCESS = """
    import itertools, pathlib, sys, numpy as np
    from scheduler.containment import Containment, ContainmentOptions, PluginCode

    def swallows_it():
        kept = []
        while True:
            try:
                while True:
                    kept.append(bytearray(1 << 20))
            except MemoryError:
                pass

    def stays_in_c():
        np.ones(1 << 32, dtype=np.uint8)

    options = ContainmentOptions(memory_bytes=64 << 20, state_dir=pathlib.Path(sys.argv[1]))
    guard = Containment(options).guard(PluginCode("Cheap", "digest"))
    guard.call("Cheap", "filter", lambda: 1)
    guard.call("Cheap", "filter", globals()[sys.argv[2]])
"""


@pytest.mark.parametrize("how", ["swallows_it", "stays_in_c"])
def test_what_goes_on_all_the_same_ends_the_process_and_the_next_one_knows_why(tmp_path, how):
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PROCESS), str(tmp_path), how],
        timeout=300,
        check=False,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1, ended.stderr
    assert "takes more and more memory, ending the process" in ended.stdout + ended.stderr
    assert f"in {how}" in ended.stderr
    containment = Containment(ContainmentOptions(state_dir=tmp_path))
    containment.guard(PluginCode("Cheap", "digest"))
    assert containment.troubles() == {
        "Cheap": "is left out, and it is passed over: "
        "filter took more and more memory, interrupted or not"
    }
    containment.stop()
