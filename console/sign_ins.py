"""Who has signed in: one-time secrets, and the sessions of browsers. Nothing is stored outside of the process."""

import hashlib
import secrets
from collections import OrderedDict
from collections.abc import Callable

_SECRET_BYTES = 32
_SECRET_SECONDS = 120.0
_SECRETS = 16  # that nobody has used yet
_SESSIONS = 200
_SESSION_SECONDS = 8 * 3600.0


class SignIns:
    """Of the one person who runs the console. `clock` returns monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._secrets = OrderedDict[bytes, float]()
        """When each secret ends, by its hash: to look one up takes the same time whichever it is."""
        self._sessions = OrderedDict[bytes, float]()

    def new_secret(self) -> str:
        """A secret that signs in once, within two minutes."""
        return _added(self._secrets, self._clock() + _SECRET_SECONDS, _SECRETS)

    def sign_in(self, secret: str) -> str | None:
        """The value of a new session's cookie; None: nobody has this secret, or it was used, or it is too late."""
        if not self._is_valid(self._secrets, secret):
            return None
        del self._secrets[_hash(secret)]
        return _added(self._sessions, self._clock() + _SESSION_SECONDS, _SESSIONS)

    def signed_in(self, cookie: str) -> bool:
        """Whether the cookie is of a session that has not ended."""
        return self._is_valid(self._sessions, cookie)

    def sign_out(self, cookie: str) -> None:
        self._sessions.pop(_hash(cookie), None)

    def _is_valid(self, known: OrderedDict[bytes, float], value: str) -> bool:
        end = known.get(_hash(value))
        return end is not None and self._clock() < end


def _added(known: OrderedDict[bytes, float], end: float, most: int) -> str:
    """A new value. The oldest one ends if there are too many."""
    made = secrets.token_urlsafe(_SECRET_BYTES)
    known[_hash(made)] = end
    if len(known) > most:
        known.popitem(last=False)
    return made


def _hash(value: str) -> bytes:
    return hashlib.sha256(value.encode(errors="replace")).digest()
