"""Credentials from a kubeconfig with a token or a client certificate, without kubernetes-asyncio.

The import of that library takes half a second, which is most of the time of a short command. The library reads all
other kubeconfigs: those with other fields, several files, and files with errors, for which it has the messages.
"""

import base64
import functools
import os
from pathlib import Path
from typing import Annotated, Any

import msgspec
import yaml

from kube_base.access.configuration import Configuration

_Text = Annotated[str, msgspec.Meta(min_length=1)]


class _Cluster(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    server: Annotated[str, msgspec.Meta(pattern="^https?://")]
    certificate_authority: _Text | None = None
    certificate_authority_data: _Text | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: _Text | None = None
    proxy_url: _Text | None = None
    extensions: Any = None


class _User(msgspec.Struct, rename="kebab", forbid_unknown_fields=True):
    token: _Text | None = None
    client_certificate: _Text | None = None
    client_certificate_data: _Text | None = None
    client_key: _Text | None = None
    client_key_data: _Text | None = None
    extensions: Any = None


class _Context(msgspec.Struct):
    cluster: _Text
    user: _Text
    namespace: str | None = None


class _NamedCluster(msgspec.Struct):
    name: str
    cluster: Any


class _NamedUser(msgspec.Struct):
    name: str
    user: Any


class _NamedContext(msgspec.Struct):
    name: str
    context: Any


class _File(msgspec.Struct, rename="kebab"):
    clusters: list[_NamedCluster]
    users: list[_NamedUser]
    contexts: list[_NamedContext]
    current_context: str | None = None


def read(path: str, context: str | None) -> tuple[Configuration, str] | None:
    """The configuration of the file, and the context's namespace (empty if it has none). None if kubernetes-asyncio has
    to read the file."""
    file = Path(path).expanduser()
    try:
        content = msgspec.convert(yaml.safe_load(file.read_text()), _File)
        name = context or content.current_context
        chosen = msgspec.convert(next(each.context for each in content.contexts if each.name == name), _Context)
        cluster = next(each.cluster for each in content.clusters if each.name == chosen.cluster)
        user = next(each.user for each in content.users if each.name == chosen.user)
        configuration = _configuration(msgspec.convert(cluster, _Cluster), msgspec.convert(user, _User), file.parent)
    except (OSError, ValueError, yaml.YAMLError, StopIteration):  # msgspec.ValidationError is a ValueError
        return None
    configuration.context = name or ""
    return configuration, chosen.namespace or ""


def _configuration(cluster: _Cluster, user: _User, directory: Path) -> Configuration:
    """The configuration for a cluster and a user. ValueError: kubernetes-asyncio has to read the file."""
    certificates = (
        _file(cluster.certificate_authority, cluster.certificate_authority_data, directory),
        _file(user.client_certificate, user.client_certificate_data, directory),
        _file(user.client_key, user.client_key_data, directory),
    )
    authority, certificate, key = certificates
    if any(certificates) and not cluster.server.startswith("https"):
        raise ValueError("the certificates are not used")
    if not (user.token or certificate):
        raise ValueError("neither a token nor a certificate")
    return Configuration(
        host=cluster.server.rstrip("/"),
        ssl_ca_cert=authority,
        cert_file=certificate,
        key_file=key,
        verify_ssl=not cluster.insecure_skip_tls_verify,
        tls_server_name=cluster.tls_server_name,
        proxy=cluster.proxy_url,
        api_key={"BearerToken": f"Bearer {user.token}"} if user.token else {},
    )


def _file(path: str | None, data: str | None, directory: Path) -> str | None:
    """The path of a file with this content, or of the file in the field without `-data`."""
    if data is not None:
        return in_memory(base64.standard_b64decode(data))
    if path is None:
        return None
    found = os.path.normpath(directory.absolute() / path)
    if not os.path.isfile(found):
        raise ValueError(f"there is no file {found}")
    return found


@functools.cache  # each file stays open; the same content has the same file
def in_memory(content: bytes) -> str:
    """The path of a file with this content that exists as long as this process. ValueError if the system has no such
    files."""
    if not hasattr(os, "memfd_create"):
        raise ValueError("this system has no files in memory")
    descriptor = os.memfd_create("kubeconfig")
    with open(descriptor, "wb", closefd=False) as file:
        file.write(content)
    return f"/proc/self/fd/{descriptor}"
