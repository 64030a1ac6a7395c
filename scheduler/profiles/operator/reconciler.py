"""SchedulingProfiles as kopf hands them over, given to the policies once each.

kopf hands over a list, object by object, and then events. Those of one object come in their order;
those of an object and of another one that was made under its name later need not.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import structlog

from scheduler.client.errors import ApiError
from scheduler.profiles import Mode
from scheduler.profiles.operator.history import last_good
from scheduler.profiles.operator.scheduling_profile import (
    ProfileObject,
    config_maps_of,
    decode_spec,
    policy_spec,
    unreadable,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping, Sequence

    from scheduler.profiles import PolicySpec
    from scheduler.profiles.known_profiles import Policies
    from scheduler.profiles.operator.options import OperatorOptions
    from scheduler.profiles.operator.scheduling_profile import SchedulingProfileSpec

log = structlog.get_logger(__name__)


@dataclass(slots=True)
class _Known:
    found: ProfileObject
    spec: SchedulingProfileSpec | None = None
    """None where it cannot be read."""
    texts: dict[str, Mapping[str, str] | None] = field(default_factory=dict)
    is_settled: bool = True
    """False while a ConfigMap could not be asked for."""


class ProfileReconciler:
    """Every SchedulingProfile that there is, by name.

    Parameters
    ----------
    policies
        Where each new version goes.
    read_config_map
        Returns ``data`` of a ConfigMap in berth's namespace, None if there is none; raises
        ApiError or TimeoutError. May wait.
    tell
        Told of each version that was taken in, and of the name of each object that is gone.

    Notes
    -----
    *Concurrency*: confined to one thread, but for :attr:`names_config_maps`.
    """

    def __init__(
        self,
        policies: Policies,
        options: OperatorOptions,
        read_config_map: Callable[[str], Mapping[str, str] | None],
        tell: Callable[[ProfileObject | str], None],
    ) -> None:
        self._policies = policies
        self._options = options
        self._read_config_map = read_config_map
        self._tell = tell
        self._known: dict[str, _Known] = {}
        self.names_config_maps = False
        """Whether any of them names a ConfigMap. Any thread."""

    def changed(self, raw: Mapping[str, Any], *, is_listed: bool = False) -> None:
        """Take over an object as the API server has it.

        Parameters
        ----------
        is_listed
            Whether it stands in a list: then it is what there is now, however old its version is,
            as after a restore of etcd.
        """
        found = ProfileObject.of(raw)
        known = self._known.get(found.name)
        if known is not None and known.found.uid != found.uid:
            if found.version < known.found.version and not is_listed:
                return  # a late event of an object that was made again under its name
            self._drop(known)
            known = None
        if not self._is_ours(found):
            if known is not None:
                self._drop(known)
        elif known is not None and known.found.has_spec_of(found):
            known.found = found
            self._tell(found)
        else:
            self._take(found, is_first=known is None)

    def deleted(self, raw: Mapping[str, Any]) -> None:
        """Forget an object, unless there is another one under its name."""
        known = self._known.get(raw["metadata"]["name"])
        if known is not None and known.found.uid == raw["metadata"]["uid"]:
            self._drop(known)

    def listed(self, uids: Collection[str]) -> None:
        """Forget all objects but these, which are all that there are."""
        for known in list(self._known.values()):
            if known.found.uid not in uids:
                self._drop(known)

    def look_at_config_maps(self) -> None:
        """Read the ConfigMaps again that are named, and take over what has changed in them."""
        for known in list(self._known.values()):
            if known.spec is None or not config_maps_of(known.spec):
                continue
            texts, is_settled = self._texts(known.spec, known.texts)
            if texts != known.texts or (is_settled and not known.is_settled):
                known.texts, known.is_settled = texts, is_settled
                self._put(known, known.spec)
                self._tell(known.found)

    # --- one version --------------------------------------------------------------------------

    def _is_ours(self, found: ProfileObject) -> bool:
        return all(found.labels.get(key) == text for key, text in self._options.selector.items())

    def _take(self, found: ProfileObject, *, is_first: bool) -> None:
        spec, mistakes = decode_spec(found.spec, self._options)
        before = self._known.get(found.name)
        known = self._known[found.name] = _Known(found, spec)
        if spec is not None:
            texts = {} if before is None else before.texts
            known.texts, known.is_settled = self._texts(spec, texts)
        if is_first:
            self._put_last_good(known)
        if spec is None:
            self._give(unreadable(found, mistakes))
        else:
            self._put(known, spec)
        self._note_config_maps()
        self._tell(found)

    def _put(self, known: _Known, spec: SchedulingProfileSpec) -> None:
        self._give(self._policy(known.found, spec, known.texts))

    def _give(self, version: PolicySpec) -> None:
        """Give a version to the policies, which say themselves what they think of it."""
        outcome = self._policies.put(version)
        log.info(
            "scheduling profile taken in",
            profile=version.name,
            generation=version.generation,
            accepted=outcome.status is not None and outcome.status.accepted.status,
            mistakes=[str(each) for each in outcome.mistakes],
        )

    def _put_last_good(self, known: _Known) -> None:
        """Before a version that may be bad, let the one run that its status names as the last good.

        This process has not seen it: it has been started, or the kind installed, since.
        """
        found = known.found
        good = last_good(found)
        if good is None or (known.spec is not None and known.spec.mode is not Mode.ACTIVE):
            return
        spec, _ = decode_spec(good.spec, self._options)
        if spec is None:
            return
        texts, _ = self._texts(spec, known.texts)
        self._policies.put(self._policy(good, spec, texts))

    def _policy(
        self,
        found: ProfileObject,
        spec: SchedulingProfileSpec,
        texts: Mapping[str, Mapping[str, str] | None],
    ) -> PolicySpec:
        return policy_spec(found, spec, self._options.namespace, texts)

    def _drop(self, known: _Known) -> None:
        name = known.found.name
        del self._known[name]
        self._policies.remove(name)
        self._note_config_maps()
        self._tell(name)
        log.info("scheduling profile gone", profile=name)

    # --- ConfigMaps ---------------------------------------------------------------------------

    def _note_config_maps(self) -> None:
        specs: Sequence[SchedulingProfileSpec | None] = [e.spec for e in self._known.values()]
        self.names_config_maps = any(spec and config_maps_of(spec) for spec in specs)

    def _texts(
        self, spec: SchedulingProfileSpec, before: Mapping[str, Mapping[str, str] | None]
    ) -> tuple[dict[str, Mapping[str, str] | None], bool]:
        """Return ``data`` by name, and whether all could be asked for: what was known stays."""
        texts: dict[str, Mapping[str, str] | None] = {}
        is_settled = True
        for name in sorted(config_maps_of(spec)):
            try:
                texts[name] = self._read_config_map(name)
            except (ApiError, TimeoutError) as error:
                is_settled = False
                texts[name] = before.get(name)
                log.warning("ConfigMap cannot be read", config_map=name, error=str(error))
        return texts, is_settled
