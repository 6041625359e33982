"""ServiceAccount tokens: JWTs that this server signs and verifies.

Claims, checks and texts are those of kube-apiserver's bound tokens (`pkg/serviceaccount/claims.go` and `jwt.go`).
"""

import base64
import hashlib
import json
import re
import time
import uuid
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property, lru_cache
from typing import Any

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import padding, rsa

from kube_sandbox.apiserver.attributes import Object, Reader, User
from kube_sandbox.apiserver.gotext import quoted_list

ISSUER = "https://kubernetes.default.svc.cluster.local"
AUDIENCES = (ISSUER,)
"""The audiences of this API server."""

_LEEWAY = 60  # permitted clock difference in seconds
_MAX_TOKEN = 64 * 1024
_SEGMENT = re.compile(r"[A-Za-z0-9_-]*")
_EXTRA = "authentication.kubernetes.io/"
_BOUND = {"pod": "pods", "secret": "secrets", "node": "nodes"}


class TokenError(Exception):
    """This server signed the token, but it is not valid (any more). The message is that of the real server."""


def service_account_groups(namespace: str) -> tuple[str, ...]:
    return ("system:serviceaccounts", f"system:serviceaccounts:{namespace}")


class ServiceAccountTokens:
    """Issues and verifies ServiceAccount tokens with one RSA key, which exists only in memory."""

    def __init__(
        self,
        reader: Reader,
        *,
        key: rsa.RSAPrivateKey | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._reader = reader
        self._given = key
        self._clock = clock
        self._claims = lru_cache(maxsize=100)(self._signed_claims)  # a signature takes as long as a read to verify

    @cached_property
    def _key(self) -> rsa.RSAPrivateKey:
        """It is made when it is needed first, because this takes a tenth of a second."""
        return self._given or rsa.generate_private_key(public_exponent=65537, key_size=2048)

    @cached_property
    def _key_id(self) -> str:
        public = self._key.public_key().public_bytes(
            serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
        )
        return _encode(hashlib.sha256(public).digest())

    def issue(
        self,
        service_account: Object,
        *,
        audiences: Iterable[str],
        seconds: int,
        bound: dict[str, Object] | None = None,
    ) -> str:
        """A token for a stored ServiceAccount. `bound` contains the object that the token is bound to, with the key
        `pod` (together with its `node`), `node` or `secret`."""
        metadata, now = service_account["metadata"], int(self._clock())
        namespace, name = metadata["namespace"], metadata["name"]
        claims = {
            "aud": list(audiences),
            "exp": now + seconds,
            "iat": now,
            "iss": ISSUER,
            "jti": str(uuid.uuid4()),
            "kubernetes.io": {
                "namespace": namespace,
                **{kind: _reference(obj) for kind, obj in sorted((bound or {}).items())},
                "serviceaccount": _reference(service_account),
            },
            "nbf": now,
            "sub": f"system:serviceaccount:{namespace}:{name}",
        }
        header = {"alg": "RS256", "kid": self._key_id}
        signed = f"{_encode(_json(header))}.{_encode(_json(claims))}"
        signature = self._key.sign(signed.encode(), padding.PKCS1v15(), hashes.SHA256())
        return f"{signed}.{_encode(signature)}"

    def verify(self, token: str, audiences: Sequence[str] = AUDIENCES) -> tuple[User, list[str]] | None:
        """The user of a token, and the requested audiences for which it is valid. None if this server did not sign it.

        Raises TokenError when the token has expired, when it is for other audiences, or when its ServiceAccount or the
        object that it is bound to no longer exists."""
        claims = self._claims(token)
        if claims is None:
            return None
        common = [audience for audience in audiences if audience in claims["aud"]]
        if not common:
            raise TokenError(
                f"token audiences {quoted_list(claims['aud'])} is invalid "
                f"for the target audiences {quoted_list(audiences)}"
            )
        now = self._clock()
        if now - _LEEWAY > claims["exp"]:
            raise TokenError("service account token has expired")
        if now + _LEEWAY < claims["nbf"]:
            raise TokenError("service account token is not valid yet")
        private = claims["kubernetes.io"]
        self._check_service_account(private)
        for kind, plural in _BOUND.items():
            # The token of a pod also contains the node, but it remains valid when only the node is deleted.
            if kind in private and not (kind == "node" and "pod" in private):
                self._check_bound(private, kind, plural)
        return _user(claims), common

    def _signed_claims(self, token: str) -> dict[str, Any] | None:
        parts = token.split(".")
        if len(token) > _MAX_TOKEN or len(parts) != 3 or not all(map(_SEGMENT.fullmatch, parts)):
            return None
        try:
            self._key.public_key().verify(
                _decode(parts[2]), f"{parts[0]}.{parts[1]}".encode(), padding.PKCS1v15(), hashes.SHA256()
            )
        except (InvalidSignature, ValueError):
            return None
        claims: dict[str, Any] = json.loads(_decode(parts[1]))
        return claims

    def _check_service_account(self, private: dict[str, Any]) -> None:
        namespace, name = private["namespace"], private["serviceaccount"]["name"]
        account = self._reader.get("", "serviceaccounts", name, namespace)
        if account is None:
            raise TokenError(f'serviceaccounts "{name}" not found')
        uid, claimed = account["metadata"]["uid"], private["serviceaccount"]["uid"]
        if uid != claimed:
            raise TokenError(f"service account UID ({uid}) does not match claim ({claimed})")

    def _check_bound(self, private: dict[str, Any], kind: str, plural: str) -> None:
        reference = private[kind]
        namespace = "" if kind == "node" else private["namespace"]
        obj = self._reader.get("", plural, reference["name"], namespace)
        if obj is None:
            raise TokenError("service account token has been invalidated")
        uid = obj["metadata"]["uid"]
        if uid != reference["uid"]:
            raise TokenError(f"{kind} UID ({uid}) does not match service account {kind} ref claim ({reference['uid']})")


def _user(claims: dict[str, Any]) -> User:
    private = claims["kubernetes.io"]
    extra = {f"{_EXTRA}credential-id": (f"JTI={claims['jti']}",)}
    for kind in ("node", "pod"):
        if kind in private:
            extra[f"{_EXTRA}{kind}-name"] = (private[kind]["name"],)
            if private[kind].get("uid"):
                extra[f"{_EXTRA}{kind}-uid"] = (private[kind]["uid"],)
    return User(
        name=claims["sub"],
        groups=(*service_account_groups(private["namespace"]), "system:authenticated"),
        uid=private["serviceaccount"]["uid"],
        extra=extra,
    )


def _reference(obj: Object) -> dict[str, str]:
    metadata = obj["metadata"]
    return {key: metadata[key] for key in ("name", "uid") if metadata.get(key)}


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


def _encode(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _decode(segment: str) -> bytes:
    return base64.urlsafe_b64decode(segment + "=" * (-len(segment) % 4))
