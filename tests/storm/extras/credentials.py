"""Tokens and certificate authorities that change: files that are late, empty for a moment, or old.

Tokens are read by the real code from a file in memory, and API servers refuse with 401 what is not
valid. TLS itself is not played: a connection is made when the authority that was read from the file
has signed the certificate of the servers, and refused otherwise.

F33 and F34: nobody ends by that, and when the files are right all goes on.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from scheduler.client.auth_source import TokenFile
from scheduler.client.credentials import Credentials
from scheduler.client.errors import ClientConfigError
from scheduler.client.tls import TlsFiles
from tests.storm.extras.extra import Actions, Extra

if TYPE_CHECKING:
    import random
    from collections.abc import Callable

    from scheduler.client.tls import CertificatePair
    from tests.storm.machine import Machine
    from tests.storm.world import World

action: Final = Actions()

AT_START_S: Final = 2.0
"""A process reads its files at the start, and ends where they cannot be used; so they can be."""


class CredentialFiles(Extra):
    """The files of all processes, and what the API servers take.

    Attributes
    ----------
    token, authorities
        What is in the files.
    current
        The token that is issued last.
    signed_by
        Who has signed the certificate of the API servers.
    """

    NAME = "credentials"
    PATIENCE_S = 75.0
    actions = action

    def __init__(self, world: World) -> None:
        super().__init__(world)
        self.made = 1
        self._calms = 0
        self._troubled_until_s = 0.0
        self.current = self.token = "token-1"
        self.signed_by = "authority-1"
        self.authorities = frozenset((self.signed_by,))
        self._valid_until_s = {self.current: float("inf")}
        world.servers.admits = self._admits

    def calm(self) -> None:
        self._calms += 1
        self.token = self.current
        self.authorities = frozenset((self.signed_by,))

    def credentials(self, machine: Machine) -> Credentials:
        """Return what a process proves itself with."""
        files: Any = _Files(self, machine)
        source = TokenFile(files, "the token")
        tls = SimTls("the files", files=files)
        return Credentials("https://api", source=source, tls=tls, clock=machine.clock.monotonic)

    def issue(self, old_for_s: float) -> None:
        """Issue a token; the last one is taken for so long."""
        now_s = self.simulation.now_s
        self.made += 1
        self._valid_until_s[self.current] = now_s + old_for_s
        self.current = f"token-{self.made}"
        self._valid_until_s[self.current] = float("inf")

    def later(self, delay_s: float, call: Callable[[], object]) -> None:
        """Have something happen, unless a calm has come by then."""
        calms = self._calms
        self.simulation.after(delay_s, lambda: call() if calms == self._calms else None)

    def blind(self, for_s: float) -> None:
        """Have what is known be old: files are read once a minute, and watches come back later."""
        world, until_s = self.world, self.simulation.now_s + for_s
        self._troubled_until_s = max(self._troubled_until_s, until_s)
        world.blind_until_s = max(world.blind_until_s, until_s)

    def may_refuse_writes(self) -> bool:
        return self.simulation.now_s < self._troubled_until_s

    def _admits(self, data: bytes) -> bool:
        head, _, _ = data.partition(b"\r\n\r\n")
        _, _, rest = head.partition(b"Authorization: Bearer ")
        token = rest.partition(b"\r\n")[0].decode()
        if self._valid_until_s.get(token, 0.0) > self.simulation.now_s:
            return True
        self.simulation.counts["F33 token refused"] += 1
        return False

    def shake_hands(self, context: Any) -> None:
        """Make a connection; raises SSLCertVerificationError where the servers are not trusted."""
        if self.signed_by not in context.authorities:
            self.simulation.counts["F34 certificate not trusted"] += 1
            error = ssl.SSLCertVerificationError("certificate verify failed")
            error.verify_message = "unable to get local issuer certificate"
            raise error


class _Files:
    """The files as one process sees them."""

    def __init__(self, extra: CredentialFiles, machine: Machine) -> None:
        self._extra = extra
        self._ready_s = machine.simulation.now_s + AT_START_S

    def _is_ready(self) -> bool:
        return self._extra.simulation.now_s > self._ready_s

    def read_bytes(self) -> bytes:
        """Return the file of the token."""
        extra = self._extra
        return (extra.token if self._is_ready() else extra.current).encode()

    def authorities(self) -> frozenset[str]:
        """Return what is in the file of the authorities."""
        extra = self._extra
        return extra.authorities if self._is_ready() else frozenset((extra.signed_by,))

    def shake_hands(self, context: Any) -> None:
        """Make a connection."""
        self._extra.shake_hands(context)


@dataclass(frozen=True, slots=True)
class _Context:
    """What stands for a TLS context."""

    authorities: frozenset[str]
    files: _Files

    def handshake(self) -> None:
        """Make a connection."""
        self.files.shake_hands(self)


class SimTls(TlsFiles, frozen=True):
    """The certificates of a process whose files are in memory."""

    files: Any = None

    def state(self) -> Any:
        """Return what changes when the file does."""
        return tuple(sorted(self.files.authorities()))

    def context(self, pair: CertificatePair | None = None) -> Any:
        """Return what trusts the authorities in the file."""
        authorities = self.files.authorities()
        if not authorities:
            raise ClientConfigError("the files: the certificate authority cannot be used")
        return _Context(authorities, self.files)


def _files(world: World) -> CredentialFiles:
    extra = world.extras["credentials"]
    assert isinstance(extra, CredentialFiles)
    return extra


# --- what happens -------------------------------------------------------------------------------


@action(3.0)
def rotate_token(world: World, dice: random.Random) -> None:
    """F33: the token changes; the file follows at once or late, the old one ends soon or late."""
    extra = _files(world)
    extra.issue(dice.choice((0.0, 5.0, 600.0)))
    world.simulation.counts["F33 token rotated"] += 1
    extra.blind(90.0)
    token = extra.current

    def write() -> None:
        extra.token = token

    extra.later(dice.choice((0.0, 0.0, 0.5, 10.0)), write)


@action(3.0)
def lose_token(world: World, dice: random.Random) -> None:
    """F33: the file of the token is empty, or nonsense, for a while."""
    extra = _files(world)
    extra.token = dice.choice(("", "\n", "a b", "token-of-nobody"))
    extra.blind(150.0)
    world.simulation.counts["F33 token file empty or nonsense"] += 1

    def write() -> None:
        extra.token = extra.current

    extra.later(dice.choice((0.1, 5.0, 70.0)), write)


@action(2.0)
def rotate_authority(world: World, dice: random.Random) -> None:
    """F34: the servers have another certificate; the file follows before or after that."""
    extra = _files(world)
    extra.made += 1
    old, new = extra.signed_by, f"authority-{extra.made}"
    extra.blind(150.0)
    world.simulation.counts["F34 authority rotated"] += 1
    if dice.random() < 0.5:
        extra.authorities = frozenset((old, new))

    def sign() -> None:
        extra.signed_by = new
        for server in world.servers.frontends:
            for watch in server.watches():
                if dice.random() < 0.5:
                    server.end_watch(watch, reset=True)

    def write() -> None:
        extra.authorities = frozenset((extra.signed_by,))

    extra.later(dice.choice((0.0, 20.0)), sign)
    extra.later(dice.choice((0.5, 20.0, 40.0)), write)


@action(1.0)
def lose_authority(world: World, dice: random.Random) -> None:
    """F34: the file of the authorities is empty for a while."""
    extra = _files(world)
    extra.authorities = frozenset()
    extra.blind(150.0)
    world.simulation.counts["F34 file of authorities empty"] += 1

    def write() -> None:
        extra.authorities = frozenset((extra.signed_by,))

    extra.later(dice.choice((0.1, 30.0)), write)
