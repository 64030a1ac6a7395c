"""Wrappers that measure plugins and extension points without changes to them.

Plugins are wrapped when their profile is built, extension points where they are defined. A wrapper
records in the marks of the cycle that a call has ended. A cycle state without marks, such as that
of a what-if, records nothing.

*Source*: pkg/scheduler/framework/runtime/instrumented_plugins.go (1.36).
"""

from __future__ import annotations

from functools import wraps
from inspect import iscoroutinefunction
from time import perf_counter
from typing import TYPE_CHECKING, Any, Concatenate, Final, ParamSpec, Protocol, TypeVar, cast

from plugins.framework.interfaces import ScorePlugin
from plugins.framework.status import Code, Status

if TYPE_CHECKING:
    from collections.abc import Callable

    from cache.pod_info import PodInfo
    from plugins.framework.cycle_state import CycleState
    from plugins.framework.interfaces import Plugin

S = TypeVar("S")
T = TypeVar("T")
A = ParamSpec("A")
MethodT = TypeVar("MethodT", bound="Callable[..., Any]")

_NORMALIZE: Final = "ScoreExtensionNormalize"
_SKIP, _SUCCESS = Code.SKIP, Code.SUCCESS


class Wrap(Protocol):
    """Return the function to call in place of a plugin's method at an extension point."""

    def __call__(self, point: str, plugin: Plugin, method: MethodT) -> MethodT:
        """Return a call with the parameters and the answer of the method."""
        ...


def unmeasured(point: str, plugin: Plugin, method: MethodT) -> MethodT:
    """Return the method as it is."""
    return method


def measured(point: str, plugin: Plugin, method: MethodT) -> MethodT:
    """Return a call that notes what the plugin answered."""
    if point == _NORMALIZE and not normalizes(plugin):
        return method
    return _noting(point, plugin.name, method)


def measured_in_reuse(point: str, plugin: Plugin, method: MethodT) -> MethodT:
    """Return a call that notes what the plugin answered where most verdicts are reused.

    Marks are a good part of what such a cycle costs. So a plugin that skips the pod is not noted,
    for it took no time, and scores are noted once, when they are normalised.
    """
    if point == "Score":
        return method
    if point == _NORMALIZE:
        return _noting("Score", plugin.name, method)
    return _noting(point, plugin.name, method, skips=False)


def normalizes(plugin: Plugin) -> bool:
    """Return whether a plugin's raw scores have a meaning only beside those of other nodes."""
    return isinstance(plugin, ScorePlugin) and type(plugin).normalize is not ScorePlugin.normalize


def _noting(point: str, name: str, method: MethodT, *, skips: bool = True) -> MethodT:
    """Return a call that notes when a method has ended, and what it answered.

    The calls differ in what an answer is, so that none of them asks: they are in every cycle.
    """
    call: Callable[..., Any]
    if point == "PreFilter":

        def pre_filter(state: CycleState, info: PodInfo, subject: Any) -> Any:
            answer = method(state, info, subject)
            code = answer.status.code
            if (skips or code is not _SKIP) and state.marks is not None:
                state.marks.append((point, name, code, perf_counter()))
            return answer

        call = pre_filter
    elif point in ("PreScore", "Reserve"):

        def status(state: CycleState, info: PodInfo, subject: Any) -> Any:
            try:
                answer = method(state, info, subject)
            except Exception:
                mark(state, point, name, Code.ERROR)
                raise
            code = answer.code
            if (skips or code is not _SKIP) and state.marks is not None:
                state.marks.append((point, name, code, perf_counter()))
            return answer

        call = status
    elif point in ("PreBind", "Bind"):

        async def awaited(state: CycleState, info: PodInfo, subject: Any) -> Any:
            code = Code.ERROR
            try:
                answer = await method(state, info, subject)
                code = answer.code
            finally:
                mark(state, point, name, code)
            return answer

        call = awaited
    elif point in ("PostFilter", "Permit"):

        def pair(state: CycleState, info: PodInfo, subject: Any, *more: Any) -> Any:
            answer = method(state, info, subject, *more)
            mark(state, point, name, _CODE_OF[point](answer))
            return answer

        call = pair
    else:

        def plain(state: CycleState, info: PodInfo, subject: Any) -> Any:
            answer = method(state, info, subject)
            if state.marks is not None:
                state.marks.append((point, name, _SUCCESS, perf_counter()))
            return answer

        call = plain
    return cast("MethodT", call)


def _succeeded(answer: object) -> Code:
    return Code.SUCCESS


def _of_status(answer: Status) -> Code:
    return answer.code


_CODE_OF: Final[dict[str, Callable[[Any], Code]]] = {
    "PreFilter": lambda answer: answer.status.code,
    "PostFilter": lambda answer: answer[1].code,
    "PreScore": _of_status,
    "Reserve": _of_status,
    "Permit": lambda answer: answer[0].code,
    "PreBindPreFlight": _of_status,
    "PreBind": _of_status,
    "Bind": _of_status,
}
"""How the answer at an extension point is read; at all others one succeeds or raises."""


def measured_point(
    point: str, *, after_wait: bool = False
) -> Callable[
    [Callable[Concatenate[S, CycleState, A], T]], Callable[Concatenate[S, CycleState, A], T]
]:
    """Return a decorator for methods that run all plugins of a point: they note that it is over.

    A point that raises has answered Error.

    Parameters
    ----------
    after_wait
        Whether something was waited for before the point, which is not its time.
    """
    # One PreScore answers, all of them together succeed or raise.
    code_of = _succeeded if point == "PreScore" else _CODE_OF.get(point, _succeeded)

    def decorate(
        method: Callable[Concatenate[S, CycleState, A], T],
    ) -> Callable[Concatenate[S, CycleState, A], T]:
        if iscoroutinefunction(method):

            @wraps(method)
            async def run_async(
                self: S, state: CycleState, /, *args: A.args, **kw: A.kwargs
            ) -> Any:
                code = Code.ERROR
                if after_wait:
                    mark(state, "", "", Code.SUCCESS)
                try:
                    answer = await method(self, state, *args, **kw)
                    code = code_of(answer)
                finally:
                    mark(state, point, "", code)
                return answer

            return cast("Callable[Concatenate[S, CycleState, A], T]", run_async)

        @wraps(method)
        def run(self: S, state: CycleState, /, *args: A.args, **kwargs: A.kwargs) -> T:
            code = Code.ERROR
            if after_wait:
                mark(state, "", "", Code.SUCCESS)
            try:
                answer = method(self, state, *args, **kwargs)
                code = code_of(answer)
            finally:
                if state.marks is not None:
                    state.marks.append((point, "", code, perf_counter()))
            return answer

        return run

    return decorate


def mark(state: CycleState, point: str, plugin: str, code: Code) -> None:
    """Note that a plugin has answered; without one, that an extension point is over.

    Without a point: what comes next begins, and what was waited for before is not its time.
    """
    if state.marks is not None:
        state.marks.append((point, plugin, code, perf_counter()))
