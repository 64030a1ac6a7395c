"""A simulated process: its clocks, its event loop, its threads, and what they meet at.

Threads are threads of the operating system of which exactly one runs at any time: each waits for
its baton, and hands it back where it waits, or where a seeded choice says that somebody else goes
on (at locks and clocks). The event loops of all processes, and all else, run on the main thread.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from queue import Empty
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from scheduler.process.ports import Clock
from scheduler.process.vital import watch_task
from tests.storm.sim_loop import SimLoop

if TYPE_CHECKING:
    import random
    from collections.abc import Callable, Coroutine

    from tests.storm.simulation import Runnable, Simulation

T = TypeVar("T")

EPOCH_S: Final = 1_767_225_600.0
"""When a simulation starts: 2026-01-01."""


class KilledError(BaseException):
    """The process has ended; ends its threads where they wait."""


class Machine:
    """One process, from its start to its end.

    Parameters
    ----------
    name
        In the trace.
    rate
        How fast its monotonic clock goes.

    Attributes
    ----------
    wall_offset_s
        How far its wall clock is off.
    resumed_s
        When it stood still the last time.
    deaths
        Threads and tasks that ended without being told to, and why.
    """

    def __init__(self, simulation: Simulation, name: str, *, rate: float = 1.0) -> None:
        self.simulation = simulation
        self.name = name
        self.rng = simulation.rng(name)
        self.wall_offset_s = 0.0
        self.resumed_s = -1.0
        self.deaths: list[tuple[str, BaseException]] = []
        self.on_death: Callable[[str, BaseException], None] = lambda name, error: None
        self.is_dead = False
        self._started_s = simulation.now_s
        self._base_s = 1_000.0 + self.rng.random() * 1e5
        self._rate = rate
        self._cpu_s = 0.0
        self._is_paused = False
        self._ready: list[Runnable] = []
        self.threads: list[SimThread] = []
        self.current: SimThread | None = None
        self.loop = SimLoop(self)
        self.clock = Clock(self.monotonic, self.wall, self.cpu)

    # --- clocks -------------------------------------------------------------------------------

    def monotonic(self) -> float:
        """Return seconds of a clock that only goes on; a thread may stop here."""
        if self.current is not None:
            self.pass_baton()
        return self.now()

    def now(self) -> float:
        """Return the same, for the loop."""
        return self._base_s + (self.simulation.now_s - self._started_s) * self._rate

    def wall(self) -> float:
        """Return seconds since the epoch."""
        return EPOCH_S + self.simulation.now_s + self.wall_offset_s

    def cpu(self) -> float:
        """Return the CPU seconds of a thread: each look takes a microsecond."""
        self._cpu_s += 1e-6
        return self._cpu_s

    def real_s(self, local_s: float) -> float:
        """Return the simulation's time at which the clock shows so many seconds."""
        return self._started_s + (local_s - self._base_s) / self._rate

    # --- who can go on ------------------------------------------------------------------------

    def ready(self, one: Runnable) -> None:
        """Let the loop or a thread go on when it is chosen."""
        if self.is_dead:
            return
        self._ready.append(one)
        if not self._is_paused:
            self.simulation.add(one)

    def unready(self, one: Runnable) -> None:
        """Choose it no more."""
        if one in self._ready:
            self._ready.remove(one)
            if not self._is_paused:
                self.simulation.remove(one)

    def pause(self) -> None:
        """Let nothing go on, as SIGSTOP does; time passes."""
        if not self._is_paused and not self.is_dead:
            self._is_paused = True
            for one in self._ready:
                self.simulation.remove(one)

    def resume(self) -> None:
        """Let everything go on."""
        if self._is_paused and not self.is_dead:
            self._is_paused = False
            self.resumed_s = self.simulation.now_s
            for one in self._ready:
                self.simulation.add(one)

    def kill(self) -> None:
        """End at once, as SIGKILL does."""
        self.pause()
        self.is_dead = True
        self._ready.clear()
        self.loop.dead = True
        for thread in self.threads:
            thread.kill()

    def died(self, name: str, error: BaseException) -> None:
        """Take in the end of a thread or task that should not end."""
        if self.is_dead or isinstance(error, KilledError):
            return
        self.deaths.append((name, error))
        self.on_death(name, error)

    def is_between_callbacks(self) -> bool:
        """Whether no thread has stopped in the middle of something."""
        return not any(isinstance(one, SimThread) and one.is_preempted for one in self._ready)

    # --- the baton ----------------------------------------------------------------------------

    def pass_baton(self) -> None:
        """Let somebody else go on, if the seed says so. Any thread."""
        simulation = self.simulation
        if simulation.interleave and simulation.order.random() < simulation.interleave:
            self._switch()

    def _switch(self) -> None:
        if self.current is not None:
            self.current.is_preempted = True
            self.current.hand_back()
            self.current.is_preempted = False
        else:
            self._let_a_thread_run()

    def _let_a_thread_run(self) -> bool:
        """Run one of the threads from the loop, as if it had been preempted there."""
        threads = [one for one in self._ready if isinstance(one, SimThread)]
        if not threads or self._is_paused:
            return False
        one = threads[int(self.simulation.order.random() * len(threads))]
        self.simulation.took(one.name)
        one.step()
        return True

    def wait_for_lock(self, lock: SimLock) -> None:
        """Have others go on until a lock is free."""
        if self.is_dead:
            return
        if self.current is not None:
            lock.waiting.append(self.current)
            self.current.park(None)
        elif not self._let_a_thread_run():
            raise RuntimeError(f"{self.name}: deadlock: the loop waits for a lock")


def running() -> SimThread:
    """Return the thread that runs, for code that knows nothing of its process."""
    if SimThread.running is None:
        raise RuntimeError("no simulated thread runs")
    return SimThread.running


class SimThread:
    """A thread of a simulated process. See :class:`scheduler.process.ports.Thread`.

    Attributes
    ----------
    running
        The one that runs now, or ran last.
    """

    running: ClassVar[SimThread | None] = None

    def __init__(self, machine: Machine, run: Callable[[], None], name: str) -> None:
        self.name = f"{machine.name}/{name}"
        self._machine = machine
        self._do = run
        self._go = threading.Lock()
        self._go.acquire()
        self._back = threading.Lock()
        self._back.acquire()
        self._os: threading.Thread | None = None
        self._is_over = False
        self._is_killed = False
        self._parked = 0
        self._number = 0
        self._is_notified = False
        self.is_preempted = False
        self._on_end: list[Callable[[], None]] = []

    @property
    def ident(self) -> int | None:
        return None if self._os is None else 1

    def start(self) -> None:
        self._os = threading.Thread(target=self._main, name=self.name, daemon=True)
        self._machine.threads.append(self)
        self._os.start()
        self._machine.ready(self)

    def is_alive(self) -> bool:
        return self._os is not None and not self._is_over

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end, on another thread of the process."""
        if self._is_over or self._os is None:
            return
        waiter = self._machine.current
        if waiter is None:
            raise RuntimeError("the loop must not wait for a thread")
        self._on_end.append(waiter.wake)
        waiter.park(timeout)

    # --- the core's side ----------------------------------------------------------------------

    def step(self) -> None:
        """Let it run until it hands the baton back. Called by the main thread."""
        machine = self._machine
        machine.current = SimThread.running = self
        self._go.release()
        self._back.acquire()
        machine.current = None

    def kill(self) -> None:
        """End it where it waits. Called by the main thread."""
        self._is_killed = True
        while self.is_alive():
            self.step()

    # --- its own side -------------------------------------------------------------------------

    def _main(self) -> None:
        self._go.acquire()
        try:
            if not self._is_killed:
                self._do()
        except KilledError:
            pass
        except BaseException as error:  # noqa: BLE001 - as a vital thread reports it
            self._machine.died(self.name, error)
        self._is_over = True
        self._machine.unready(self)
        for call in self._on_end:
            call()
        self._back.release()

    def hand_back(self) -> None:
        """Let somebody else go on; returns when it is this thread's turn again."""
        if self._is_killed:
            return
        self._back.release()
        self._go.acquire()
        if self._is_killed:
            raise KilledError

    def park(self, timeout_s: float | None) -> bool:
        """Wait until somebody wakes it; return False when time is up first."""
        if self._is_killed:
            raise KilledError
        machine = self._machine
        self._number += 1
        self._parked = number = self._number
        self._is_notified = False
        machine.unready(self)
        if timeout_s is not None:

            def time_is_up() -> None:
                if self._parked == number:
                    self._parked = 0
                    machine.ready(self)

            machine.simulation.at(machine.real_s(machine.now() + max(timeout_s, 0.0)), time_is_up)
        self.hand_back()
        return self._is_notified

    def wake(self) -> None:
        """End the wait, if it waits. Any thread."""
        if self._parked:
            self._parked = 0
            self._is_notified = True
            self._machine.ready(self)


class SimLock:
    """A lock at which the seed may let somebody else go on."""

    __slots__ = ("_held", "_machine", "waiting")

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._held = False
        self.waiting: list[SimThread] = []

    def acquire(self, blocking: bool = True, timeout: float = -1) -> bool:
        machine = self._machine
        if machine.simulation.interleave:
            machine.pass_baton()
        while self._held and not machine.is_dead:
            if not blocking:
                return False
            machine.wait_for_lock(self)
        self._held = True
        return True

    def release(self) -> None:
        self._held = False
        if self.waiting:
            waiting, self.waiting = self.waiting, []
            for thread in waiting:
                thread.wake()
        if self._machine.simulation.interleave:
            self._machine.pass_baton()

    def locked(self) -> bool:
        return self._held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimCondition:
    """See :class:`scheduler.process.ports.Condition`."""

    def __init__(self, machine: Machine, lock: Any) -> None:
        self._machine = machine
        self._lock = lock
        self._waiting: deque[SimThread] = deque()

    def wait(self, timeout: float | None = None) -> bool:
        thread = self._machine.current
        if thread is None:
            raise RuntimeError("the loop must not wait for a condition")
        self._waiting.append(thread)
        self._lock.release()
        try:
            return thread.park(timeout)
        finally:
            if thread in self._waiting:
                self._waiting.remove(thread)
            self._lock.acquire()

    def notify(self, n: int = 1) -> None:
        for _ in range(min(n, len(self._waiting))):
            self._waiting.popleft().wake()

    def notify_all(self) -> None:
        self.notify(len(self._waiting))


class SimEvent:
    """See :class:`scheduler.process.ports.Event`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._is_set = False
        self._waiting: list[SimThread] = []

    def is_set(self) -> bool:
        return self._is_set

    def set(self) -> None:
        self._is_set = True
        waiting, self._waiting = self._waiting, []
        for thread in waiting:
            thread.wake()

    def wait(self, timeout: float | None = None) -> bool:
        thread = self._machine.current
        if not self._is_set and thread is not None:
            self._waiting.append(thread)
            thread.park(timeout)
            if thread in self._waiting:
                self._waiting.remove(thread)
        return self._is_set


class SimQueue:
    """See :class:`scheduler.process.ports.Queue`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self._items: deque[Any] = deque()
        self._waiting: deque[SimThread] = deque()

    def put(self, item: Any) -> None:
        self._items.append(item)
        if self._waiting:
            self._waiting.popleft().wake()

    def get(self, block: bool = True, timeout: float | None = None) -> Any:
        while not self._items:
            thread = self._machine.current
            if not block or thread is None:
                raise Empty
            self._waiting.append(thread)
            has_come = thread.park(timeout)
            if thread in self._waiting:
                self._waiting.remove(thread)
            if not has_come and not self._items:
                raise Empty
        return self._items.popleft()


class SimExecutor:
    """Everything that runs in one process. See :class:`scheduler.process.ports.Executor`."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine
        self.loop = machine.loop

    def lock(self) -> Any:
        # Where threads stop only where they wait, nobody ever meets a lock that is held.
        if not self._machine.simulation.interleave:
            return threading.Lock()
        return SimLock(self._machine)

    def condition(self, lock: Any) -> SimCondition:
        return SimCondition(self._machine, lock)

    def event(self) -> SimEvent:
        return SimEvent(self._machine)

    def queue(self) -> SimQueue:
        return SimQueue(self._machine)

    def thread(self, run: Callable[[], None], name: str) -> SimThread:
        return SimThread(self._machine, run, name)

    def watch(self, task: asyncio.Task[None]) -> None:
        watch_task(task, self._machine.died)

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    def call_on_loop(self, call: Callable[[], None]) -> None:
        self.loop.call_soon_threadsafe(call)

    def wait_on_loop(self, coroutine: Coroutine[Any, Any, T], timeout_s: float) -> T:
        thread = self._machine.current
        if thread is None:
            raise RuntimeError("the loop must not wait for itself")
        result = asyncio.run_coroutine_threadsafe(coroutine, self.loop)
        result.add_done_callback(lambda _: thread.wake())
        if not result.done() and not thread.park(timeout_s):
            result.cancel()
            raise TimeoutError
        return result.result(0)

    async def to_thread(self, call: Callable[..., T], *args: Any) -> T:
        outcome: asyncio.Future[T] = self.loop.create_future()

        def run() -> None:
            try:
                result = call(*args)
            except Exception as error:  # noqa: BLE001 - handed to whoever waits
                self.loop.call_soon_threadsafe(_fail, outcome, error)
            else:
                self.loop.call_soon_threadsafe(_succeed, outcome, result)

        SimThread(self._machine, run, getattr(call, "__name__", "call")).start()
        return await outcome


def _succeed(future: asyncio.Future[Any], result: Any) -> None:
    if not future.done():
        future.set_result(result)


def _fail(future: asyncio.Future[Any], error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def drift(rng: random.Random) -> float:
    """Return how fast a clock goes: up to a hundredth too fast or too slow."""
    return 1.0 + rng.uniform(-0.01, 0.01)
