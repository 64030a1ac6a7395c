"""The question of a what-if as JSON: what is to be changed and placed.

The command line, the page and the leader's worker exchange questions in this form. The objects of
a question stay JSON until :mod:`scheduler.what_if.manifests` reads them.
"""

from __future__ import annotations

from typing import Annotated, Final

import msgspec

from scheduler.client.codec import Decoder, UndecodableObjectError
from scheduler.config.config_error import item, shown
from scheduler.config.strict_decoding import decode

MAX_BYTES: Final = 1 << 20
"""The size of a question. A pod has at most 1.5 MiB in etcd, and hardly any has 20 KiB."""

MAX_REPLICAS: Final = 100_000
"""Pods that one question may create; a cluster has 150 000 by Kubernetes' own limits."""

MAX_NODES: Final = 10_000
"""Nodes that one question may add."""


class QuestionError(Exception):
    """A question cannot be answered.

    Attributes
    ----------
    path
        The path of the bad value in the question, ``add[0].like``; empty for the whole question.
    why
        What is wrong with it.
    """

    def __init__(self, path: str, why: str) -> None:
        super().__init__(f"{path}: {why}" if path else why)
        self.path = path
        self.why = why


class AddedNodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nodes to add: as many copies of a node as ``count``."""

    like: str
    count: Annotated[int, msgspec.Meta(ge=1, le=MAX_NODES)] = 1


class Question(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What is to be changed and placed; any combination of the fields.

    Attributes
    ----------
    objects
        Pods and PodGroups to create, and the claims and budgets that come with them.
    replicas
        How many pods of each kind in ``objects``, or how many groups; None for as many as the
        objects say.
    podgroup
        A group of the cluster that waits, as ``namespace/name``.
    drain
        The nodes to drain, one after the other.
    add
        The nodes to add.
    remove
        The nodes to remove, with all pods on them.
    config
        The text of a KubeSchedulerConfiguration that decides in place of the one in force.
    pending
        Whether the pending pods of the cluster are placed as well, before the other pods.
    seed
        Breaks ties, and decides about the order of evictions that happen at one time; 0 stands for
        the order of the queue. The same question with the same seed has the same answer.
    """

    objects: tuple[msgspec.Raw, ...] = ()
    replicas: Annotated[int, msgspec.Meta(ge=1, le=MAX_REPLICAS)] | None = None
    podgroup: str = ""
    drain: tuple[str, ...] = ()
    add: tuple[AddedNodes, ...] = ()
    remove: tuple[str, ...] = ()
    config: str | None = None
    pending: bool = False
    seed: Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)] = 0

    def namespaces(self) -> frozenset[str]:
        """Return the namespaces of the objects and of the group.

        Raises
        ------
        QuestionError
            When the metadata of an object cannot be read.
        """
        found = {self.podgroup.rpartition("/")[0] or "default"} if self.podgroup else set()
        for index, raw in enumerate(self.objects):
            try:
                found.add(_NAMED.decode(raw).metadata.namespace or "default")
            except UndecodableObjectError as error:
                path = ".".join(filter(None, (item("objects", index), error.path)))
                raise QuestionError(path, error.why) from error
        return frozenset(found)

    def check(self) -> None:
        """Check what types alone cannot tell.

        Raises
        ------
        QuestionError
            When the question asks for nothing, names a node twice, or is too large.
        """
        if self.replicas is not None and not self.objects:
            raise QuestionError("replicas", "needs objects: the pods to create")
        asked = self.objects, self.podgroup, self.drain, self.add, self.remove, self.pending
        if not any(asked) and self.config is None:
            raise QuestionError("", "the question asks for nothing")
        for field, names in (("drain", self.drain), ("remove", self.remove)):
            for index, name in enumerate(names):
                if name in names[:index]:
                    raise QuestionError(item(field, index), f"{shown(name)} stands there twice")
        added = sum(each.count for each in self.add)
        if added > MAX_NODES:
            raise QuestionError("add", f"{added} nodes are more than {MAX_NODES}")


class _Metadata(msgspec.Struct, frozen=True):
    namespace: str = ""


class _Named(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()


_NAMED: Final = Decoder(_Named)
"""Reads nulls and repeated keys as :mod:`scheduler.what_if.manifests` does."""


class _Envelope(msgspec.Struct, frozen=True):
    """The part of a question that must stay JSON."""

    objects: tuple[msgspec.Raw, ...] = ()


def decode_question(text: bytes) -> Question:
    """Return the question in a JSON text.

    Raises
    ------
    QuestionError
        When the text is no question; names the path of the first bad value.
    """
    if len(text) > MAX_BYTES:
        raise QuestionError("", f"is larger than {MAX_BYTES} bytes")
    try:
        data = msgspec.json.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise QuestionError("", f"is not JSON: {error}") from error
    if not isinstance(data, dict):
        raise QuestionError("", f"must be a mapping, not {shown(data)}")
    objects = data.pop("objects", None) or []
    if not isinstance(objects, list):
        raise QuestionError("objects", f"must be a list, not {shown(objects)}")
    question, mistakes = decode(data, Question, "")
    if question is None or mistakes:
        path, why = mistakes[0]
        raise QuestionError(path, why)
    if objects:
        raws = msgspec.json.decode(text, type=_Envelope).objects
        question = msgspec.structs.replace(question, objects=raws)
    question.check()
    return question


def encode_question(question: Question) -> bytes:
    """Return a question as JSON, for :func:`decode_question`."""
    return msgspec.json.encode(question)
