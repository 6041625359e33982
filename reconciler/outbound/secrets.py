"""Reads the Secret that a check names: only in the policy's namespace, and only with the label
`altershield.defense.antgroup.com/credentials: "true"`.

The Secret is read for each request. No Secret is cached, listed or watched. So the reconciler needs only `get`, only in
the namespaces in which somebody grants it.
"""

import base64
import binascii
import os
import re
import ssl
import tempfile
from collections import OrderedDict
from typing import Annotated

import msgspec

from altershield.api.labels import CREDENTIALS, CREDENTIALS_VALUE
from kube_base.access.client import Client
from kube_base.access.errors import ApiError, ForbiddenError, KubernetesError, NotFoundError
from kube_base.resources import SECRETS
from reconciler.outbound.credentials import Credentials
from reconciler.outbound.outbound_errors import CredentialsError, SecretUnreadableError

_MAX_VALUE = 64 * 1024  # bytes of one key
_CONTEXTS = 256
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
_HEADER = re.compile(rb"[!-~]{1,8192}")  # the value of a header


class _Metadata(msgspec.Struct, frozen=True, rename="camel"):
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}


class _Secret(msgspec.Struct, frozen=True):
    metadata: _Metadata = _Metadata()
    data: dict[str, Annotated[str, msgspec.Meta(max_length=2 * 1024 * 1024)]] | None = None


class Secrets:
    """Reads credentials of tenants."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._contexts: OrderedDict[tuple[str, str], ssl.SSLContext] = OrderedDict()
        """By the uid and resourceVersion of the Secret. Creating a context takes milliseconds."""

    async def read(self, namespace: str, name: str) -> Credentials:
        """The credentials in the Secret.

        CredentialsError: it cannot be used, until a person changes something. SecretUnreadableError: the API server
        did not answer.
        """
        if not _NAME.fullmatch(name):  # "" would be the list of all Secrets
            raise CredentialsError(f"{name!r} is not the name of a Secret")
        where = f"the Secret {namespace}/{name}"
        try:
            secret = await self._client.get(SECRETS, name, namespace, as_=_Secret)
        except NotFoundError:
            raise CredentialsError(f"{where} does not exist; create it, or remove secretRef from the policy") from None
        except ForbiddenError:
            raise CredentialsError(
                f"{where} may not be read by AlterShield; add the namespace to the chart's checks.secretNamespaces"
            ) from None
        except (ApiError, KubernetesError) as error:
            raise SecretUnreadableError(f"{where} cannot be read: {error}") from error
        if secret.metadata.labels.get(CREDENTIALS) != CREDENTIALS_VALUE:
            raise CredentialsError(
                f'{where} is not for checks; label it with {CREDENTIALS}: "{CREDENTIALS_VALUE}" if it may be used'
            )
        return self._credentials(where, secret)

    def _credentials(self, where: str, secret: _Secret) -> Credentials:
        values = {key: _decoded(where, key, text) for key, text in (secret.data or {}).items() if key in _KEYS}
        return Credentials(_authorization(where, values), values.get("hmac", b""), self._context(where, secret, values))

    def _context(self, where: str, secret: _Secret, values: dict[str, bytes]) -> ssl.SSLContext | None:
        if not values.keys() & {"ca.crt", "tls.crt", "tls.key"}:
            return None
        key = secret.metadata.uid, secret.metadata.resource_version
        context = self._contexts.get(key) or _context(where, values)
        self._contexts[key] = context
        self._contexts.move_to_end(key)
        while len(self._contexts) > _CONTEXTS:
            self._contexts.popitem(last=False)
        return context


_KEYS = frozenset({"token", "username", "password", "hmac", "ca.crt", "tls.crt", "tls.key"})


def _decoded(where: str, key: str, text: str) -> bytes:
    try:
        value = base64.b64decode(text)
    except (binascii.Error, ValueError):
        raise CredentialsError(f"the key {key} of {where} is not base64") from None
    if not 0 < len(value) <= _MAX_VALUE:
        raise CredentialsError(f"the key {key} of {where} has {len(value)} bytes; it may have 1 to {_MAX_VALUE}")
    return value


def _authorization(where: str, values: dict[str, bytes]) -> str:
    if "token" in values:
        token = values["token"].strip()
        if not _HEADER.fullmatch(token):
            raise CredentialsError(f"the key token of {where} is not a token: it has a character that is not allowed")
        return f"Bearer {token.decode()}"
    if "username" not in values and "password" not in values:
        return ""
    username, password = (values.get(key, b"").removesuffix(b"\n") for key in ("username", "password"))
    if b":" in username:
        raise CredentialsError(f"the key username of {where} has a colon, which no user name may have")
    return "Basic " + base64.b64encode(username + b":" + password).decode()


def _context(where: str, values: dict[str, bytes]) -> ssl.SSLContext:
    try:
        authorities = values["ca.crt"].decode("ascii") if "ca.crt" in values else None
        context = ssl.create_default_context(cadata=authorities)
        if "tls.crt" in values or "tls.key" in values:
            _load(context, values.get("tls.crt", b"") + b"\n" + values.get("tls.key", b""))
    except (ssl.SSLError, ValueError):
        raise CredentialsError(
            f"ca.crt, tls.crt or tls.key of {where} cannot be used; they must be PEM, and the key without a password"
        ) from None
    return context


def _load(context: ssl.SSLContext, pair: bytes) -> None:
    """Load a certificate and its key. Python takes them from a file only: on Linux, from one that is in memory."""
    if not hasattr(os, "memfd_create"):
        with tempfile.NamedTemporaryFile() as file:  # which only this user may read
            file.write(pair)
            file.flush()
            context.load_cert_chain(file.name, password=b"")
        return
    descriptor = os.memfd_create("tls")
    with open(descriptor, "wb") as memory:
        memory.write(pair)
        memory.flush()
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=b"")
