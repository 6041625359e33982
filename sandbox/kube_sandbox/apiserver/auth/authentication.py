"""Authentication with client certificates and bearer tokens. Without credentials the user is `system:anonymous`."""

import functools
from collections.abc import Mapping
from dataclasses import replace

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.x509.oid import NameOID

from kube_sandbox.apiserver.attributes import User
from kube_sandbox.apiserver.auth.tokens import AUDIENCES, ServiceAccountTokens, TokenError
from kube_sandbox.apiserver.errors import StatusError

AUTHENTICATED = "system:authenticated"
MASTERS = "system:masters"
UNAUTHENTICATED = "system:unauthenticated"
ANONYMOUS = User("system:anonymous", (UNAUTHENTICATED,))


def administrator() -> User:
    return User("kubernetes-admin", (MASTERS, AUTHENTICATED))


class Authenticator:
    """Determines the user of a request.

    `tokens` maps static bearer tokens to users. `service_accounts` checks all other tokens.
    """

    def __init__(self, tokens: Mapping[str, User], service_accounts: ServiceAccountTokens) -> None:
        self._tokens = tokens
        self._service_accounts = service_accounts

    def authenticate(self, header: str | None, client_certificate: bytes | None = None) -> User:
        """The user of a client certificate (DER, already verified by TLS) or of an Authorization header.

        Raises StatusError 401 for invalid credentials."""
        if client_certificate is not None and (user := certificate_user(client_certificate)):
            return authenticated(user)
        scheme, token, *_ = [*(header or "").strip().split(" ", 2), "", ""]
        if scheme.lower() != "bearer" or not token:
            return ANONYMOUS
        try:
            found = self.review(token, AUDIENCES)
        except TokenError:
            found = None
        if found is None:
            raise StatusError(401, "Unauthorized")
        return found[0]

    def review(self, token: str, audiences: tuple[str, ...]) -> tuple[User, list[str]] | None:
        """The user of a bearer token and those of `audiences` for which it is valid, or None for an unknown token and
        for a static token without such an audience. Raises TokenError for a ServiceAccount token that is not valid."""
        user = self._tokens.get(token)
        common = [audience for audience in audiences if audience in AUDIENCES]
        if user is not None and common:
            return authenticated(user), common
        return self._service_accounts.verify(token, audiences)


def authenticated(user: User) -> User:
    """The user with the group of all users who have authenticated."""
    if user.name == ANONYMOUS.name or not {AUTHENTICATED, UNAUTHENTICATED}.isdisjoint(user.groups):
        return user
    return replace(user, groups=(*user.groups, AUTHENTICATED))


@functools.lru_cache(maxsize=256)
def certificate_user(certificate: bytes) -> User | None:
    """The user of a client certificate: the common name, with the organizations as groups. None without a common
    name."""
    subject = x509.load_der_x509_certificate(certificate)
    names = subject.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    if not names:
        return None
    groups = [str(group.value) for group in subject.subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)]
    fingerprint = subject.fingerprint(hashes.SHA256()).hex()
    return User(
        str(names[0].value),
        tuple(groups),
        extra={"authentication.kubernetes.io/credential-id": (f"X509SHA256={fingerprint}",)},
    )
