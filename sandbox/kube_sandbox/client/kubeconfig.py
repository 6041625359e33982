"""The API server and the credentials of a kubeconfig's current context.

A kubeconfig with a token, such as that of the sandbox's own API, is read here. kubernetes-asyncio reads all others; its
import takes half a second.
"""

import asyncio
import base64
import ssl
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
import yaml

from kube_sandbox.errors import SettingError


@dataclass(frozen=True)
class Connection:
    """`server` is the URL of the API server, `authority` its CA in PEM (empty: those of the system). `authorization`
    returns the value of the header, or None."""

    server: str
    authority: str
    tls: ssl.SSLContext
    authorization: Callable[[], Awaitable[str | None]]
    tls_server_name: str | None = None
    proxy: str | None = None


class _Cluster(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    server: str
    certificate_authority_data: str = ""


class _User(msgspec.Struct, forbid_unknown_fields=True):
    token: str


async def load(path: str) -> Connection:
    """SettingError: the file cannot be used."""
    if not await asyncio.to_thread(Path(path).exists):
        raise SettingError(f"--kubeconfig: there is no file {path}")
    return _with_token(await asyncio.to_thread(Path(path).read_bytes)) or await _any(path)


def _with_token(content: bytes) -> Connection | None:
    """The connection of a kubeconfig with one cluster, whose CA is in the file, and one user with a token; None for any
    other file."""
    try:
        file = yaml.load(content, getattr(yaml, "CSafeLoader", yaml.SafeLoader))  # noqa: S506 -- both are safe
        [cluster], [user], [context] = file["clusters"], file["users"], file["contexts"]
        if context["name"] != file["current-context"]:
            return None
        server = msgspec.convert(cluster["cluster"], _Cluster)
        authority = base64.b64decode(server.certificate_authority_data).decode()
        bearer = f"Bearer {msgspec.convert(user['user'], _User).token}"
        tls = ssl.create_default_context(cadata=authority or None)
    except (yaml.YAMLError, ValueError, KeyError, TypeError, ssl.SSLError):
        return None

    async def authorization() -> str:
        return bearer

    return Connection(server.server, authority, _as_go(tls), authorization)


async def _any(path: str) -> Connection:
    from kubernetes_asyncio.client import Configuration
    from kubernetes_asyncio.config import load_kube_config
    from kubernetes_asyncio.config.config_exception import ConfigException

    configuration: Any = Configuration()
    try:
        await load_kube_config(config_file=path, client_configuration=configuration)
        tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        if configuration.cert_file:
            tls.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
        file = configuration.ssl_ca_cert
        authority = await asyncio.to_thread(Path(file).read_text) if file else ""
    except (ConfigException, yaml.YAMLError, OSError, ValueError, TypeError, KeyError) as error:
        reason = str(error).split("\n")[0] if isinstance(error, OSError) else type(error).__name__
        raise SettingError(f"--kubeconfig: {path} cannot be used: {reason}") from error
    if not configuration.verify_ssl:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE

    async def authorization() -> str | None:
        found: str | None = await configuration.get_api_key_with_prefix("BearerToken")
        return found

    return Connection(
        str(configuration.host),
        authority,
        _as_go(tls),
        authorization,
        configuration.tls_server_name,
        configuration.proxy,
    )


def _as_go(context: ssl.SSLContext) -> ssl.SSLContext:
    """As Go's clients do, accept certificates without the extensions that RFC 5280 requires."""
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return context
