"""Credentials from a kubeconfig.

`plain_kubeconfig.py` reads most kubeconfigs. kubernetes-asyncio reads all other kubeconfigs. This module adds what the
library does not do, as kubectl does it: the first file of $KUBECONFIG with a current context decides, a token file is
read again, an exec plugin runs again before its credentials expire, and the fields `as`, `as-uid`, `as-groups` and
`as-user-extra` of a user impersonate another user.
"""

import asyncio
import base64
import os
import re
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import yaml
from kubernetes_asyncio import config as kube_config
from kubernetes_asyncio.client import Configuration as _Configuration
from kubernetes_asyncio.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger

from kube_base.access.configuration import Configuration, unusable
from kube_base.access.credential_sources import ExecPlugin, TokenFile
from kube_base.access.plain_kubeconfig import in_memory
from kube_base.errors import UsageError

# Errors of kubernetes-asyncio for a file that is no kubeconfig, and for a kubeconfig with wrong values.
_MISSHAPEN = (TypeError, KeyError, AttributeError, AssertionError)
_WRONG = (kube_config.ConfigException, yaml.YAMLError, OSError, ValueError)


async def load(paths: str, context: str | None) -> tuple[Configuration, str]:
    """The configuration of the files in `paths`, and the context's namespace (empty if it has none). UsageError if the
    files cannot be used."""
    read = _Configuration()
    try:
        chosen = await _load_kubeconfig(read, paths, context)
        configuration = _converted(read)
        configuration.context = chosen.context
        configuration.impersonation = _impersonation(chosen.user)
        if isinstance(configuration.refresh_api_key_hook, TokenFile):
            await configuration.refresh_api_key_hook(configuration)
    except (*_MISSHAPEN, *_WRONG) as error:
        raise unusable(paths, _reason(error)) from error
    return configuration, chosen.namespace


class _Chosen(NamedTuple):
    context: str
    namespace: str
    user: ConfigNode


def _converted(read: _Configuration) -> Configuration:
    return Configuration(
        host=str(read.host),
        ssl_ca_cert=read.ssl_ca_cert,
        cert_file=read.cert_file,
        key_file=read.key_file,
        verify_ssl=read.verify_ssl,
        tls_server_name=read.tls_server_name,
        proxy=read.proxy,
        api_key=read.api_key,
        refresh_api_key_hook=read.refresh_api_key_hook,
    )


def _reason(error: Exception) -> str:
    """The error in one line, without the parts in braces: in these parts, the loader quotes whole entries of the file
    with their secrets."""
    if isinstance(error, _MISSHAPEN):
        return "it is not a kubeconfig"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.strerror}: {error.filename}"
    return " ".join(re.sub(r"/\{.*\}", "", str(error), flags=re.DOTALL).split()) or type(error).__name__


def _merge(paths: str) -> KubeConfigMerger:
    if not any(os.path.exists(os.path.expanduser(path)) for path in paths.split(os.pathsep)):
        raise FileNotFoundError("there is no such file")
    return KubeConfigMerger(paths)


async def _load_kubeconfig(configuration: _Configuration, paths: str, context: str | None) -> _Chosen:
    """Fill in `configuration`. Return the context, its namespace (empty if it has none) and its user."""
    merger = await asyncio.to_thread(_merge, paths)
    if merger.config is None:
        raise kube_config.ConfigException("the file is empty")
    if context is None:
        named = (file.get("current-context") for file in merger.config_files.values())
        context = next((name for name in named if name), None)
    if not context:
        raise kube_config.ConfigException("no current context is set")
    if not merger.config["contexts"].get_with_name(context, safe=True):
        raise UsageError(f'there is no context "{context}" in {paths}; `kubectl config get-contexts` lists them')
    loader = _Loader(merger.config, active_context=context, config_base_path=None)
    user = _user(merger.config, loader)
    if user is None:
        raise kube_config.ConfigException(f"the context {context} has no user, or the user does not exist")
    await loader.load_and_set(configuration)
    if user.safe_get("tokenFile"):
        configuration.refresh_api_key_hook = TokenFile(Path(user.path or ".").parent / str(user["tokenFile"]))
    elif loader.plugin is not None:
        configuration.refresh_api_key_hook = loader.plugin
    chosen = loader.current_context
    return _Chosen(context, str(chosen["context"].get("namespace") or "") if chosen else "", user)


class _Loader(KubeConfigLoader):
    """A loader that also reads two parts of an exec plugin's output that kubernetes-asyncio ignores: a certificate
    beside a token, and the expiry. It keeps certificates and keys of the file in memory."""

    plugin: ExecPlugin | None = None

    def _load_cluster_info(self) -> None:
        _keep_in_memory(self._cluster, "certificate-authority")
        for field in ("client-certificate", "client-key"):
            _keep_in_memory(self._user, field)
        super()._load_cluster_info()

    async def load_from_exec_plugin(self) -> bool:
        user: Any = self._user
        plugin, configuration = ExecPlugin(user["exec"]), Configuration()
        await plugin.renew(configuration)
        if plugin.token:
            self.token = plugin.token
        self.plugin = plugin
        return True


def _keep_in_memory(entry: Any, field: str) -> None:
    """Replace the field `FIELD-data` of a cluster or user by the path of a file in memory.

    kubernetes-asyncio would write the data to a file in the temporary directory. If the process is killed, that file
    stays there, with the key of a user.
    """
    values = entry.value if isinstance(entry, ConfigNode) else {}
    data = values.get(f"{field}-data")
    if isinstance(data, str) and data and hasattr(os, "memfd_create"):
        values[field] = in_memory(base64.standard_b64decode(data))
        del values[f"{field}-data"]


def _impersonation(user: ConfigNode) -> tuple[tuple[str, str], ...]:
    """The headers for the fields `as…` of a user. ConfigException: `as` is missing, but another field is there."""
    name, uid = user.safe_get("as"), user.safe_get("as-uid")
    groups, extra = user.safe_get("as-groups"), user.safe_get("as-user-extra")
    if not name:
        if uid or groups or extra:
            raise kube_config.ConfigException(
                "the user has the field as-uid, as-groups or as-user-extra, but not the field `as`"
            )
        return ()
    headers = [("Impersonate-User", str(name))]
    if uid:
        headers.append(("Impersonate-Uid", str(uid)))
    headers += (("Impersonate-Group", str(group)) for group in _plain(groups) or ())
    for key, values in (_plain(extra) or {}).items():
        headers += ((f"Impersonate-Extra-{quote(key, safe='')}", str(value)) for value in values)
    return tuple(headers)


def _plain(node: Any) -> Any:
    """The list or dict in a ConfigNode."""
    return node.value if isinstance(node, ConfigNode) else node


def _user(config: ConfigNode, loader: KubeConfigLoader) -> ConfigNode | None:
    current = loader.current_context
    name = current["context"].get("user") if current else None
    found = config["users"].get_with_name(name, safe=True) if name else None
    return found["user"] if found is not None and found.safe_get("user") else None
