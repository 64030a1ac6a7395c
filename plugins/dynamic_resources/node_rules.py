"""The nodes that can reach the devices of slices, where slices do not name one node.

*Source*: k8s.io/dynamic-resource-allocation 0.36, structured/internal/incubating,
pools_incubating.go (NodeMatches, GatherPools).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, TypeAlias

from cache.byte_bounded import remembered
from cache.label_selectors import IN, METADATA_NAME, compile_node_selector
from plugins.dynamic_resources.errors import AllocationError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from cache.device_objects import Device, ResourceSlice
    from cache.label_selectors import NodeSelectorMatcher, Requirement
    from cache.objects import Node, NodeSelector

_MAX_COMPILED_BYTES: Final = 1 << 24
"""16 MiB: more than the distinct node selectors of slices that are in use at one time."""

_compile = remembered(_MAX_COMPILED_BYTES)(compile_node_selector)

_Label: TypeAlias = "tuple[str, str]"


class MalformedSelectorError(AllocationError):
    """A node selector of a slice cannot be read; the API server lets nobody write one."""


class NodeRule:
    """The nodes that can reach a device or the devices of a slice.

    Parameters
    ----------
    node_name, all_nodes, node_selector
        The first of them that is set decides; where none is, no node can.
    of : str
        Whose rule it is, for errors: empty for a whole slice's.
    """

    __slots__ = ("_all_nodes", "_matcher", "_node_name", "_node_selector", "of")

    def __init__(
        self,
        node_name: str | None,
        all_nodes: bool | None,
        node_selector: NodeSelector | None,
        of: str = "",
    ) -> None:
        self.of = of
        self._node_name = node_name
        self._all_nodes = all_nodes
        self._node_selector = node_selector
        self._matcher: NodeSelectorMatcher | None = None

    def matches(self, node: Node) -> bool:
        """Return whether a node can.

        Raises
        ------
        MalformedSelectorError
            When the selector cannot be read.
        """
        if self._node_name:
            return node.metadata.name == self._node_name
        if self._all_nodes:
            return True
        if self._node_selector is None:
            return False
        if self._matcher is None:
            self._matcher = _compile(self._node_selector)
        for error in self._matcher.errors:
            raise MalformedSelectorError(f"failed to parse node selector: {error}")
        return self._matcher.matches(node.metadata.labels, node.metadata.name)


def device_rule(device: Device) -> NodeRule:
    """Return the rule of a device in a slice whose devices choose their nodes themselves."""
    of = f"device {device.name} in "
    return NodeRule(device.node_name, device.all_nodes, device.node_selector, of)


class SharedSlices:
    """The slices that are not for one node, by the nodes that can reach them.

    Parameters
    ----------
    shared
        The slices without a node name; those with shared counters are left out.
    """

    def __init__(self, shared: Sequence[ResourceSlice]) -> None:
        self._shared = shared
        self._for_all: list[ResourceSlice] = []
        self._by_label: dict[_Label, list[_Choosing]] = {}
        self._others: list[_Choosing] = []
        by_selector: dict[NodeSelector, list[ResourceSlice]] = {}
        for each in shared:
            spec = each.spec
            if spec.shared_counters:
                continue
            if spec.all_nodes:
                self._for_all.append(each)
            elif spec.node_selector is not None:
                by_selector.setdefault(spec.node_selector, []).append(each)
            elif spec.per_device_node_selection:
                self._add(_Choosing([each], tuple(map(device_rule, spec.devices))), None)
        for selector, slices in by_selector.items():
            self._add(_Choosing(slices, (NodeRule(None, None, selector),)), selector)

    def is_of(self, shared: Sequence[ResourceSlice]) -> bool:
        """Return whether these are the very slices that this was made from."""
        return self._shared is shared

    def relevant(self, node: Node) -> list[ResourceSlice]:
        """Return the slices that a node can reach, sorted by name.

        Raises
        ------
        AllocationError
            When a slice has a malformed node selector.

        *Cost*: each slice for all nodes, and each distinct selector that one of the node's labels
        may satisfy.
        """
        if not self._by_label and not self._others:
            return sorted(self._for_all, key=_name)
        relevant = list(self._for_all)
        for choosing in self._candidates(node):
            relevant += choosing.slices_for(node)
        relevant.sort(key=_name)
        return relevant

    def _add(self, choosing: _Choosing, selector: NodeSelector | None) -> None:
        labels = None if selector is None else _needed_labels(selector)
        if labels is None:
            self._others.append(choosing)
            return
        for label in labels:
            self._by_label.setdefault(label, []).append(choosing)

    def _candidates(self, node: Node) -> Iterator[_Choosing]:
        yield from self._others
        if self._by_label:
            labels: Mapping[str, str] = node.metadata.labels
            for label in (*labels.items(), ("", node.metadata.name)):
                yield from self._by_label.get(label, ())


class _Choosing:
    """Slices that are for the same nodes: those that match one of the rules."""

    __slots__ = ("_rules", "_slices")

    def __init__(self, slices: Sequence[ResourceSlice], rules: tuple[NodeRule, ...]) -> None:
        self._slices = slices
        self._rules = rules

    def slices_for(self, node: Node) -> Iterable[ResourceSlice]:
        for rule in self._rules:
            try:
                if rule.matches(node):
                    return self._slices
            except MalformedSelectorError as error:
                raise AllocationError(
                    f"gather pool information: failed to perform node selection for {rule.of}slice "
                    f"{_name(self._slices[0])}: {error}"
                ) from error
        return ()


def _needed_labels(selector: NodeSelector) -> frozenset[_Label] | None:
    """Return labels of which a node needs one, the name of the node under an empty key.

    None means that nodes without any label may match, or that the selector is malformed.
    """
    matcher = _compile(selector)
    if len(matcher.terms) != 1 or matcher.errors:
        return None
    term = matcher.terms[0]
    for requirement in term.field_requirements:
        if requirement.key == METADATA_NAME and requirement.operator == IN:
            return _pairs("", requirement)
    for requirement in term.requirements:
        if requirement.operator == IN:
            return _pairs(requirement.key, requirement)
    return None


def _pairs(key: str, requirement: Requirement) -> frozenset[_Label]:
    return frozenset((key, value) for value in requirement.values)


def _name(known: ResourceSlice) -> str:
    return known.metadata.name
