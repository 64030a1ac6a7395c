"""Label selectors and node selectors, compiled once and evaluated often.

A selector is a conjunction of requirements ``key operator values``. Compiled selectors are
hashable and equal when their requirements are, whatever their order and notation
(``matchLabels: {a: b}`` and ``a In [b]`` are equal), so that one evaluation can serve all
pods that use the same selector.

A requirement depends on one label only, and on nothing but its value. Code that has labels as
columns evaluates each distinct value once with :meth:`Requirement.matches_value`.

*Concurrency*: compiled selectors are immutable and may be shared between threads.

*Source*: k8s.io/apimachinery pkg/labels/selector.go, pkg/apis/meta/v1/helpers.go
(LabelSelectorAsSelector); k8s.io/component-helpers scheduling/corev1/nodeaffinity (0.36).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeVar

from cache.ages import AGES
from cache.quantity import INT64_MAX
from cache.resources import MalformedObjectError, is_qualified_name
from cache.value import Value

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from cache.objects import (
        LabelSelector,
        LabelSelectorRequirement,
        NodeSelector,
        NodeSelectorRequirement,
        NodeSelectorTerm,
    )

T = TypeVar("T")

IN = "In"
NOT_IN = "NotIn"
EXISTS = "Exists"
DOES_NOT_EXIST = "DoesNotExist"
GT = "Gt"
LT = "Lt"

METADATA_NAME = "metadata.name"
"""The only field of a node that a field requirement can name."""

_LABEL_OPERATORS = (IN, NOT_IN, EXISTS, DOES_NOT_EXIST)
_NODE_OPERATORS = (*_LABEL_OPERATORS, GT, LT)
_FIELD_OPERATORS = (IN, NOT_IN)

_MAX_LABEL_VALUE = 63
_LABEL_VALUE = re.compile(r"(?:[A-Za-z0-9](?:[-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_MAX_INTEGER_TEXT = 64

_NO_VALUES: frozenset[str] = frozenset()

_SOME = 64
"""Requirements that are compiled between two calls of ``check``: ordinary pods have fewer."""


def parse_int64(text: str) -> int | None:
    """Return the decimal integer that ``text`` is, or None if it is none or is beyond int64.

    Notes
    -----
    *Source*: Go's ``strconv.ParseInt(text, 10, 64)``; unlike ``int`` it takes neither white space
    nor underscores nor foreign digits.
    """
    if len(text) > _MAX_INTEGER_TEXT or _INTEGER.fullmatch(text) is None:
        return None
    value = int(text)
    return value if -INT64_MAX - 1 <= value <= INT64_MAX else None


@dataclass(frozen=True, slots=True, order=False)
class Requirement:
    """One condition on the value of one label (or field).

    Parameters
    ----------
    key : str
        The label.
    operator : str
        In, NotIn, Exists, DoesNotExist, Gt or Lt.
    values : frozenset of str
        At least one for In and NotIn, none for Exists and DoesNotExist, the bound in its
        shortest form for Gt and Lt.
    """

    key: str
    operator: str
    values: frozenset[str] = _NO_VALUES
    _bound: int = field(default=0, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.operator in (GT, LT):
            (text,) = self.values
            object.__setattr__(self, "_bound", int(text))

    def matches_value(self, value: str | None) -> bool:
        """Return whether a label with ``value`` satisfies this; None is a label that is absent.

        An absent label satisfies NotIn and DoesNotExist. Gt and Lt compare integers: a value
        that is none satisfies neither.
        """
        operator = self.operator
        if operator == IN:
            return value in self.values
        if operator == NOT_IN:
            return value not in self.values
        if operator == EXISTS:
            return value is not None
        if operator == DOES_NOT_EXIST:
            return value is None
        number = None if value is None else parse_int64(value)
        if number is None:
            return False
        return number > self._bound if operator == GT else number < self._bound

    def __str__(self) -> str:
        if self.operator in (EXISTS, DOES_NOT_EXIST):
            return self.key if self.operator == EXISTS else f"!{self.key}"
        if self.operator in (GT, LT):
            return f"{self.key}{'>' if self.operator == GT else '<'}{self._bound}"
        values = ",".join(sorted(self.values))
        if self.operator == IN:
            return f"{self.key}={values}" if len(self.values) == 1 else f"{self.key} in ({values})"
        return f"{self.key} notin ({values})"


def _normalised(requirements: Iterable[Requirement]) -> tuple[Requirement, ...]:
    """Return the requirements sorted and without duplicates: equal meanings become equal values."""
    distinct = set(requirements)
    if len(distinct) < 2:
        return tuple(distinct)
    return tuple(sorted(distinct, key=_place))


def _place(requirement: Requirement) -> tuple[str, str, list[str]]:
    values = requirement.values
    return (requirement.key, requirement.operator, sorted(values) if values else [])


class Selector:
    """A compiled label selector: all of its requirements, everything, or nothing.

    Parameters
    ----------
    requirements : iterable of Requirement
        In any order; with none the selector matches everything.
    nothing : bool
        Whether the selector matches nothing at all; it has no requirements then.

    Attributes
    ----------
    requirements : tuple of Requirement
        Sorted, without repetitions.
    nothing : bool
        It matches no labels.
    """

    __slots__ = ("_exact", "_hash", "_others", "nothing", "requirements")

    def __init__(self, requirements: Iterable[Requirement] = (), *, nothing: bool = False) -> None:
        self.requirements = () if nothing else _normalised(requirements)
        self.nothing = nothing
        # Most selectors only compare labels with one value each: the loop over plain pairs
        # needs no call for each of them.
        self._exact: tuple[tuple[str, str], ...] = tuple(
            (r.key, next(iter(r.values)))
            for r in self.requirements
            if r.operator == IN and len(r.values) == 1
        )
        self._others = tuple(r for r in self.requirements if r.operator != IN or len(r.values) != 1)
        self._hash = hash((self.requirements, nothing))

    @property
    def empty(self) -> bool:
        """Whether the selector matches everything."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Return whether ``labels`` satisfy every requirement."""
        if self.nothing:
            return False
        for key, value in self._exact:
            if labels.get(key) != value:
                return False
        return all(r.matches_value(labels.get(r.key)) for r in self._others)

    def with_requirements(self, requirements: Iterable[Requirement]) -> Selector:
        """Return a selector that also demands ``requirements``; nothing stays nothing."""
        if self.nothing:
            return self
        return Selector((*self.requirements, *requirements))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Selector):
            return NotImplemented
        return (
            self._hash == other._hash
            and self.nothing == other.nothing
            and self.requirements == other.requirements
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        """Return the selector as ``kubectl --selector`` writes it."""
        return "<nothing>" if self.nothing else ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return f"Selector({str(self)!r})"


EVERYTHING = Selector()
NOTHING = Selector(nothing=True)


def selector_of_labels(labels: Mapping[str, str]) -> Selector:
    """Return the selector of all objects that carry ``labels``; without any it is EVERYTHING.

    The labels are taken as they are: a value that no label can have matches nothing, but is no
    error.

    Notes
    -----
    *Source*: ``labels.SelectorFromSet``, which a pod's nodeSelector goes through.
    """
    if not labels:
        return EVERYTHING
    return Selector(_requirement_of_label(key, value) for key, value in labels.items())


@AGES.forgets(2048)  # 2 MiB: no key of a label is longer than 317, no value than 63
def _requirement_of_label(key: str, value: str) -> Requirement:
    return Requirement(key, IN, frozenset((value,)))


def _checked(parts: Sequence[T], check: Callable[[], None] | None) -> Iterator[tuple[int, T]]:
    """Enumerate parts, and call ``check`` at intervals."""
    for index, part in enumerate(parts):
        if check is not None and index % _SOME == _SOME - 1:
            check()
        yield index, part


def compile_label_selector(
    selector: LabelSelector | None,
    path: str = "labelSelector",
    *,
    check: Callable[[], None] | None = None,
) -> Selector:
    """Return the compiled form of ``selector``; None selects nothing, an empty one everything.

    Parameters
    ----------
    selector : LabelSelector or None
        As the API writes it.
    path : str
        Where it stands in its object, for the error.
    check
        Called at intervals while many requirements are compiled; its exceptions propagate.

    Raises
    ------
    MalformedObjectError
        If an operator is unknown, the number of values does not suit it, or a key or value
        cannot be a label's.
    """
    if selector is None:
        return NOTHING
    if not selector.match_labels and not selector.match_expressions:
        return EVERYTHING
    requirements = []
    for key, value in selector.match_labels.items():
        if not _is_label_key(key):
            raise _wrong_key(key, f"{path}.matchLabels")
        if not is_label_value(value):
            raise _wrong_value(value, f"{path}.matchLabels[{key}]")
        requirements.append(_requirement_of_label(key, value))
    for index, expression in _checked(selector.match_expressions, check):
        requirements.append(_compile_requirement(expression, _LABEL_OPERATORS, path, index))
    return Selector(requirements)


# --- node selectors ---------------------------------------------------------------------------


class NodeTermSelector:
    """A compiled node selector term: all of its requirements on labels and on fields.

    Attributes
    ----------
    requirements : tuple of Requirement
        On the labels of the node.
    field_requirements : tuple of Requirement
        On the fields of the node: In or NotIn with one value each. The only field is
        ``metadata.name``; any other reads as the empty string.
    errors : tuple of MalformedObjectError
        The errors in the term. A term with errors matches no node and has no requirements.
    empty : bool
        The term had no requirements at all; it matches no node either.
    """

    __slots__ = ("_labels", "empty", "errors", "field_requirements", "requirements")

    def __init__(
        self,
        requirements: Iterable[Requirement] = (),
        field_requirements: Iterable[Requirement] = (),
        errors: Sequence[MalformedObjectError] = (),
    ) -> None:
        self.errors = tuple(errors)
        self._labels = EVERYTHING if errors else Selector(requirements)
        self.requirements = self._labels.requirements
        self.field_requirements = () if errors else _normalised(field_requirements)
        self.empty = not (self.requirements or self.field_requirements or errors)

    @property
    def nothing(self) -> bool:
        """Whether no node can match: the term is empty or malformed."""
        return self.empty or bool(self.errors)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether the node called ``name`` with ``labels`` satisfies the term."""
        return self.matches_labels(labels) and self.matches_name(name)

    def matches_labels(self, labels: Mapping[str, str]) -> bool:
        """Return whether a node with ``labels`` satisfies all but the field requirements."""
        return not self.nothing and self._labels.matches(labels)

    def matches_name(self, name: str) -> bool:
        """Return whether a node called ``name`` satisfies the field requirements."""
        return all(
            r.matches_value(name if r.key == METADATA_NAME else "") for r in self.field_requirements
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, NodeTermSelector):
            return NotImplemented
        return (
            self.requirements == other.requirements
            and self.field_requirements == other.field_requirements
            and self.nothing == other.nothing
        )

    def __hash__(self) -> int:
        return hash((self.requirements, self.field_requirements, self.nothing))

    def __repr__(self) -> str:
        parts = [str(r) for r in (*self.requirements, *self.field_requirements)]
        return f"NodeTermSelector({', '.join(parts)!r}, errors={len(self.errors)})"


class NodeSelectorMatcher(Value, frozen=True):
    """A compiled node selector: any of its terms.

    Attributes
    ----------
    terms : tuple of NodeTermSelector
        In the order of the API, empty terms left out, malformed ones kept.
    """

    terms: tuple[NodeTermSelector, ...]

    @property
    def errors(self) -> tuple[MalformedObjectError, ...]:
        """The errors of all terms; the caller decides whether they matter.

        For a pod's required node affinity it does not: a malformed term matches no node, and
        the other terms still count. The administrator's added affinity and preferred terms are
        refused as a whole.
        """
        return tuple(error for term in self.terms for error in term.errors)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Return whether the node called ``name`` with ``labels`` satisfies one of the terms."""
        return any(term.matches(labels, name) for term in self.terms)


def compile_node_selector_term(
    term: NodeSelectorTerm,
    path: str = "nodeSelectorTerm",
    *,
    check: Callable[[], None] | None = None,
) -> NodeTermSelector:
    """Return the compiled form of ``term``; its ``errors`` describe malformed parts.

    Nothing is raised, because a pod may carry a malformed term beside a good one: the API
    server long let invalid label values pass, and such a pod is still to be scheduled by its
    good terms.

    Parameters
    ----------
    term : NodeSelectorTerm
        As the API writes it.
    path : str
        Where it stands in its object, for the errors.
    check
        Called at intervals while many requirements are compiled; its exceptions propagate.
    """
    errors: list[MalformedObjectError] = []
    requirements: list[Requirement] = []
    for index, expression in _checked(term.match_expressions, check):
        try:
            requirements.append(_compile_requirement(expression, _NODE_OPERATORS, path, index))
        except MalformedObjectError as error:
            errors.append(error)
    field_requirements: list[Requirement] = []
    for index, expression in _checked(term.match_fields, check):
        if expression.operator not in _FIELD_OPERATORS:
            where = f"{path}.matchFields[{index}]"
            errors.append(_unknown_operator(expression.operator, _FIELD_OPERATORS, where))
        elif len(expression.values) != 1:
            where = f"{path}.matchFields[{index}].values"
            errors.append(MalformedObjectError(where, "must have exactly one value"))
        else:
            field_requirements.append(
                Requirement(expression.key, expression.operator, frozenset(expression.values))
            )
    return NodeTermSelector(requirements, field_requirements, errors)


def compile_node_selector(
    selector: NodeSelector,
    path: str = "nodeSelector",
    *,
    check: Callable[[], None] | None = None,
) -> NodeSelectorMatcher:
    """Return the compiled form of ``selector``; its ``errors`` describe malformed parts.

    Parameters
    ----------
    selector : NodeSelector
        As the API writes it; without a term that says something it matches no node.
    path : str
        Where it stands in its object, for the errors.
    check
        Called at intervals while many requirements are compiled; its exceptions propagate.
    """
    compiled = []
    for index, term in _checked(selector.node_selector_terms, check):
        where = f"{path}.nodeSelectorTerms[{index}]"
        compiled.append(compile_node_selector_term(term, where, check=check))
    return NodeSelectorMatcher(tuple(term for term in compiled if not term.empty))


# --- one requirement --------------------------------------------------------------------------


def _compile_requirement(
    expression: LabelSelectorRequirement | NodeSelectorRequirement,
    operators: Sequence[str],
    path: str,
    index: int,
) -> Requirement:
    """Return the compiled form of ``matchExpressions[index]`` of what is at ``path``."""
    operator, values = expression.operator, expression.values
    if (
        operator in operators
        and _is_label_key(expression.key)
        and operator not in (GT, LT)
        and bool(values) == (operator in (IN, NOT_IN))
        and all(map(is_label_value, values))
    ):
        return Requirement(expression.key, operator, frozenset(values))
    path = f"{path}.matchExpressions[{index}]"
    if operator not in operators:
        raise _unknown_operator(operator, operators, path)
    if not _is_label_key(expression.key):
        raise _wrong_key(expression.key, f"{path}.key")
    if operator in (IN, NOT_IN):
        if not values:
            raise MalformedObjectError(f"{path}.values", f"{operator} needs at least one value")
    elif operator in (EXISTS, DOES_NOT_EXIST):
        if values:
            raise MalformedObjectError(f"{path}.values", f"{operator} takes no values")
    else:
        if len(values) != 1:
            raise MalformedObjectError(f"{path}.values", f"{operator} needs exactly one value")
        bound = parse_int64(values[0])
        if bound is None:
            raise MalformedObjectError(
                f"{path}.values[0]", f"{operator} needs an integer, not {values[0][:64]!r}"
            )
        # The bound, too, must be able to be a label's value, so it has no sign.
        if not is_label_value(values[0]):
            raise _wrong_value(values[0], f"{path}.values[0]")
        return Requirement(expression.key, operator, frozenset((str(bound),)))
    at = next(at for at, value in enumerate(values) if not is_label_value(value))
    raise _wrong_value(values[at], f"{path}.values[{at}]")


def _unknown_operator(operator: str, known: Sequence[str], path: str) -> MalformedObjectError:
    return MalformedObjectError(
        f"{path}.operator", f"{operator[:64]!r} is none of {', '.join(known)}"
    )


def _wrong_key(key: str, path: str) -> MalformedObjectError:
    return MalformedObjectError(path, f"{key[:64]!r} cannot be the key of a label")


def _wrong_value(value: str, path: str) -> MalformedObjectError:
    return MalformedObjectError(path, f"{value[:64]!r} cannot be the value of a label")


def is_label_value(value: str) -> bool:
    """Return whether a text can be the value of a label."""
    return len(value) <= _MAX_LABEL_VALUE and _LABEL_VALUE.fullmatch(value) is not None


_is_label_key = AGES.forgets(1024)(is_qualified_name)
