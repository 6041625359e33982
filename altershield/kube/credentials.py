"""Where the API server is and who we are to it: from a kubeconfig, or from the pod's service account.

Reading is kubernetes-asyncio's; what it leaves out is added here, each as kubectl does it: the first file of
$KUBECONFIG that names a current context decides, a token file is read again, an exec plugin is asked again
before what it gave expires, and a CA without the key usage that Python 3.13 insists on is accepted.
"""

import asyncio
import contextlib
import ipaddress
import os
import re
import ssl
import tempfile
import urllib.request
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import yaml
from kubernetes_asyncio import config as kube_config
from kubernetes_asyncio.client import Configuration
from kubernetes_asyncio.config import incluster_config
from kubernetes_asyncio.config.kube_config import ConfigNode, KubeConfigLoader, KubeConfigMerger

from altershield.errors import UsageError
from altershield.kube.plugins import Pair, Plugin, Source, TokenFile

__all__ = ["DEFAULT_NAMESPACE", "Source", "Target", "load", "plugin_pair", "proxy", "ssl_context"]

_load_incluster: Callable[[Configuration], None] = kube_config.load_incluster_config

# What kubernetes-asyncio raises for a kubeconfig of another shape, and for one that is wrong.
_MISSHAPEN = (TypeError, KeyError, AttributeError, AssertionError)
_WRONG = (kube_config.ConfigException, yaml.YAMLError, OSError, ValueError)


class Target(NamedTuple):
    """An API server, our credentials for it, and the namespace that is meant where none is named."""

    configuration: Configuration
    namespace: str


DEFAULT_NAMESPACE = "default"
"""The namespace where neither a context nor a service account names one."""


async def load(kubeconfig: str | None, context: str | None) -> Target:
    """The target of a kubeconfig file; without one, of the pod's service account (unless `context` is given), else of
    the default kubeconfig ($KUBECONFIG, ~/.kube/config). UsageError where there is none that can be used."""
    configuration = Configuration()
    token = incluster_config.SERVICE_TOKEN_FILENAME
    in_cluster = kubeconfig is None and context is None and os.path.exists(token)  # noqa: ASYNC240
    place = token if in_cluster else _kubeconfig_paths(kubeconfig)
    try:
        if in_cluster:
            await asyncio.to_thread(_load_incluster, configuration)
            configuration.refresh_api_key_hook = TokenFile(Path(place))
            namespace = await asyncio.to_thread(_own_namespace, Path(place))
        else:
            namespace = await _load_kubeconfig(configuration, place, context)
    except (*_MISSHAPEN, *_WRONG) as error:
        raise UsageError(
            f"no usable Kubernetes credentials in {place}: {_reason(error)}; name a kubeconfig with --kubeconfig"
        ) from error
    return Target(configuration, namespace or DEFAULT_NAMESPACE)


def ssl_context(configuration: Configuration) -> ssl.SSLContext:
    """How the API server is verified and, with a client certificate, how we prove who we are.

    Certificates without the extensions that X.509 strictly asks for are accepted, as Go's clients do: many
    clusters' CAs lack them.
    """
    try:
        context = ssl.create_default_context(cafile=configuration.ssl_ca_cert)
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if configuration.cert_file:
            context.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
        if pair := plugin_pair(configuration):
            _load_pair(context, pair)
    except OSError as error:
        raise UsageError(
            f"the certificates of the kubeconfig for {configuration.host} cannot be used: {error}"
        ) from error
    if not configuration.verify_ssl:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def plugin_pair(configuration: Configuration) -> Pair | None:
    """The client certificate that an exec plugin gave, if one did."""
    hook = configuration.refresh_api_key_hook
    return hook.pair if isinstance(hook, Plugin) else None


def _load_pair(context: ssl.SSLContext, pair: Pair) -> None:
    with tempfile.TemporaryDirectory() as directory:  # OpenSSL reads them from a file only; nobody else may
        file = Path(directory, "pair.pem")
        file.write_text(f"{pair.certificate.strip()}\n{pair.key.strip()}\n")
        context.load_cert_chain(file)


def proxy(configuration: Configuration) -> str | None:
    """The proxy on the way to the API server: the kubeconfig's, else the environment's. As for Go's clients,
    loopback needs none, and $NO_PROXY may hold networks."""
    server = urlsplit(str(configuration.host))
    url = configuration.proxy
    if not url and not _goes_direct(server.hostname or ""):
        url = urllib.request.getproxies().get(server.scheme)
    if not url:
        return None
    url = url if "://" in url else f"http://{url}"
    if not url.startswith(("http://", "https://")):
        raise UsageError(f"a {url.partition(':')[0]} proxy is not supported; use an http or https proxy")
    return str(url)


def _goes_direct(host: str) -> bool:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return host == "localhost" or bool(urllib.request.proxy_bypass(host))
    exceptions = urllib.request.getproxies().get("no", "").split(",")
    return address.is_loopback or "*" in exceptions or any(address in network for network in _networks(exceptions))


def _networks(texts: Iterable[str]) -> Iterator[ipaddress.IPv4Network | ipaddress.IPv6Network]:
    for text in texts:
        with contextlib.suppress(ValueError):
            yield ipaddress.ip_network(text.strip(), strict=False)


def _kubeconfig_paths(kubeconfig: str | None) -> str:
    return kubeconfig or os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")


def _reason(error: Exception) -> str:
    """One line of text; the loader quotes whole entries of the file, with their secrets, in braces."""
    if isinstance(error, _MISSHAPEN):
        return "it does not have the form of a kubeconfig"
    return " ".join(re.sub(r"/\{.*\}", "", str(error), flags=re.DOTALL).split()) or type(error).__name__


def _merge(paths: str) -> KubeConfigMerger:
    if not any(os.path.exists(os.path.expanduser(path)) for path in paths.split(os.pathsep)):
        raise FileNotFoundError("there is no such file")
    return KubeConfigMerger(paths)


def _own_namespace(token: Path) -> str:
    """The namespace of the pod whose service account's token this is: kubelet writes it beside the token."""
    with contextlib.suppress(OSError):
        return token.with_name("namespace").read_text().strip()
    return ""


async def _load_kubeconfig(configuration: Configuration, paths: str, context: str | None) -> str:
    """Fill in `configuration`; the context's namespace, empty where it has none."""
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
        raise kube_config.ConfigException(f"the context {context} names no user that is there")
    await loader.load_and_set(configuration)
    if user.safe_get("tokenFile"):
        configuration.refresh_api_key_hook = TokenFile(Path(user.path or ".").parent / str(user["tokenFile"]))
        await configuration.refresh_api_key_hook(configuration)
    elif loader.plugin is not None:
        configuration.refresh_api_key_hook = loader.plugin
    chosen = loader.current_context
    return str(chosen["context"].get("namespace") or "") if chosen else ""


class _Loader(KubeConfigLoader):
    """Takes from an exec plugin what kubernetes-asyncio leaves: a certificate beside a token, and its expiry."""

    plugin: Plugin | None = None

    async def load_from_exec_plugin(self) -> bool:
        user: Any = self._user
        plugin, configuration = Plugin(user["exec"]), Configuration()
        await plugin.renew(configuration)
        if plugin.token:
            self.token = plugin.token
        self.plugin = plugin
        return True


def _user(config: ConfigNode, loader: KubeConfigLoader) -> ConfigNode | None:
    current = loader.current_context
    name = current["context"].get("user") if current else None
    found = config["users"].get_with_name(name, safe=True) if name else None
    return found["user"] if found is not None and found.safe_get("user") else None
