"""Conformance checks for users' plugins.

A check returns, or raises :class:`BrokenPromiseError` with a sentence. Any other exception comes
from the plugin.
"""

from __future__ import annotations

from collections.abc import Callable  # noqa: TC003 - a NamedTuple's types are looked up
from typing import TYPE_CHECKING, Final, NamedTuple

import msgspec
import numpy as np

from cache.pod_info import PodInfo
from cache.snapshot import Snapshot
from plugins.authoring import PolicyClassError, PolicyPlugin, adapt
from plugins.framework.cycle_state import CycleState
from plugins.framework.interfaces import (
    FilterPlugin,
    Plugin,
    PreFilterPlugin,
    PreScorePlugin,
    ScorePlugin,
)
from plugins.framework.normalize import MAX_NODE_SCORE, MIN_NODE_SCORE
from scheduler.user_plugins.plugin_trial.trial_cluster import World

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping

    from cache.columns import NodesView
    from plugins.framework.status import Status

MAX_TWINS: Final = 24
"""The number of nodes that are checked one by one: all nodes are treated alike."""


class BrokenPromiseError(AssertionError):
    """A plugin violates a rule for all plugins; the message is a sentence about the violation."""


class Subject:
    """The plugin of a trial.

    Parameters
    ----------
    cls
        The user's class.
    args
        Its arguments as in a profile; None for the defaults.

    Raises
    ------
    msgspec.ValidationError, ArgsError, PolicyClassError
        When the plugin cannot be constructed.
    """

    def __init__(self, cls: type, args: Mapping[str, object] | None = None) -> None:
        self.plugin: type[Plugin] = cls if issubclass(cls, Plugin) else adapt(cls)
        self.name = self.plugin.name
        args_type = self.plugin.args_type
        self._args = None if args_type is None else msgspec.convert(args or {}, args_type)
        if args_type is None and args is not None:
            raise msgspec.ValidationError(f"{self.name} takes no arguments")
        policy = getattr(cls, "failure_policy", "Ignore")
        if policy not in ("Ignore", "Fail"):
            raise PolicyClassError(
                f"{cls.__name__}.failure_policy is {policy!r}, it must be 'Ignore' or 'Fail'"
            )
        self.make(World("nothing", (), (), ()))

    def make(self, world: World, *, with_metrics: bool = True) -> Plugin:
        """Return a new instance with the handle of a world."""
        return self.plugin(self._args, world.handle(with_metrics=with_metrics))


class Answers(msgspec.Struct):
    """The results of a plugin for one pod, by node name."""

    refusals: dict[str, str]
    """The nodes that the plugin rejects, with the reasons."""
    raw: dict[str, int]
    scores: dict[str, int]


class Checks:
    """All checks of a plugin in one world.

    Parameters
    ----------
    subject
        The plugin.
    world
        The nodes and pods for which the plugin is called.
    doing
        Called with the name of the method that is called next.
    """

    def __init__(self, subject: Subject, world: World, doing: Callable[[str], None]) -> None:
        self.subject = subject
        self.world = world
        self._doing = doing

    def answers(self, *, with_metrics: bool = True) -> None:
        """Call the plugin for every pod."""
        plugin = self.subject.make(self.world, with_metrics=with_metrics)
        view = self.world.view()
        for info in self.world.newcomers:
            self._ask(plugin, info, view)
            if isinstance(plugin, PolicyPlugin):
                self._doing("signature")
                plugin.signature(info)

    def answers_without_metrics(self) -> None:
        """Call the plugin for every pod without any node metrics."""
        self.answers(with_metrics=False)

    def repeatable(self) -> None:
        """Compare with a second call, with a new instance, and with another order of the nodes."""
        plugin, view = self.subject.make(self.world), self.world.view()
        turned = self.world.backwards()
        firsts = [self._ask(plugin, info, view) for info in self.world.newcomers]
        for info, first in zip(self.world.newcomers, firsts, strict=True):
            others = {
                "asked again": (plugin, view),
                "asked of a new instance": (self.subject.make(self.world), self.world.view()),
                "asked about the nodes in another order": (
                    self.subject.make(turned),
                    turned.view(),
                ),
            }
            for when, (each, nodes) in others.items():
                difference = _difference(first, self._ask(each, info, nodes))
                if difference:
                    raise BrokenPromiseError(f"{when}, it says something else: {difference}")

    def twins(self) -> None:
        """Call the plugin for single nodes, and compare with its results for all nodes.

        Preemption filters single nodes. Scores of single nodes are only computed where pods share
        verdicts: by plugins with a signature.
        """
        plugin, view = self.subject.make(self.world), self.world.view()
        infos = view.node_infos()[:MAX_TWINS]
        for info in self.world.newcomers:
            together = self._ask(plugin, info, view)
            state = CycleState()
            if isinstance(plugin, FilterPlugin) and _goes_on(plugin, state, info, view):
                for node_info in infos:
                    self._doing("filter_one")
                    alone = plugin.filter_one(state, info, node_info)
                    why = together.refusals.get(node_info.name, "")
                    if alone.message != why:
                        raise BrokenPromiseError(
                            f"of node {node_info.name} alone it says {_told(alone)}, "
                            f"among all others {repr(why) if why else 'that it will do'}"
                        )
            if isinstance(plugin, ScorePlugin) and _signs(plugin, info):
                _scores(plugin, state, info, view)
                for node_info in infos:
                    self._doing("score_one")
                    score = plugin.score_one(state, info, node_info)
                    if score != together.raw.get(node_info.name, score):
                        raise BrokenPromiseError(
                            f"the score of node {node_info.name} depends on the other nodes: "
                            "such a plugin must not have a signature"
                        )

    def signatures(self) -> None:
        """Compare the results for pods with the same signature."""
        plugin, view = self.subject.make(self.world), self.world.view()
        known: dict[Hashable, tuple[PodInfo, Answers]] = {}
        for info in self.world.newcomers:
            self._doing("signature")
            signature = plugin.signature(info)
            if signature is None:
                continue
            if signature != plugin.signature(info):
                raise BrokenPromiseError(f"pod {info.name} has another signature the second time")
            answers = self._ask(plugin, info, view)
            first, expected = known.setdefault(signature, (info, answers))
            difference = _difference(expected, answers)
            if difference:
                raise BrokenPromiseError(
                    f"pods {first.name} and {info.name} have the same signature "
                    f"and different answers: {difference}"
                )

    def follows(self) -> None:
        """Change nodes and pods, and compare with the results of a new instance."""
        if not self.world.nodes:
            return
        cache, plugin = self.world.cache(), self.subject.make(self.world)
        snapshot = Snapshot()
        cache.update_snapshot(snapshot)
        info = self.world.newcomers[-1]
        self._ask(plugin, info, snapshot.all_nodes())
        for pod in self.world.pods[::2]:
            cache.remove_pod(PodInfo(pod))
        for node in self.world.nodes[::3]:
            meta = msgspec.structs.replace(node.metadata, labels={}, annotations={})
            cache.update_node(msgspec.structs.replace(node, metadata=meta))
        cache.update_snapshot(snapshot)
        now = self._ask(plugin, info, snapshot.all_nodes())
        fresh = Snapshot()
        cache.update_snapshot(fresh)
        expected = self._ask(self.subject.make(self.world), info, fresh.all_nodes())
        difference = _difference(expected, now)
        if difference:
            raise BrokenPromiseError(f"it does not notice that nodes changed: {difference}")

    def inputs(self) -> None:
        """Check that the plugin does not change its inputs."""
        view = self.world.view()
        columns = view.columns
        arrays = {name: getattr(columns, name) for name in ("allocatable", "requested")}
        before = {name: array.copy() for name, array in arrays.items()}
        facts = [node_info.clone().facts() for node_info in columns.node_infos]
        plugin = self.subject.make(self.world)
        for info in self.world.newcomers:
            requests = dict(info.requests)
            self._ask(plugin, info, view)
            if requests != dict(info.requests):
                raise BrokenPromiseError(f"it changes the requests of pod {info.name}")
        for name, array in before.items():
            if not np.array_equal(getattr(columns, name), array):
                raise BrokenPromiseError(f"it changes the nodes' {name}")
        if facts != [node_info.facts() for node_info in columns.node_infos]:
            raise BrokenPromiseError("it changes nodes")

    def _ask(self, plugin: Plugin, info: PodInfo, view: NodesView) -> Answers:
        """Return the results for all nodes of a view.

        Raises
        ------
        BrokenPromiseError
            When scores are not within 0..100 after normalisation.
        """
        state = CycleState()
        names = [node_info.name for node_info in view.node_infos()]
        answers = Answers({}, {}, {})
        if isinstance(plugin, FilterPlugin) and _goes_on(plugin, state, info, view):
            self._doing("filter")
            verdicts = plugin.filter(state, info, view)
            for row, name in enumerate(names):
                status = verdicts.status_of(row)
                if not status.is_success:
                    answers.refusals[name] = status.message
        if isinstance(plugin, ScorePlugin) and _scores(plugin, state, info, view):
            self._doing("score")
            raw = plugin.score(state, info, view)
            answers.raw = dict(zip(names, raw.tolist(), strict=True))
            self._doing("normalize")
            scores = plugin.normalize(state, info, raw)
            answers.scores = dict(zip(names, scores.tolist(), strict=True))
            wrong = [each for each in scores if not MIN_NODE_SCORE <= each <= MAX_NODE_SCORE]
            if wrong:
                raise BrokenPromiseError(f"a score of {wrong[0]} is not within 0 to 100")
        return answers


class Promise(NamedTuple):
    """A rule for every plugin, and its check."""

    sentence: str
    check: Callable[[Checks], None]


FOR_USE: Final = (
    Promise("It answers about every pod what its methods may answer", Checks.answers),
    Promise("It answers where nothing has been measured", Checks.answers_without_metrics),
    Promise("It changes nothing of what it is shown", Checks.inputs),
)
"""The checks before code is used."""

ALL: Final = (
    *FOR_USE,
    Promise("The same question gets the same answer, whatever came before", Checks.repeatable),
    Promise("About one node alone it says what it says of it among all others", Checks.twins),
    Promise("Pods with the same signature get the same answers", Checks.signatures),
    Promise("It notices when nodes and pods change", Checks.follows),
)
"""The further checks for authors of plugins."""


def _goes_on(plugin: Plugin, state: CycleState, info: PodInfo, view: NodesView) -> bool:
    return not isinstance(plugin, PreFilterPlugin) or (
        plugin.pre_filter(state, info, view).status.is_success
    )


def _scores(plugin: Plugin, state: CycleState, info: PodInfo, view: NodesView) -> bool:
    return not isinstance(plugin, PreScorePlugin) or (
        plugin.pre_score(state, info, view).is_success
    )


def _signs(plugin: Plugin, info: PodInfo) -> bool:
    return plugin.signature(info) is not None


def _difference(one: Answers, other: Answers) -> str:
    """Return the first difference of two results as text; empty if they are equal."""
    for what, first, second in (
        ("refusal", one.refusals, other.refusals),
        ("score", one.scores, other.scores),
    ):
        if first == second:
            continue
        for name in sorted({*first, *second}):
            left, right = _shown(first, name), _shown(second, name)
            if left != right:
                return f"{what} of node {name}: {left}, then {right}"
    return ""


def _shown(answers: Mapping[str, object], name: str) -> str:
    return repr(answers[name]) if name in answers else "none"


def _told(status: Status) -> str:
    return "that it will do" if status.is_success else repr(status.message)
