"""Records of a journal, and what was decided, with aliases in place of their strings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plugins.registry import PLUGINS
from scheduler.journal import forms
from scheduler.journal import redacted_texts as texts
from scheduler.journal.frames import JournalError
from scheduler.journal.records import DROPPED, OBJECT, OFF, POST_FILTER, RESERVE
from scheduler.journal.redacted_objects import redacted_object, walk_of
from scheduler.process.version import VERSION

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plugins.framework.interfaces import Plugin
    from scheduler.journal.aliases import Names

_STATE: Final = frozenset(
    {
        *("assume", "add", "update", "finish_binding", "forget", "remove", "expire"),
        *("node", "node_gone", "renew", "snapshot", "nominate", "nominated", "not_nominated"),
        *("metric", "cut", POST_FILTER),
    }
)
_VERBS: Final = {
    "object": frozenset({"", "restored"}),
    "assumed": frozenset({"assume", "restore"}),
    "claim": frozenset({"stored", "restore", "begin_flight", "end_flight"}),
    "group": frozenset({"pod_changed", "assume", "forget_all", "begin_eviction", "end_eviction"}),
}
_PARTS: Final = frozenset({"volumes", "claims"})

DECISIONS: Final = {"decision": 6, "plan": 8, "victims": 2}
"""The records about decisions, with the place of what was decided."""

_UNSURE: Final = {"decision": 5, "plan": 6, "victims": 3}
"""The place of the reason why a decision cannot be made again."""


def redacted_record(
    record: Sequence[Any], names: Names, plugins: Mapping[str, type[Plugin]] = PLUGINS
) -> list[Any]:
    """Return a record; what was decided is left to who decides it again.

    Parameters
    ----------
    plugins
        Those whose arguments stay, with aliases, and the digests of their code.

    Raises
    ------
    JournalError
        When its kind is not known: it might hold anything.
    """
    what = record[0]
    if what == OBJECT:
        _, number, index, content = record
        return [OBJECT, number, index, redacted_object(index, content, names)]
    if what == DROPPED:
        return list(record)
    if what in _STATE:
        return [what, *_deep(record[1:], names)]
    if what in _VERBS:
        return [what, *_change(what, record[1:], names)]
    if what == "config":
        return [what, record[1], [_profile(each, names, plugins) for each in record[2]]]
    if what == "decision":
        _, asked, number, profile, group, is_unsure, then, *times = record
        group = None if group is None else _group(group, names)
        asked = _asked(asked, names)
        return [what, asked, number, names.plain(profile), group, is_unsure, then, *times]
    if what == "plan":
        _, asked, numbers, profile, key, *others = record
        told = [names.plain(profile), _group(key, names)]
        return [what, _asked(asked, names), numbers, *told, *others]
    if what == "victims":
        return [what, [_read(read, names) for read in record[1]], *record[2:]]
    raise JournalError(f"a record of kind {str(what)[:40]!r} is not known to berth {VERSION}")


def _change(what: str, told: Sequence[Any], names: Names) -> list[Any]:
    verb, is_own, *arguments = told
    if verb not in _VERBS[what]:
        raise JournalError(f"a change of kind {str(verb)[:40]!r} is not known to berth {VERSION}")
    if what == "assumed" and arguments[0] in _PARTS:
        return [verb, is_own, arguments[0], *_deep(arguments[1:], names)]
    if what == "group" and verb != "pod_changed":
        return [verb, is_own, _group(arguments[0], names), *_deep(arguments[1:], names)]
    return [verb, is_own, *_deep(arguments, names)]


def _deep(value: Any, names: Names) -> Any:
    if isinstance(value, str):
        return names.plain(value)
    if isinstance(value, list | tuple):
        return [_deep(each, names) for each in value]
    if isinstance(value, dict):
        return {names.plain(key): _deep(each, names) for key, each in value.items()}
    return value


def _group(key: Sequence[str], names: Names) -> list[str]:
    namespace, name, source = key
    return [names.plain(namespace), names.plain(name), names.plain(source)]


def _asked(asked: Sequence[Any], names: Names) -> list[Any]:
    *others, reads = asked
    return [*others, [_read(read, names) for read in reads]]


def _read(read: Sequence[Any], names: Names) -> list[Any]:
    what, *told = read
    if what == "start":
        node, uids, violations, code, *reasons = told
        uids = [names.plain(uid) for uid in uids]
        return [what, names.plain(node), uids, violations, code, *map(names.hidden, reasons)]
    if what == RESERVE:
        return [what, {texts.resource(name, names): sizes for name, sizes in told[0].items()}]
    if what == OFF:
        plugin, point, why = told
        return [what, names.plain(plugin), point, names.hidden(why) if why else why]
    return [what, *_deep(told, names)]


def _profile(
    told: Mapping[str, Any], names: Names, known: Mapping[str, type[Plugin]]
) -> dict[str, Any]:
    args = {
        name: walk_of(args_type)(given, names)
        for name, given in told["args"].items()
        if name in known and (args_type := known[name].args_type) is not None
    }
    return {
        "name": names.plain(told["name"]),
        "policy": names.hidden(told["policy"]),
        "points": {
            point: [names.plain(name) for name in plugins]
            for point, plugins in told["points"].items()
        },
        "weights": {names.plain(name): weight for name, weight in told["weights"].items()},
        "percentage": told["percentage"],
        "args": args,
        "sources": {
            names.plain(name): ["", "", digest if name in known else names.hidden(digest), ""]
            for name, (_, _, digest, _) in told["sources"].items()
        },
        "extenders": told["extenders"],
    }


# --- what was decided -------------------------------------------------------------------------


def hidden(form: Sequence[Any], what: str, names: Names) -> list[Any]:
    """Return what was decided with aliases, and digests in place of texts.

    Parameters
    ----------
    what
        The kind of record: one of :data:`DECISIONS`.
    """
    if what == "decision":
        return _hidden_decision(form, names)
    return _hidden_plan(form, names) if what == "plan" else _hidden_victims(form, names)


def _hidden_decision(form: Sequence[Any], names: Names) -> list[Any]:
    found = list(form)
    found[forms.NODE] = names.plain(form[forms.NODE])
    found[forms.NOMINATED] = _optional(form[forms.NOMINATED], names)
    found[forms.STATUS] = _status(form[forms.STATUS], names)
    found[forms.RAN_OUT_AT] = _optional(form[forms.RAN_OUT_AT], names)
    diagnosis = form[forms.DIAGNOSIS]
    if diagnosis is not None:
        num_nodes, pre_filter, absent, rejected, message, narrowing, by_extenders = diagnosis
        found[forms.DIAGNOSIS] = [
            num_nodes,
            _status(pre_filter, names),
            _status(absent, names),
            [
                [_status(status, names), count, names.digest(digest)]
                for status, count, digest in rejected
            ],
            names.hidden(message),
            sorted(map(names.plain, narrowing)),
            by_extenders,
        ]
    return found


def _optional(word: Any, names: Names) -> Any:
    return names.plain(word) if isinstance(word, str) else word


def _status(status: Sequence[Any] | None, names: Names) -> list[Any] | None:
    if status is None:
        return None
    code, reasons, plugin = status
    return [code, [names.hidden(reason) for reason in reasons], names.plain(plugin)]


def _hidden_plan(form: Sequence[Any], names: Names) -> list[Any]:
    verdict, status, fitting, counted, domain, preferred, placed, refused = form
    return [
        verdict,
        _status(status, names),
        fitting,
        counted,
        names.hidden(domain) if isinstance(domain, str) else domain,
        names.hidden(preferred) if isinstance(preferred, str) else preferred,
        [[names.plain(uid), names.plain(node), score] for uid, node, score in placed],
        [[names.plain(uid), _hidden_decision(each, names)] for uid, each in refused],
    ]


def _hidden_victims(form: Sequence[Any], names: Names) -> list[Any]:
    if form[0] == "none":
        return ["none", _status(form[1], names)]
    _, uids, violations, members, priority, gangs, gang_members, domain = form
    return [
        "victims",
        [names.plain(uid) for uid in uids],
        violations,
        [[names.plain(uid), names.plain(node)] for uid, node in members],
        priority,
        sorted("/".join(map(names.plain, gang.split("/", 1))) for gang in gangs),
        gang_members,
        names.hidden(domain) if isinstance(domain, str) else domain,
    ]


def mark(record: list[Any], why: str) -> None:
    """Let replays count a decision as one that is not compared."""
    place = _UNSURE[record[0]]
    if not isinstance(record[place], str):
        record[place] = why


# --- what has to come out the same ------------------------------------------------------------


def skeleton(form: Any, what: str) -> Any:
    """Return a form without its texts, and without digests of names."""
    if what == "decision":
        return _bare_decision(form)
    if what == "plan":
        verdict, status, fitting, counted, _, _, placed, refused = form
        bare = [[uid, _bare_decision(each)] for uid, each in refused]
        return [verdict, _bare_status(status), fitting, counted, placed, bare]
    return ["none", _bare_status(form[1])] if form[0] == "none" else form[:-1]


def _bare_decision(form: Sequence[Any]) -> list[Any]:
    found = list(form)
    found[forms.STATUS] = _bare_status(form[forms.STATUS])
    diagnosis = form[forms.DIAGNOSIS]
    if diagnosis is not None:
        num_nodes, pre_filter, absent, rejected, message, narrowing, by_extenders = diagnosis
        found[forms.DIAGNOSIS] = [
            num_nodes,
            _bare_status(pre_filter),
            _bare_status(absent),
            sorted(([_bare_status(status), count] for status, count, _ in rejected), key=repr),
            bool(message),
            narrowing,
            by_extenders,
        ]
    return found


def _bare_status(status: Sequence[Any] | None) -> list[Any] | None:
    if status is None:
        return None
    code, reasons, plugin = status
    return [code, len(reasons), plugin]
